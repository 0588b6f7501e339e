"""What the platform refuses, with the codes that it gives. Pure.

Source: https://open.feishu.cn/document/server-docs/im-v1/message/create and …/im-v1/file/create
"""

import json
import re
import struct
from typing import Any

from bridge.channel.testing.fakes.feishu.world import World

TEXT_BYTES = 150 * 1024
RICH_BYTES = 30 * 1024
FILE_BYTES = 30 * 1024 * 1024
IMAGE_BYTES = 10 * 1024 * 1024
EDITS = 20  # of one message
EMOJI = frozenset({"Typing", "OK", "THUMBSUP", "DONE"})  # a few of them
RECEIVE_TYPES = frozenset({"open_id", "user_id", "union_id", "email", "chat_id"})
FILE_TYPES = frozenset({"opus", "mp4", "pdf", "doc", "xls", "ppt", "stream"})
_FIELD = 99992402
_KINDS = frozenset(
    {"text", "post", "image", "file", "audio", "media", "sticker", "interactive", "share_chat"}
)
_TAGS = frozenset({"text", "a", "at", "img", "media", "emotion", "hr", "code_block", "md"})
_ALONE = frozenset({"img", "media", "hr", "code_block", "md"})
_STYLES = frozenset({"bold", "italic", "underline", "lineThrough"})
_UPLOADS: dict[str, frozenset[str] | set[str]] = {
    "audio": {"opus"},
    "media": {"mp4"},
    "file": FILE_TYPES - {"opus", "mp4"},
}
_ELEMENTS = 200
_LANGUAGES = frozenset(
    "python c cpp go java kotlin swift php ruby rust javascript typescript bash shell sql json xml yaml html"
    " thrift".split()
)
_AT = re.compile(r"<at\s+(?:user_id|id|open_id|email)\s*=\s*[\"']?([^\"'>\s]*)", re.IGNORECASE)
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"BM", b"\x00\x00\x01\x00", b"II*\x00", b"MM\x00*")


class RefusedError(Exception):
    """The platform's own refusal."""

    def __init__(self, code: int, text: str = "refused", status: int = 400) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


def check_message(world: World, body: Any, size: int, *, reply: bool) -> None:
    """Refuse a body that the message calls would refuse. ``size`` is the request's, in bytes."""
    if not isinstance(body, dict):
        raise RefusedError(_FIELD, "field validation failed")
    needed = ("msg_type", "content") if reply else ("receive_id", "msg_type", "content")
    if not all(isinstance(body.get(name), str) and body[name] for name in needed):
        raise RefusedError(_FIELD, "field validation failed")
    uuid = body.get("uuid", "")
    if (
        not isinstance(uuid, str)
        or len(uuid) > 50
        or not isinstance(body.get("reply_in_thread", False), bool)
    ):
        raise RefusedError(_FIELD, "field validation failed")
    kind = body["msg_type"]
    if kind not in _KINDS:
        raise RefusedError(230001, "invalid msg_type")
    if size > (TEXT_BYTES if kind == "text" else RICH_BYTES):
        raise RefusedError(230025, "the length of the message content reaches its limit")
    _check_content(world, kind, body["content"])


def _check_content(world: World, kind: str, content: str) -> None:
    try:
        value = json.loads(content)
    except ValueError:
        raise RefusedError(230001, "content is not a string in json format") from None
    if not isinstance(value, dict):
        raise RefusedError(230001, "content is not an object")
    match kind:
        case "text":
            if not isinstance(value.get("text"), str) or not value["text"].strip():
                raise RefusedError(230001, "text is empty")
        case "post":
            _check_post(value)
        case "interactive":
            _check_card(value)
        case "image":
            _check_upload(world, value.get("image_key"), {"image"}, 230001)
        case "audio" | "media" | "file":
            _check_upload(world, value.get("file_key"), _UPLOADS[kind], 230055)


def _check_upload(world: World, key: object, kinds: set[str] | frozenset[str], code: int) -> None:
    upload = world.uploads.get(key) if isinstance(key, str) else None
    if upload is None:
        raise RefusedError(230001, "the key is not of this bot")
    if upload.kind not in kinds:
        raise RefusedError(code, "the type of file does not match the type of message")


