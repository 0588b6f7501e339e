import json
import struct
from typing import Any

import pytest

from bridge.channel.testing.fakes.feishu.rules import (
    FILE_BYTES,
    IMAGE_BYTES,
    RefusedError,
    check_file,
    check_image,
    check_message,
    notified,
)
from bridge.channel.testing.fakes.feishu.world import World

WORLD = World()
KEYS = {kind: WORLD.upload(kind, "a", "", b"x").key for kind in ("image", "opus", "mp4", "pdf")}


def code(
    kind: str = "text", content: Any = None, size: int = 100, *, reply: bool = True, **fields: Any
) -> int:
    text = content if isinstance(content, str) else json.dumps({"text": "x"} if content is None else content)
    try:
        check_message(WORLD, {"msg_type": kind, "content": text} | fields, size, reply=reply)
    except RefusedError as error:
        return error.code
    return 0


def post(*elements: Any) -> dict[str, Any]:
    return {"zh_cn": {"title": "", "content": [list(elements)]}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (code(), 0),
        (code(content={"text": " "}), 230001),
        (code(content={}), 230001),
        (code(content="x"), 230001),
        (code(content="[]"), 230001),
        (code(content=""), 99992402),
        (code("carrier pigeon"), 230001),
        (code(uuid="x" * 50), 0),
        (code(uuid="x" * 51), 99992402),
        (code(reply_in_thread="yes"), 99992402),
        (code(reply=False), 99992402),
        (code(reply=False, receive_id="ou_1"), 0),
        (code(size=150 * 1024 + 1), 230025),
        (code("post", post(), size=30 * 1024 + 1), 230025),
        (code("post", post({"tag": "text", "text": "x"})), 0),
        (code("post", {"post": post()}), 230001),
        (code("post", {"zh_cn": []}), 230001),
        (code("post", {"zh_cn": {"content": ["x"]}}), 230001),
        (code("post", post("x")), 230001),
        (code("post", post({"tag": "blink"})), 230001),
        (code("post", post({"tag": "a", "href": "file:///x"})), 230001),
        (code("post", post({"tag": "a", "text": "x", "href": "https://x"})), 0),
        (code("post", post({"tag": "a", "text": "x", "href": "https:///x"})), 230001),
        (code("post", post({"tag": "a", "href": "https://x"})), 230001),
        (code("post", post({"tag": "text", "text": "x", "style": ["bold", "lineThrough"]})), 0),
        (code("post", post({"tag": "text", "text": "x", "style": ["wavy"]})), 230001),
        (code("post", post({"tag": "hr"})), 0),
        (code("post", post({"tag": "text", "text": "x"}, {"tag": "hr"})), 230001),
        (code("post", post({"tag": "code_block", "text": "x", "language": "JSON"})), 0),
        (code("post", post({"tag": "code_block", "text": "x", "language": "KLINGON"})), 230001),
        (code("image", {"image_key": KEYS["image"]}), 0),
        (code("image", {"image_key": KEYS["pdf"]}), 230001),
        (code("image", {"image_key": "img_other"}), 230001),
        (code("image", {"image_key": 5}), 230001),
        (code("audio", {"file_key": KEYS["opus"]}), 0),
        (code("media", {"file_key": KEYS["mp4"]}), 0),
        (code("file", {"file_key": KEYS["pdf"]}), 0),
        (code("file", {"file_key": KEYS["mp4"]}), 230055),
        (code("audio", {"file_key": KEYS["pdf"]}), 230055),
        (code("media", {"file_key": KEYS["opus"]}), 230055),
        (code("sticker", {"file_key": "x"}), 0),
    ],
)
def test_messages_are_judged_as_the_platform_does(found: int, expected: int) -> None:
    assert found == expected


def test_a_body_that_is_none_is_refused() -> None:
    with pytest.raises(RefusedError):
        check_message(WORLD, [], 1, reply=True)


def test_whom_a_message_calls_is_found() -> None:
    assert notified(
        "text", json.dumps({"text": "<at user_id=\"all\"></at> <AT id='ou_1'> <at\nemail=a@b>"})
    ) == (
        "all",
        "ou_1",
        "a@b",
    )
    assert notified("text", json.dumps({"text": "<\u200bat user_id=all>"})) == ()
    at, md = {"tag": "at", "user_id": "all"}, {"tag": "md", "text": "<at id=ou_1></at>"}
    assert notified("post", json.dumps(post(at, md, {"tag": "text", "text": "<at id=x>"}))) == ("all", "ou_1")
    assert notified("image", "{}") == ()


def image_code(data: bytes) -> int:
    try:
        check_image(data)
    except RefusedError as error:
        return error.code
    return 0


def png(width: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + bytes(8) + struct.pack(">II", width, 1)


def test_pictures_are_judged_by_their_bytes() -> None:
    assert image_code(b"") == 234010
    assert image_code(b"<html>") == 234011
    assert image_code(png(12_000)) == 0
    assert image_code(png(12_001)) == 234039
    assert image_code(png(1) + bytes(IMAGE_BYTES)) == 234006
    assert image_code(b"GIF89a" + struct.pack("<HH", 2001, 1)) == 234039
    for start in (b"GIF89a", b"\xff\xd8\xff", b"RIFF0000WEBP", b"0000ftypheic", b"\x89PNG\r\n\x1a\n"):
        assert image_code(start) == 0


def file_code(*arguments: Any) -> int:
    try:
        check_file(*arguments)
    except RefusedError as error:
        return error.code
    return 0


def test_files_are_judged_by_type_name_and_size() -> None:
    assert file_code("stream", "a", b"x") == 0
    assert file_code("docx", "a", b"x") == 234001
    assert file_code("stream", "", b"x") == 234001
    assert file_code("stream", "a", b"") == 234010
    assert file_code("stream", "a", bytes(FILE_BYTES + 1)) == 234006


def card(*elements: Any, **changes: Any) -> dict[str, Any]:
    return {"schema": "2.0", "body": {"elements": list(elements)}, **changes}


WORDS = {"tag": "div", "text": {"tag": "plain_text", "content": "May I?"}}
BUTTON = {
    "tag": "button",
    "text": {"tag": "plain_text", "content": "Yes"},
    "behaviors": [{"type": "callback", "value": {"v": 1}}],
}


def test_a_card_has_texts_and_buttons_that_call_back() -> None:
    assert code("interactive", card(WORDS, BUTTON, {"tag": "markdown", "content": "**b**"})) == 0


@pytest.mark.parametrize(
    "content",
    [
        card(),
        card(WORDS, schema="1.0"),
        card(WORDS, body=None),
        card("x"),
        card({"tag": "action", "actions": []}),
        card({"tag": "note", "text": WORDS["text"]}),
        card({"tag": "markdown"}),
        card({"tag": "div", "text": "x"}),
        card({**BUTTON, "behaviors": []}),
        card({**BUTTON, "behaviors": [{"type": "open_url"}]}),
        card({**BUTTON, "text": {"tag": "x"}}),
        card(*[WORDS] * 201),
    ],
)
def test_other_cards_are_refused(content: dict[str, Any]) -> None:
    assert code("interactive", content) == 230099
