import json
from typing import Any

from bridge.channel import RemoteFile
from channels.feishu.references import context, read_items
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


def read(*items: Any, own: str = "om_own") -> tuple[str, tuple[RemoteFile, ...]]:
    found = context(read_items(list(items)), own, "cli_app")
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
        own="b",
    )
    when = "(2023-11-14 22:13 UTC)"
    assert text.split("\n") == [
        "[Forwarded messages:]",
        f"- ou_1 {when}: one",
        "  two",
        f"- ou_n {when}: [Unreadable merge_forward message]",
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
    assert read(BUNDLE, own="b")[0] == "[Forwarded messages:]\n(nothing in it can be shown)"


def test_circles_and_orphans_end() -> None:
    text, _ = read(
        BUNDLE, rest("1", "one", "b"), rest("1", "again", "1"), rest("x", "orphan", "nowhere"), own="b"
    )
    assert text.count("\n") == 2


def test_a_long_bundle_is_cut_and_says_by_how_much() -> None:
    text, _ = read(BUNDLE, *(rest(f"m{n}", "x", "b") for n in range(310)), own="b")
    assert text.endswith("\n(10 more messages are not shown)")
    images = [
        rest(f"m{n}", upper="b", msg_type="image", body={"content": f'{{"image_key": "i{n}"}}'})
        for n in range(20)
    ]
    assert len(read(BUNDLE, *images, own="b")[1]) == 16


def test_deep_nesting_is_indented_only_so_far() -> None:
    chain = [rest(f"m{n}", "x", f"m{n - 1}" if n else "b") for n in range(200)]
    text, _ = read(BUNDLE, *chain, own="b")
    assert max(len(line) - len(line.lstrip()) for line in text.split("\n")) == 16


def test_items_that_cannot_be_read_are_left_out() -> None:
    assert read_items(None) == []
    assert read_items([5, {"deleted": "maybe"}, {}]) == [RestMessage()]
