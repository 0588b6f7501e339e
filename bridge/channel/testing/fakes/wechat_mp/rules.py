"""What the platform refuses, with the codes that it gives. Pure.

Source: https://developers.weixin.qq.com/doc/offiaccount/Message_Management/Service_Center_messages.html
and …/Asset_Management/New_temporary_materials.html
"""

import json
import re
from typing import Any

from bridge.channel.testing.fakes.wechat_mp.world import By, Shown, World

TEXT_BYTES = 2048
_MIB = 1024 * 1024
_UPLOADS: dict[str, tuple[int, tuple[bytes, ...]]] = {  # the most bytes, and how such files begin
    "image": (10 * _MIB, (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8")),
    "voice": (2 * _MIB, (b"#!AMR", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
    "video": (10 * _MIB, ()),
    "thumb": (64 * 1024, (b"\xff\xd8\xff",)),
}
_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[0-9a-fA-F]{4}")


class RefusedError(Exception):
    """The platform's own refusal."""

    def __init__(self, code: int, text: str = "refused") -> None:
        super().__init__(text)
        self.code = code


def service_message(world: World, raw: bytes) -> Shown:
    """What a customer service's call shows; it uses up what its recipient may be sent.

    Raises:
        RefusedError: the platform does not take it.
    """
    body = read_object(raw)
    to, kind = body.get("touser"), body.get("msgtype")
    if not isinstance(to, str) or to not in world.followers:
        raise RefusedError(40003, "invalid openid")
    inner = body.get(kind) if isinstance(kind, str) else None
    if not isinstance(kind, str) or not isinstance(inner, dict):
        raise RefusedError(40008, "invalid message type")
    shown = _text(to, inner, raw) if kind == "text" else _media(world, to, kind, inner)
    if code := world.followers[to].take(world.clock.monotonic()):
        raise RefusedError(code, "response out of time limit" if code == 45015 else "out of response count")
    return shown


def _text(to: str, inner: dict[str, Any], raw: bytes) -> Shown:
    content = inner.get("content")
    if not isinstance(content, str) or not content.strip():
        raise RefusedError(44004, "empty content")
    if len(content.encode()) > TEXT_BYTES:
        raise RefusedError(45002, "content size out of limit")
    shown = json.dumps(content)[1:-1] if _ESCAPE.search(raw) else content  # escapes are shown as they came
    return Shown(to, By.SERVICE, "text", shown)


def _media(world: World, to: str, kind: str, inner: dict[str, Any]) -> Shown:
    if kind not in ("image", "voice", "video"):
        raise RefusedError(40008, "invalid message type")
    media = world.find_media(inner.get("media_id"))
    if media is None or media.kind != kind:
        raise RefusedError(40007, "invalid media_id")
    cover = world.find_media(inner.get("thumb_media_id"))
    if kind == "video" and (cover is None or cover.kind != "thumb"):
        raise RefusedError(40007, "invalid thumb_media_id")
    return Shown(to, By.SERVICE, kind, str(inner.get("title", "")), media)


def check_upload(kind: str, name: str, data: bytes) -> None:
    """Refuse what the platform does not store."""
    if kind not in _UPLOADS:
        raise RefusedError(40004, "invalid media type")
    most, heads = _UPLOADS[kind]
    if not data:
        raise RefusedError(44001, "empty media data")
    if len(data) > most:
        raise RefusedError(45001, "media size out of limit")
    fits = data.startswith(heads) if heads else data[4:8] == b"ftyp"
    if "." not in name or not fits:
        raise RefusedError(40005, "invalid file type")


def read_object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise RefusedError(47001, "data format error")
    return body
