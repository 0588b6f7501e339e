"""The JSON of the console's socket: messages and recalls in, replies and running turns out. Pure."""

import hashlib
import json
import mimetypes
import re
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bridge.channel import FileKind, Inbound, LiveTurn, OutboundPart, Recalled, RemoteFile, WaitingPart
from bridge.channel.text import clean

MAX_FILES: Final = 64
MAX_WAIT_SECONDS: Final = 25.0
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
_WAIT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?", re.ASCII)


class WrongError(ValueError):
    """The request cannot be understood; the text names the field and holds no value."""


def plain(value: str) -> str:
    """``value``, where it can be an id or a name. Raises ValueError else."""
    if not value.isprintable() or value != value.strip() or not 1 <= len(value) <= 128:
        raise ValueError("must be 1 to 128 printable characters, without blanks around")
    return value


def absolute(value: str) -> str:
    if not PurePath(value).is_absolute() or "\0" in value:
        raise ValueError("must be a file's absolute path")
    return value


Plain = Annotated[str, AfterValidator(plain)]


class Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, hide_input_in_errors=True)


class File(Wire):
    """A file of the message, on this machine. ``size`` is in bytes, as it was when the message was sent."""

    path: Annotated[str, Field(max_length=4096), AfterValidator(absolute)]
    size: Annotated[int, Field(ge=0, lt=2**53)] | None = None


class Message(Wire):
    type: Literal["message"]
    id: Plain
    conversation: Plain
    text: str = ""
    files: Annotated[tuple[File, ...], Field(max_length=MAX_FILES)] = ()


class Recall(Wire):
    """The message ``id`` is taken back: its turn stops, or never starts."""

    type: Literal["recall"]
    id: Plain
    conversation: Plain


_POSTED: TypeAdapter[Message | Recall] = TypeAdapter(Annotated[Message | Recall, Field(discriminator="type")])


def read_item(body: bytes, sender: str, at: datetime) -> tuple[Inbound | Recalled, str]:
    """What was posted, and its id.

    Raises:
        WrongError: it cannot be accepted.
    """
    try:
        posted = _POSTED.validate_json(body)
    except ValidationError as error:
        raise WrongError(_reason(error)) from None
    if isinstance(posted, Recall):
        return Recalled(posted.id, sender, posted.conversation), posted.id
    text = clean(posted.text)
    if not text.strip() and not posted.files:
        raise WrongError("text: a message needs a text or a file")
    return _inbound(posted, text, sender, hashlib.sha256(body).hexdigest(), at), posted.id


def _inbound(message: Message, text: str, sender: str, digest: str, at: datetime) -> Inbound:
    return Inbound(
        message_id=message.id,
        sender=sender,
        chat=message.conversation,
        to=message.conversation,
        reply_to=message.id,
        text=text,
        files=tuple(remote_file(each) for each in message.files),
        sent_at=at,
        body_digest=digest,
    )


def remote_file(file: File) -> RemoteFile:
    """A local file as the message brings it: its path is all that it takes to fetch it, at any time."""
    mime = mimetypes.guess_type(file.path, strict=False)[0] or ""
    family = mime.partition("/")[0]
    kind = FileKind(family) if family in ("image", "audio", "video") else FileKind.FILE
    return RemoteFile(file.path, kind, clean(PurePath(file.path).name), mime, file.size)


def shown_part(waiting: WaitingPart) -> dict[str, Any]:
    """One part of a reply. ``part`` counts from 1 over texts and files together."""
    part = waiting.part
    fields: dict[str, Any] = {
        "cursor": waiting.cursor,
        "id": part.client_id,
        "reply": part.reply_id,
        "conversation": part.to,
        "reply_to": part.reply_to,
        "part": part.part + 1,
        "parts": part.parts,
    }
    if isinstance(part, OutboundPart):
        return {**fields, "text": part.text, "notice": part.notice}
    file = {"path": str(part.path), "name": part.name, "mime": part.mime, "size": part.size}
    return {**fields, "text": "", "notice": "", "file": file}


def shown_turn(turn: LiveTurn) -> dict[str, Any]:
    return {
        "version": turn.version,
        "text": turn.text,
        "tool": turn.tool,
        "progress": turn.progress,
        "over": turn.over,
    }


def number(text: str, name: str) -> int:
    """Raises WrongError where ``text``, which is called ``name``, is no number of ours."""
    if not _NUMBER.fullmatch(text):
        raise WrongError(f"{name}: must be a number that an answer gave")
    return int(text)


def seconds(text: str) -> float:
    """Raises WrongError where ``text`` is no wait."""
    if not _WAIT.fullmatch(text) or float(text) > MAX_WAIT_SECONDS:
        raise WrongError(f"wait: must be 0 to {MAX_WAIT_SECONDS:g} seconds")
    return float(text)


def name_of(text: str, name: str) -> str:
    """Raises WrongError where ``text``, which is called ``name``, is none."""
    try:
        return plain(text)
    except ValueError as error:
        raise WrongError(f"{name}: {error}") from None


def dump(value: object) -> bytes:
    """Compact JSON in UTF-8; half a surrogate pair, which has no form there, as its escape."""
    return json.dumps(value, separators=(",", ":")).encode()


def _reason(error: ValidationError) -> str:
    """The first complaint: the field's name, which is one of ours, and what is wrong with it."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"].startswith("union_tag"):  # its text holds the value
        return "type: must be message or recall"
    where = ".".join(str(step) for step in first["loc"]) or "the body"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"
