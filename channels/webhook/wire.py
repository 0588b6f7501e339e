"""The JSON that comes in: ``message.created``. Pure."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from yarl import URL

from bridge.channel import FileKind, Ignored, Inbound, RemoteFile
from bridge.channel.text import clean
from channels.webhook.settings import is_address

INLINE_BYTES: Final = 262_144  # a file up to here travels inside the JSON
MAX_ATTACHMENTS: Final = 64

MESSAGE: Final = "message.created"


_NO_ID = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class MalformedError(ValueError):
    """The body is not JSON, or not an object of ours; the text holds none of it."""


class SemanticError(ValueError):
    """The body is an event that cannot be accepted; the text names the field and holds no value."""


def _id(value: str) -> str:
    if _NO_ID.search(value):
        raise ValueError("has characters that no id may have")
    return value


Id = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_id)]
OptionalId = Annotated[str, Field(max_length=256), AfterValidator(_id)]


class Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, hide_input_in_errors=True)


class Attachment(Wire):
    name: Annotated[str, Field(max_length=1024)]
    mime_type: Annotated[str, Field(max_length=256, pattern=r"^[ -~]*$")] | None = None
    size: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    url: Annotated[str, Field(max_length=4096)] | None = None
    content_base64: str | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{64}$")] | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> "Attachment":
        if (self.url is None) == (self.content_base64 is None):
            raise ValueError("needs either url or content_base64")
        return self


class Sender(Wire):
    id: Id
    is_bot: bool | None = None


class Message(Wire):
    conversation_id: Id
    message_id: Id
    sender: Sender
    thread_id: OptionalId | None = None
    text: str | None = None
    attachments: Annotated[tuple[Attachment, ...], Field(strict=False, max_length=MAX_ATTACHMENTS)] | None = (
        None
    )
    mentioned: bool | None = None
    is_direct: bool | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Message":
        if not self.text and not self.attachments:
            raise ValueError("needs text or attachments")
        return self


def read_event(body: bytes, webhook_id: str, may_fetch: Callable[[URL], bool]) -> Inbound | Ignored:
    """The event in a verified body. ``may_fetch`` judges the address of an attachment.

    Raises:
        MalformedError, SemanticError: it cannot be accepted.
    """
    event = _object(body)
    kind, data = event.get("type"), event.get("data")
    if not isinstance(kind, str) or not isinstance(data, dict):
        raise MalformedError("an event has a type and an object as data")
    if kind != MESSAGE:
        return Ignored("unknown_type", webhook_id)
    try:
        message = Message.model_validate(data)
    except ValidationError as error:
        raise SemanticError(_reason(error)) from None
    if message.sender.is_bot:
        return Ignored("bot", webhook_id)
    if message.is_direct is False and message.mentioned is False:
        return Ignored("not_mentioned", webhook_id)
    return _inbound(message, webhook_id, body, _instant(event.get("timestamp")), may_fetch)


def _inbound(
    message: Message, webhook_id: str, body: bytes, sent_at: datetime | None, may_fetch: Callable[[URL], bool]
) -> Inbound:
    thread = message.thread_id or ""
    return Inbound(
        message_id=webhook_id,
        sender=message.sender.id,
        chat=message.conversation_id,
        to=lane(message.conversation_id, thread),
        reply_to=message.message_id,
        text=clean(message.text or ""),
        files=tuple(remote_file(each, may_fetch) for each in message.attachments or ()),
        group=message.is_direct is False,
        thread=thread,
        sent_at=sent_at,
        body_digest=hashlib.sha256(body).hexdigest(),
    )


def remote_file(attachment: Attachment, may_fetch: Callable[[URL], bool]) -> RemoteFile:
    """What ``fetch`` needs later, as JSON: the bytes themselves, or the address and the expected digest.

    Raises:
        SemanticError: the bytes are not those announced, or the address is not one to fetch from.
    """
    sha256 = (attachment.sha256 or "").lower()
    size: int | None
    if attachment.content_base64 is not None:
        size = _checked_content(attachment, sha256)
        key = {"content": attachment.content_base64}
    else:
        address = attachment.url or ""
        if not is_address(address) or not may_fetch(URL(address)):
            raise SemanticError("attachments: the url is no https address on an allowed host")
        size, key = attachment.size, {"url": address, "sha256": sha256}
    mime = attachment.mime_type or ""
    return RemoteFile(json.dumps(key), kind_of(mime), clean(attachment.name), mime, size)


def _checked_content(attachment: Attachment, sha256: str) -> int:
    content = decode_content(attachment.content_base64 or "")
    if len(content) > INLINE_BYTES:
        raise SemanticError(f"attachments: over {INLINE_BYTES} bytes inline; give a url")
    if attachment.size not in (None, len(content)):
        raise SemanticError("attachments: size is not that of the content")
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise SemanticError("attachments: sha256 is not that of the content")
    return len(content)


def decode_content(text: str) -> bytes:
    """The bytes of strict base64.

    Raises:
        SemanticError: it is none.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SemanticError("attachments: content_base64 is not base64") from None


def kind_of(mime: str) -> FileKind:
    family = mime.partition("/")[0].strip().lower()
    return FileKind(family) if family in ("image", "audio", "video") else FileKind.FILE


def lane(conversation: str, thread: str) -> str:
    """A conversation and its thread, if any, as one text: JSON, so that no ids are taken for others."""
    return json.dumps([conversation, thread] if thread else [conversation], ensure_ascii=False)


def unlane(to: str) -> tuple[str, str]:
    """What ``lane`` was given. Anything else is a conversation's id, as an operator types it."""
    try:
        parts = json.loads(to)
    except ValueError:
        return to, ""
    match parts:
        case [str(conversation)]:
            return conversation, ""
        case [str(conversation), str(thread)]:
            return conversation, thread
    return to, ""


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise MalformedError("the body is not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise MalformedError("the body is not a JSON object")
    return value


def _no_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are no JSON")


def _reason(error: ValidationError) -> str:
    """The first complaint: the field's name, which is one of ours, and what is wrong with it."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"]) or "data"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def _instant(value: object) -> datetime | None:
    """An ISO 8601 time with its offset, or ``None``: the field is recommended, not required."""
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
        return instant.astimezone(UTC) if instant and instant.tzinfo else None
    except (ValueError, OverflowError):
        return None
