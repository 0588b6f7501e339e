"""What Feishu pushes, named as Feishu names it. Unknown fields are ignored. Pure.

Source: https://open.feishu.cn/document/server-docs/im-v1/message/events/receive
"""

import json
import re
from collections.abc import Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, StringConstraints, TypeAdapter, ValidationError

from bridge.channel import FileKind, RemoteFile, value
from bridge.channel.text import clean

_MAX_MS = 10**14  # the year 5138; what is larger counts smaller units
_UNITS_PER_MS = 1000

_MS = re.compile(r"[0-9]{1,25}")
_SECONDS = re.compile(r"[0-9]{1,10}\.[0-9]{1,9}")

_ID_CHARACTERS = 256
Fields = dict[str, Any]
Id = Annotated[str, StringConstraints(min_length=1, max_length=_ID_CHARACTERS)]


def _or_empty(value: object) -> object:
    """Absent, null and of a wrong type are one for what is optional: a statistic must not cost a message."""
    return clean(value) if isinstance(value, str) else ""


Text = Annotated[str, BeforeValidator(_or_empty)]
Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]
Part = BeforeValidator(lambda value: value if isinstance(value, dict) else {})  # an object, all optional


class Mention(BaseModel):
    """``id`` is an object with open_id in an event, and a plain string in an answer of the REST interface."""

    key: Text = ""
    id: Any = None
    name: Text = ""

    @property
    def open_id(self) -> str:
        found = self.id.get("open_id") if isinstance(self.id, dict) else self.id
        return found if isinstance(found, str) else ""


def _mentions(value: object) -> object:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


Mentions = Annotated[list[Mention], BeforeValidator(_mentions)]
_MENTIONS: TypeAdapter[list[Mention]] = TypeAdapter(Mentions)
_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class OldMessageEvent(BaseModel):
    """The message of a 1.0 envelope. What stands beside these fields varies."""

    open_id: Text = ""
    open_message_id: Id
    open_chat_id: Text = ""
    chat_type: Id
    msg_type: Text = ""
    text: Text = ""
    text_without_at_bot: Text = ""
    is_mention: Flag = False
    image_key: Text = ""
    file_key: Text = ""
    parent_id: Text = ""


@value
class Envelope:
    """Either envelope: ``schema`` tells them apart. ``event`` is read only once it is known whose it is."""

    version: str
    kind: str
    app_id: str
    token: str = field(repr=False)
    event: Any = field(repr=False)
    sent: str = ""
    event_id: str = ""


class RestSender(BaseModel):
    id: Text = ""
    sender_type: Text = ""


class RestBody(BaseModel):
    content: Text = ""


class RestMessage(BaseModel):
    """One item of ``GET /open-apis/im/v1/messages/{id}``; a bundle's descendants follow it in one list."""

    message_id: Text = ""
    upper_message_id: Text = ""
    msg_type: Text = ""
    create_time: Text = ""
    deleted: Flag = False
    sender: Annotated[RestSender, Part] = RestSender()
    body: Annotated[RestBody, Part] = RestBody()
    mentions: Mentions = []


def read_object(raw: bytes | str) -> dict[str, Any] | None:
    """The JSON object in ``raw``; None when it is anything else, however deep or odd. Never raises."""
    try:
        return _OBJECT.validate_json(raw)
    except ValidationError:
        return _read_odd(raw)


def _read_odd(raw: bytes | str) -> dict[str, Any] | None:
    """Halves of surrogate pairs are read too, and cleaned later: they must not cost a message."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def envelope(value: dict[str, Any]) -> Envelope:
    """The frame around an event, whatever it is; missing parts are empty."""
    event = value.get("event")
    inner: dict[str, Any] = event if isinstance(event, dict) else {}
    if "schema" in value:
        header = value.get("header")
        head: dict[str, Any] = header if isinstance(header, dict) else {}
        return Envelope(
            version="2",
            kind=text_of(head, "event_type"),
            token=text_of(head, "token"),
            app_id=text_of(head, "app_id"),
            event=event,
            sent=text_of(head, "create_time"),
            event_id=id_of(head, "event_id"),
        )
    return Envelope(
        version="1",
        kind=text_of(inner, "type"),
        token=text_of(value, "token"),
        app_id=text_of(inner, "app_id"),
        event=event,
        sent=text_of(value, "ts"),
    )


def message_event(event: object) -> tuple[Fields, Fields] | None:
    """The sender and the message of ``im.message.receive_v1``, read by hand: every message comes this way.

    None: it lacks what every message has. Beside the message's ids, nothing in them has been looked at.
    """
    sender = event.get("sender") if isinstance(event, dict) else None
    message = event.get("message") if isinstance(event, dict) else None
    if not isinstance(sender, dict) or not isinstance(message, dict):
        return None
    ids = message.get("message_id"), message.get("chat_id"), message.get("chat_type")
    return (sender, message) if all(map(is_id, ids)) else None


def mentions_in(message: Fields) -> Sequence[Mention]:
    found = message.get("mentions")
    return _MENTIONS.validate_python(found) if found else ()


def line_of(value: Fields, key: str) -> str:
    """A text as it is, which most are, or cleaned; "" for anything else."""
    found = value.get(key, "")
    if not isinstance(found, str):
        return ""
    return found if found.isprintable() else clean(found)


def is_id(value: object) -> bool:
    """Whether it may be an id, which becomes a part of a path: there one of points alone leads elsewhere."""
    if not isinstance(value, str) or not 0 < len(value) <= _ID_CHARACTERS:
        return False
    return value.isprintable() and value.strip(".") != ""


def id_of(value: Fields, key: str) -> str:
    """An id, "" where there is none."""
    found = value.get(key)
    return str(found) if is_id(found) else ""


def text_of(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def instant(stamp: str) -> datetime | None:
    """The instant of a stamp, else None: ms as digits, sometimes more digits, or seconds with a point."""
    if not _MS.fullmatch(stamp):
        return datetime.fromtimestamp(float(stamp), UTC) if _SECONDS.fullmatch(stamp) else None
    ms = int(stamp)
    while ms > _MAX_MS:
        ms //= _UNITS_PER_MS
    return datetime.fromtimestamp(ms / 1000, UTC)


def milliseconds(stamp: str) -> int:
    """The same stamp as a whole number of ms, 0 where it is none."""
    at = instant(stamp)
    return round(at.timestamp() * 1000) if at else 0


def remote_file(
    message_id: str, key: object, kind: str, shown: FileKind, name: str = "", mime: str = ""
) -> RemoteFile:
    """A file of a message. ``kind`` is ``image`` or ``file``, as a download names it."""
    wanted = file_key(message_id, str(key) if is_id(key) else "", kind)
    return RemoteFile(wanted, shown, name, mime, fetchable=is_id(key))


def file_key(message_id: str, key: str, kind: str) -> str:
    """All that a download needs, as one text."""
    return json.dumps([message_id, key, kind])


def file_parts(key: str) -> tuple[str, str, str]:
    """Message, key and kind of what ``file_key`` made.

    Raises:
        ValueError: it is something else.
    """
    message_id, file, kind = json.loads(key)
    return str(message_id), str(file), str(kind)
