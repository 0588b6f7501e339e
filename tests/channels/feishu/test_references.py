import json
from typing import Any

import pytest

from bridge.channel import Context, FileKind, RemoteFile
from channels.feishu.references import Link, Role, context, gone, joined, missed, read_items
from channels.feishu.wire import RestMessage


def rest(message_id: str, text: str = "", upper: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "message_id": message_id,
        "msg_type": "text",
        "upper_message_id": upper,
        "create_time": "1700000000000",
        "sender": {"id": f"ou_{message_id}", "id_type": "open_id", "sender_type": "user"},
        "body": {"content": json.dumps({"text": text})},
    } | fields


def read(*items: Any, role: Role = Role.QUOTED) -> tuple[str, tuple[RemoteFile, ...]]:
    found = context(read_items(list(items)), role, "cli_app")
    return found.text, found.files


BUNDLE = rest("b", msg_type="merge_forward", body={"content": "Merged and Forwarded Message"})


def test_a_quote_is_one_line_with_its_sender_and_its_file() -> None:
    assert read(rest("q", "words")) == ("[In reply to ou_q: words]", ())
    image = rest("q", msg_type="image", body={"content": '{"image_key": "i"}'})
    text, files = read(image)
    assert text == "[In reply to ou_q: [Image]]"
    assert [each.key for each in files] == ['["q", "i", "image"]']


def test_quoted_mentions_are_names() -> None:
    mentions = [{"key": "@_user_1", "id": "ou_x", "id_type": "open_id", "name": "Ann"}]
    assert read(rest("q", "ask @_user_1", mentions=mentions))[0] == "[In reply to ou_q: ask @Ann]"


def test_our_own_messages_are_you_and_recalled_ones_are_gone() -> None:
    own: dict[str, Any] = {"sender": {"id": "cli_app", "id_type": "app_id", "sender_type": "app"}}
    assert read(rest("q", "answer", **own))[0] == "[In reply to you: answer]"
    assert read(rest("q", "secret", deleted=True))[0] == "[In reply to ou_q: [Message taken back]]"
    odd: tuple[Any, ...] = ({}, None, 5, [])
    for nobody in odd:
        assert read(rest("q", "x", sender=nobody))[0] == "[In reply to somebody: x]"
    assert read(rest("q", body=None))[0] == "[In reply to ou_q: [Unreadable text message]]"


def test_case_12_a_bundle_is_listed_in_order_with_senders_and_nested_ones_inside() -> None:
    nested = rest("n", upper="b", msg_type="merge_forward", body={"content": ""})
    image = rest("i", upper="b", msg_type="image", body={"content": '{"image_key": "img_1"}'})
    text, files = read(
        BUNDLE,
        rest("1", "one\ntwo", "b"),
        nested,
        image,
        rest("2", "inner", "n"),
        rest("3", "last", "b"),
        role=Role.OWN,
    )
    when = "(2023-11-14 22:13 UTC)"
    assert text.split("\n") == [
        "[Forwarded messages:]",
        f"- ou_1 {when}: one",
        "  two",
        f"- ou_n {when}: [Forwarded messages]",
        f"  - ou_2 {when}: inner",
        f"- ou_i {when}: [Image]",
        f"- ou_3 {when}: last",
    ]
    assert [each.key for each in files] == ['["b", "img_1", "image"]']


def test_a_quoted_bundle_says_that_it_is_quoted() -> None:
    assert read(BUNDLE, rest("1", "one", "b", create_time=""))[0] == (
        "[In reply to messages forwarded by ou_b:]\n- ou_1: one"
    )


def test_an_empty_bundle_says_so() -> None:
    assert read(BUNDLE, role=Role.OWN)[0] == "[Forwarded messages:]\n(nothing in it can be shown)"


def test_circles_and_orphans_end() -> None:
    text, _ = read(
        BUNDLE,
        rest("1", "one", "b"),
        rest("1", "again", "1"),
        rest("x", "orphan", "nowhere"),
        role=Role.OWN,
    )
    assert text.count("\n") == 2


def test_a_long_bundle_is_cut_and_says_by_how_much() -> None:
    text, _ = read(BUNDLE, *(rest(f"m{n}", "x", "b") for n in range(310)), role=Role.OWN)
    assert text.endswith("\n(10 more messages are not shown)")
    images = [
        rest(f"m{n}", upper="b", msg_type="image", body={"content": f'{{"image_key": "i{n}"}}'})
        for n in range(20)
    ]
    assert len(read(BUNDLE, *images, role=Role.OWN)[1]) == 20  # the core takes fewer and tells of the rest


