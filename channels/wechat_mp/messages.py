"""What a follower sent, of every type that WeChat has. Pure; never fails.

Source: https://developers.weixin.qq.com/doc/offiaccount/Message_Management/Receiving_standard_messages.html
and …/Receiving_event_pushes.html
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from bridge.channel import FileKind, Ignored, Inbound, Item, RemoteFile, Unreadable
from channels.wechat_mp.wire import Body

_ID = re.compile(r"[\w@.-]{1,128}", re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,11}", re.ASCII)
_DETAIL_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class MediaKey:
    """All that fetching a file needs, also after a restart.

    Beside its id a voice may have another of a ``better`` recording, and a picture an ``address``.
    """

    media_id: str
    better: str = ""
    address: str = ""

    def write(self) -> str:
        return json.dumps([self.media_id, self.better, self.address])

    @classmethod
    def read(cls, key: str) -> Self:
        """What ``write`` wrote.

        Raises:
            ValueError: it is something else.
        """
        media_id, better, address = json.loads(key)
        return cls(str(media_id), str(better), str(address))


@dataclass(frozen=True, slots=True)
class Content:
    text: str = ""
    files: tuple[RemoteFile, ...] = ()


def read_message(body: Body, account: str) -> Item:
    """What ``body`` says to the bot. ``account`` is its original id."""
    sender, kind = body.get("FromUserName"), body.get("MsgType").lower()
    if sender == account:
        return Ignored("own")
    if not _ID.fullmatch(sender) or not kind:
        return Unreadable("a message lacks its sender or its type")
    if kind == "event":
        return _event(body, sender)
    message_id = body.get("MsgId")
    if not _ID.fullmatch(message_id):
        return Unreadable("a message has no id")
    return _inbound(body, sender, message_id, _content(body, kind))


def _event(body: Body, sender: str) -> Item:
    """A menu's button says its key to the bot; nothing else that followers do is said to it."""
    message_id = _event_id(body, sender)
    key = body.get("EventKey").strip()
    if body.get("Event").upper() != "CLICK" or not key:
        return Ignored("event", message_id)
    return _inbound(body, sender, message_id, Content(key))


def _event_id(body: Body, sender: str) -> str:
    """Events have no id: the same one is pushed with the same sender, time and content."""
    parts = (sender, body.get("CreateTime"), body.get("Event"), body.get("EventKey"))
    return "event_" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _inbound(body: Body, sender: str, message_id: str, content: Content) -> Inbound:
    return Inbound(
        message_id=message_id,
        sender=sender,
        chat=sender,
        to=sender,
        text=content.text,
        files=content.files,
        sent_at=instant(body.get("CreateTime")),
    )


def instant(seconds: str) -> datetime | None:
    """The instant of Unix seconds as digits, else None."""
    return datetime.fromtimestamp(int(seconds), UTC) if _SECONDS.fullmatch(seconds) else None


def _content(body: Body, kind: str) -> Content:
    reader = _KINDS.get(kind)
    if reader is not None:
        return reader(body)
    name = kind if _ID.fullmatch(kind) else "unnamed"
    return Content(f"[Message of a kind that cannot be shown: {name}]")


def _spoken(body: Body) -> Content:
    return Content(body.get("Content"))


def _image(body: Body) -> Content:
    key = MediaKey(body.get("MediaId"), address=body.get("PicUrl"))
    return _file(key, FileKind.IMAGE)


def _voice(body: Body) -> Content:
    mime = "audio/amr" if body.get("Format").lower() in ("amr", "") else ""
    key = MediaKey(body.get("MediaId"), better=body.get("MediaId16K"))
    return _file(key, FileKind.AUDIO, mime, body.get("Recognition").strip())


def _video(body: Body) -> Content:
    return _file(MediaKey(body.get("MediaId")), FileKind.VIDEO)


def _file(key: MediaKey, kind: FileKind, mime: str = "", transcript: str = "") -> Content:
    return Content("", (RemoteFile(key.write(), kind, mime=mime, transcript=transcript),))


def _location(body: Body) -> Content:
    return _bracket("Location", body.get("Label"), body.get("Location_X"), body.get("Location_Y"))


def _link(body: Body) -> Content:
    return _bracket("Link", body.get("Title"), body.get("Description"), body.get("Url"))


def _bracket(word: str, *details: str) -> Content:
    """One line; what it is made of can be long, so that each detail is cut."""
    shown = ", ".join(" ".join(each.split())[:_DETAIL_CHARACTERS] for each in details if each.strip())
    return Content(f"[{word}: {shown}]" if shown else f"[{word}]")


_KINDS: dict[str, Callable[[Body], Content]] = {
    "text": _spoken, "image": _image, "voice": _voice, "video": _video, "shortvideo": _video,
    "location": _location, "link": _link,
}  # fmt: skip
