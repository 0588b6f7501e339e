import json
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import FileKind, Inbound, RemoteFile
from bridge.ids import ConversationKey
from bridge.relay.payload import (
    conversation_of,
    decode,
    digest_of,
    encode,
    escaped,
    is_from,
    redelivery_of,
    sender_in,
)


def second_key(message: Inbound) -> str:
    return redelivery_of(message, conversation_of(message))


FILE = RemoteFile("k1", FileKind.IMAGE, "图.png", "image/png", 7, "said")
SENT = datetime(2026, 3, 4, 5, 6, 7, 89000, tzinfo=UTC)
MESSAGE = Inbound(
    "m1", "u1", "c1", "p2p:c1", "m1", "hello", (FILE,), reference="m0", sent_at=SENT, stamp="1700000000123"
)


@given(
    st.builds(
        Inbound, message_id=st.text(), sender=st.text(), chat=st.text(), to=st.text(), text=st.text(),
        group=st.booleans(), thread=st.text(),
    )
)  # fmt: skip
def test_a_message_survives_its_json(message: Inbound) -> None:
    assert decode(encode(message)) == message


def test_files_and_times_survive_too() -> None:
    assert decode(encode(MESSAGE)) == MESSAGE


def test_lone_surrogates_survive() -> None:
    assert decode(encode(replace(MESSAGE, text="\ud800"))).text == "\ud800"


def test_each_sender_of_a_group_and_each_thread_is_a_conversation_of_its_own() -> None:
    group = replace(MESSAGE, group=True)
    keys = {
        conversation_of(MESSAGE),
        conversation_of(group),
        conversation_of(replace(group, sender="u2")),
        conversation_of(replace(group, thread="t1")),
        conversation_of(replace(group, chat="c2")),
    }
    assert len(keys) == 5


def test_a_divider_inside_an_id_cannot_make_two_conversations_one() -> None:
    one = replace(MESSAGE, group=True, chat="a\0b", sender="c")
    other = replace(MESSAGE, group=True, chat="a", sender="b\0c")
    third = replace(MESSAGE, group=True, chat="ab", sender="c")
    fourth = replace(MESSAGE, group=True, chat="a\\0b", sender="c")
    assert len({conversation_of(each) for each in (one, other, third, fourth)}) == 4


def test_a_conversation_s_digest_is_a_safe_name() -> None:
    digest = digest_of(conversation_of(replace(MESSAGE, chat="../../x")))
    assert len(digest) == 16
    assert set(digest) <= set("0123456789abcdef")


def test_case_2_the_same_time_sender_and_content_is_one_message_under_any_id() -> None:
    assert second_key(MESSAGE) == second_key(replace(MESSAGE, message_id="m2", reply_to="m2"))


def test_a_picture_whose_key_names_its_message_is_one_message_under_any_id() -> None:
    one, other = (
        replace(MESSAGE, message_id=id_, files=(RemoteFile(f'["{id_}","img_1"]', FileKind.IMAGE),))
        for id_ in ("m1", "m2")
    )
    assert second_key(one) == second_key(other)


def test_case_22_equal_text_alone_is_never_a_duplicate() -> None:
    assert second_key(MESSAGE) != second_key(replace(MESSAGE, message_id="m2", stamp="1700000005123"))
    assert second_key(replace(MESSAGE, stamp="")) == ""


def test_another_chat_sender_text_or_file_is_another_message() -> None:
    others = [
        replace(MESSAGE, chat="c2"),
        replace(MESSAGE, sender="u2"),
        replace(MESSAGE, text="hello!"),
        replace(MESSAGE, files=()),
        replace(MESSAGE, files=(replace(FILE, name="", key="k2"),)),
    ]
    keys = {second_key(other) for other in others} | {second_key(MESSAGE)}
    assert len(keys) == 6


def test_what_a_later_version_stored_beside_is_passed_over() -> None:
    stored = json.loads(encode(replace(MESSAGE, files=(RemoteFile("k", FileKind.FILE),))))
    stored["mood"] = "good"
    stored["files"][0]["colour"] = "red"
    assert decode(json.dumps(stored)).files == (RemoteFile("k", FileKind.FILE),)


@given(st.text(), st.text(), st.text(), st.booleans())
def test_a_conversation_is_from_its_own_chat_and_sender_and_from_no_other(
    sender: str, chat: str, thread: str, group: bool
) -> None:
    key = conversation_of(replace(MESSAGE, sender=sender, chat=chat, thread=thread, group=group))
    for whose in ((chat, sender), ("", sender), (chat, ""), ("", "")):
        assert is_from(key, *whose)
    assert not is_from(key, f"{chat}x", sender)
    assert not is_from(key, chat, f"{sender}\0")


def test_what_has_no_conversation_is_from_anywhere() -> None:
    assert is_from(ConversationKey(""), "c1", "u1")


def test_the_second_key_begins_with_the_time_so_that_neighbours_in_time_are_stored_together() -> None:
    earlier, later = replace(MESSAGE, stamp="1700000000123"), replace(MESSAGE, stamp="1700000000124")
    assert second_key(earlier).startswith("1700000000123:")
    assert second_key(earlier) < second_key(later)


def test_a_second_key_is_bounded_and_storable_whatever_a_platform_calls_a_time() -> None:
    for stamp in ("1" * 5000, "\ud800", "刚才"):
        assert len(second_key(replace(MESSAGE, stamp=stamp)).encode()) <= 64
    assert second_key(replace(MESSAGE, stamp="刚才")) != second_key(replace(MESSAGE, stamp="昨天"))


def test_who_writes_in_a_conversation_is_in_its_key() -> None:
    message = Inbound("m1", "u\0\\1", "c1", "to", group=True, thread="t")
    assert sender_in(conversation_of(message)) == escaped("u\0\\1")
    assert sender_in(ConversationKey("")) == ""