def _check_card(value: dict[str, Any]) -> None:
    """As far as the bot makes cards: of version 2, with texts and buttons that call back."""
    body = value.get("body")
    elements = body.get("elements") if isinstance(body, dict) else None
    if value.get("schema") != "2.0" or not isinstance(elements, list) or not 0 < len(elements) <= _ELEMENTS:
        raise RefusedError(230099, "Failed to create card content, ext=ErrCode: 200621")
    for element in elements:
        if not isinstance(element, dict) or not _is_element(element):
            raise RefusedError(230099, "Failed to create card content, ext=ErrCode: 200861")


def _is_element(element: dict[str, Any]) -> bool:
    if element.get("tag") == "markdown":
        return isinstance(element.get("content"), str)
    text = element.get("text")
    words = isinstance(text, dict) and text.get("tag") in ("plain_text", "lark_md")
    if element.get("tag") == "div":
        return words
    behaviors = element.get("behaviors")
    calls = isinstance(behaviors, list) and bool(behaviors) and all(map(_is_callback, behaviors))
    return element.get("tag") == "button" and words and calls


def _is_callback(behavior: Any) -> bool:
    return isinstance(behavior, dict) and behavior.get("type") == "callback" and "value" in behavior


def _check_post(value: dict[str, Any]) -> None:
    if "post" in value or not value:
        raise RefusedError(230001, "invalid post")
    for post in value.values():
        rows = post.get("content") if isinstance(post, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise RefusedError(230001, "invalid post content")
        for row in rows:
            for element in row:
                _check_element(element, alone=len(row) == 1)


def _check_element(element: Any, *, alone: bool) -> None:
    if not isinstance(element, dict) or element.get("tag") not in _TAGS:
        raise RefusedError(230001, "invalid post tag")
    tag = element["tag"]
    if tag in _ALONE and not alone:
        raise RefusedError(230001, f"{tag} must be a paragraph of its own")
    if tag in ("text", "a", "code_block", "md") and not isinstance(element.get("text"), str):
        raise RefusedError(230001, "invalid text")
    if tag == "a" and not re.match(r"https?://[^\s/]", str(element.get("href", ""))):
        raise RefusedError(230001, "invalid href")
    if not set(element.get("style", [])) <= _STYLES:
        raise RefusedError(230001, "invalid style")
    if tag == "code_block" and element.get("language", "JSON").lower() not in _LANGUAGES:
        raise RefusedError(230001, "invalid language")


def notified(kind: str, content: str) -> tuple[str, ...]:
    """Whom a message calls: by ``<at>`` in its text, or by an ``at`` tag of a post."""
    value = json.loads(content)
    if kind == "text":
        return tuple(_AT.findall(value["text"]))
    if kind != "post":
        return ()
    elements = [each for post in value.values() for row in post["content"] for each in row]
    called = [each.get("user_id", "") for each in elements if each["tag"] == "at"]
    marked = [_AT.findall(each.get("text", "")) for each in elements if each["tag"] == "md"]
    return (*called, *(each for some in marked for each in some))


def check_image(data: bytes) -> None:
    if not data:
        raise RefusedError(234010, "File's size can't be 0.")
    if len(data) > IMAGE_BYTES:
        raise RefusedError(234006, "The file size exceed the max value.")
    if not data.startswith(_MAGIC) and data[:4] + data[8:12] != b"RIFFWEBP" and data[4:8] != b"ftyp":
        raise RefusedError(234011, "Can't recognize the image format.")
    width, height, most = _pixels(data)
    if max(width, height) > most:
        raise RefusedError(234039, "Invalid image resolution.")


def _pixels(data: bytes) -> tuple[int, int, int]:
    """Width, height and the most of either, of those formats that say it at a fixed place."""
    if data.startswith(b"\x89PNG") and len(data) >= 24:
        return (*struct.unpack(">II", data[16:24]), 12_000)
    if data.startswith(b"GIF8") and len(data) >= 10:
        return (*struct.unpack("<HH", data[6:10]), 2_000)
    return 0, 0, 12_000


def check_file(file_type: str, file_name: str, data: bytes) -> None:
    if file_type not in FILE_TYPES or not file_name:
        raise RefusedError(234001, "Invalid request param.")
    if not data:
        raise RefusedError(234010, "File's size can't be 0.")
    if len(data) > FILE_BYTES:
        raise RefusedError(234006, "The file size exceed the max value.")
