"""A message's content, of every type that Feishu has, as text and files. Pure; never fails.

Source: https://open.feishu.cn/document/server-docs/im-v1/message-content-description/message_content
"""

import re
from collections.abc import Callable
from typing import Any

from bridge.channel import FileKind, RemoteFile, value
from bridge.channel.text import clean
from channels.feishu.card import read_card
from channels.feishu.mentions import NOBODY, Mentioned, plain_name
from channels.feishu.post import Post
from channels.feishu.wire import instant, read_object, remote_file, text_of

Fields = dict[str, Any]


@value
class Content:
    """``label`` says in words what the files are, where they are only spoken of."""

    text: str = ""
    files: tuple[RemoteFile, ...] = ()
    label: str = ""

    @property
    def line(self) -> str:
        return " ".join(filter(None, (self.text, self.label)))


def read_content(message_id: str, kind: str, content: str, mentioned: Mentioned) -> Content:
    """What the message holds. ``kind`` is its type; one that is not known becomes a line that names it."""
    if kind == "merge_forward":  # its content is a fixed sentence, and what it bundles is looked up
        return Content(FORWARDED)
    fields = read_object(content)
    if fields is None:
        return Content(f"[Unreadable {_word(kind)} message]")
    if kind == "text":
        return Content(mentioned.in_text(clean(text_of(fields, "text"))))
    if kind == "post":
        post = Post(message_id, mentioned)
        return Content(clean(post.read(fields)), tuple(post.files), post.label)
    if (file := _FILES.get(kind)) is not None:
        return file(message_id, fields)
    if (line := _LINES.get(kind)) is not None:
        return Content(clean(line(fields)))
    return Content(f"[Message of a kind that cannot be shown: {_word(kind)}]")


def _image(message_id: str, fields: Fields) -> Content:
    return Content(
        "", (remote_file(message_id, fields.get("image_key"), "image", FileKind.IMAGE),), "[Image]"
    )


def _file(message_id: str, fields: Fields) -> Content:
    return _named(message_id, fields, FileKind.FILE, "File")


def _video(message_id: str, fields: Fields) -> Content:
    return _named(message_id, fields, FileKind.VIDEO, "Video")


def _named(message_id: str, fields: Fields, kind: FileKind, word: str) -> Content:
    name = clean(text_of(fields, "file_name"))
    file = remote_file(message_id, fields.get("file_key"), "file", kind, name)
    shown = plain_name(name)
    return Content("", (file,), f"[{word}: {shown}]" if shown else f"[{word}]")


def _voice(message_id: str, fields: Fields) -> Content:
    file = remote_file(message_id, fields.get("file_key"), "file", FileKind.AUDIO, mime="audio/ogg")
    ms = fields.get("duration")
    length = f", {ms / 1000:.0f} s" if isinstance(ms, int) and 0 < ms < 86_400_000 else ""
    return Content("", (file,), f"[Voice message{length}]")


def _line(word: str, *keys: str) -> Callable[[Fields], str]:
    def line(fields: Fields) -> str:
        return _bracket(word, *(_value(fields, key) for key in keys))

    return line


def _vote(fields: Fields) -> str:
    options = fields.get("options")
    texts = [each for each in options if isinstance(each, str)] if isinstance(options, list) else []
    return _bracket("Poll", text_of(fields, "topic"), " / ".join(texts))


def _todo(fields: Fields) -> str:
    summary = fields.get("summary")
    text = (
        Post("", NOBODY).read(summary).replace("\n", " ")
        if isinstance(summary, dict)
        else _value(fields, "summary")
    )
    return _bracket("Task", text, _time(fields, "due_time", "due"))


def _meeting(fields: Fields) -> str:
    return _bracket("Video meeting", text_of(fields, "topic"), _time(fields, "start_time", "from"))


def _event(fields: Fields) -> str:
    return _bracket(
        "Calendar event",
        text_of(fields, "summary"),
        _time(fields, "start_time", "from"),
        _time(fields, "end_time", "to"),
    )


def _system(fields: Fields) -> str:
    """``template`` has ``{from_user}`` and the like, whose values stand beside it as lists of names."""

    def names(found: re.Match[str]) -> str:
        value = fields.get(found[1])
        some = value[:_MOST_NAMES] if isinstance(value, list) else []
        return ", ".join(plain_name(each) for each in some if isinstance(each, str))

    template = text_of(fields, "template")[:_DETAIL_CHARACTERS]
    return _bracket("Notice", re.sub(r"\{(\w+)\}", names, template, count=_MOST_NAMES))


def _bracket(word: str, *details: str) -> str:
    """One line; what it is made of can be long, so that each detail is cut."""
    shown = ", ".join(" ".join(each.split())[:_DETAIL_CHARACTERS] for each in details if each.strip())
    return f"[{word}: {shown}]" if shown else f"[{word}]"


def _value(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return (
        str(value)
        if isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 10**18)
        else ""
    )


def _time(fields: Fields, key: str, word: str) -> str:
    at = instant(_value(fields, key))
    return f"{word} {at:%Y-%m-%d %H:%M} UTC" if at else ""


def _word(kind: str) -> str:
    return plain_name(kind) or "unnamed"


_DETAIL_CHARACTERS = 2000
_MOST_NAMES = 50  # of a list, and lists in a notice
FORWARDED = "[Forwarded messages]"

_FILES: dict[str, Callable[[str, Fields], Content]] = {
    "image": _image, "file": _file, "audio": _voice, "media": _video,
}  # fmt: skip

_LINES: dict[str, Callable[[Fields], str]] = {
    "sticker": _line("Sticker"),
    "folder": _line("Folder", "file_name"),
    "interactive": read_card,
    "share_chat": _line("Shared chat", "chat_id"),
    "share_user": _line("Shared contact", "user_id"),
    "location": _line("Location", "name", "latitude", "longitude"),
    "todo": _todo,
    "vote": _vote,
    "hongbao": _line("Red packet", "text"),
    "video_chat": _meeting,
    "system": _system,
    "share_calendar_event": _event,
    "calendar": _event,
    "general_calendar": _event,
}