def test_deep_nesting_is_indented_only_so_far() -> None:
    chain = [rest(f"m{n}", "x", f"m{n - 1}" if n else "b") for n in range(200)]
    text, _ = read(BUNDLE, *chain, role=Role.OWN)
    assert max(len(line) - len(line.lstrip()) for line in text.split("\n")) == 16


def test_items_that_cannot_be_read_are_left_out() -> None:
    assert read_items(None) == []
    assert read_items([5, {"deleted": "maybe"}, "x"]) == [RestMessage()]


def test_case_12_a_bundle_is_listed_by_time_wherever_an_item_stands_in_the_answer() -> None:
    late, early = (
        rest(name, name, "b", create_time=f"170000{n}000000") for n, name in ((9, "late"), (1, "early"))
    )
    timeless = rest("after", "after", "b", create_time="")
    text, _ = read(BUNDLE, late, timeless, early, role=Role.OWN)
    assert [line.split(" ")[-1] for line in text.split("\n")[1:]] == ["early", "late", "after"]


def test_a_threads_first_message_is_told_as_such() -> None:
    assert read(rest("q", "words"), role=Role.ROOT)[0] == "[In a thread on a message of ou_q: words]"
    text = read(BUNDLE, rest("1", "one", "b", create_time=""), role=Role.ROOT)[0]
    assert text == "[In a thread on messages forwarded by ou_b:]\n- ou_1: one"


def test_a_bundle_that_was_taken_back_is_no_list() -> None:
    assert (
        read({**BUNDLE, "deleted": True}, rest("1", "one", "b"))[0]
        == "[In reply to ou_b: [Message taken back]]"
    )


def test_a_quoted_card_and_a_quoted_post_bring_their_words_and_pictures() -> None:
    card = {"title": "Build", "elements": [[{"tag": "text", "text": "failed"}]]}
    text, _ = read(rest("q", msg_type="interactive", body={"content": json.dumps(card)}))
    assert text == "[In reply to ou_q: [Card: Build]\nfailed]"
    post = {"title": "", "content": [[{"tag": "text", "text": "see"}], [{"tag": "img", "image_key": "i"}]]}
    text, files = read(rest("q", msg_type="post", body={"content": json.dumps(post)}))
    assert (text, [each.kind for each in files]) == ("[In reply to ou_q: see [Image]]", [FileKind.IMAGE])


@pytest.mark.parametrize("role", Role)
def test_what_is_gone_and_what_could_not_be_had_are_told_apart(role: Role) -> None:
    assert gone(role).text.endswith("was taken back or deleted.]")
    assert missed(role).text.endswith("could not be fetched.]")


def test_several_contexts_are_one_in_their_order() -> None:
    file = RemoteFile("k", FileKind.IMAGE)
    assert joined([Context("a"), Context("", (file,)), Context("b")]) == Context("a\n\nb", (file,))
    assert joined([]) == Context()


@pytest.mark.parametrize(
    "link",
    [
        Link(),
        Link(own=True),
        Link(quoted="om_1"),
        Link(root="om_1", listener="omt_1 ou_1"),
        Link(True, "om_2", "om_1", "omt_1 ou_1"),
    ],
)
def test_a_link_comes_back_as_it_was(link: Link) -> None:
    assert Link.decode(link.encode(), "om_own") == link or link == Link()


def test_a_reference_from_before_still_means_what_it_did() -> None:
    assert Link.decode("om_own", "om_own") == Link(own=True)
    assert Link.decode("om_1", "om_own") == Link(quoted="om_1")
    for odd in ("[", "[1]", "[1, 2, 3, 4, 5]"):
        with pytest.raises(ValueError, match=r"."):
            Link.decode(odd, "om_own")


def test_a_bundle_of_long_messages_leaves_room_for_the_words_about_it() -> None:
    long = [rest(f"m{n}", "x" * 30_000, "b") for n in range(10)]
    text, _ = read(BUNDLE, *long, role=Role.OWN)
    assert len(text) < 70_000
    assert text.endswith("…\n(8 more messages are not shown)")
    quoted, _ = read(rest("1", "y" * 100_000))
    assert len(quoted) < 70_000


def test_a_head_with_an_odd_mark_is_still_the_head() -> None:
    assert read(rest("1", "one", deleted="yes"))[0] == "[In reply to ou_1: one]"
