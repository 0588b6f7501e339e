"""The JSON that comes in: messages, and what becomes of them afterwards. Pure.

A message's id is the ``webhook-id`` under which it came. An update or a deletion is an event of its own, with
an id of its own, and names the message by that first one.
"""

import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator
from yarl import URL

from bridge.channel import Edited, Ignored, Inbound, Item, Recalled
from bridge.channel.text import clean
from channels.webhook.attached import MAX_ATTACHMENTS, Attachment, SemanticError, Wire, remote_file
from channels.webhook.signature import Signed

_NO_ID = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
W = TypeVar("W", bound=Wire)
MayFetch = Callable[[URL], bool]
"""Whether the address of an attachment may be asked."""


class MalformedError(ValueError):
    """The body is not JSON, or not an object of ours; the text holds none of it."""


def _id(value: str) -> str:
    if _NO_ID.search(value):
        raise ValueError("has characters that no id may have")
    return value


Id = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_id)]
OptionalId = Annotated[str, Field(max_length=256), AfterValidator(_id)]


class Sender(Wire):
    id: Id
    is_bot: bool | None = None


class Named(Wire):
    """What every event about a message says. ``webhook_id`` is that of the message where it is not its id."""

    conversation_id: Id
    message_id: Id
    sender: Sender
    webhook_id: Id | None = None


class Message(Named):
    thread_id: OptionalId | None = None
    text: str | None = None
    attachments: Annotated[tuple[Attachment, ...], Field(strict=False, max_length=MAX_ATTACHMENTS)] | None = (
        None
    )
    mentioned: bool | None = None
    is_direct: bool | None = None
    revision: Annotated[int, Field(ge=0, lt=2**53)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Message":
        if not self.text and not self.attachments:
            raise ValueError("needs text or attachments")
        return self


def read_event(body: bytes, signed: Signed, may_fetch: MayFetch) -> Item:
    """The event in a verified body.

    Raises:
        MalformedError, SemanticError: it cannot be accepted.
    """
    event = _object(body)
    kind, data, at = event.get("type"), event.get("data"), _instant(event.get("timestamp"))
    if not isinstance(kind, str) or not isinstance(data, dict):
        raise MalformedError("an event has a type and an object as data")
    match kind:
        case "message.created":
            message = _model(Message, data)
            message_id = signed.webhook_id or made_id(message)
            return _unwanted(message, message_id) or _inbound(
                message, message_id, signed, at, may_fetch, body
            )
        case "message.updated":
            message = _model(Message, data)
            return _unwanted(message, signed.webhook_id) or _edited(message, signed, at, may_fetch)
        case "message.deleted":
            named = _model(Named, data)
            return Recalled(_original(named, signed), named.sender.id, named.conversation_id)
    return Ignored("unknown_type", signed.webhook_id)


def made_id(message: Named) -> str:
    """The id of a message that came without one of its own: made of its conversation's and its own."""
    return hashlib.sha256(lane(message.conversation_id, message.message_id).encode()).hexdigest()[:32]


def _original(message: Named, signed: Signed) -> str:
    """The id under which the message came that ``message`` is about."""
    return message.webhook_id or (message.message_id if signed.webhook_id else made_id(message))


def _unwanted(message: Message, message_id: str) -> Ignored | None:
    if message.sender.is_bot:
        return Ignored("bot", message_id)
    if message.is_direct is False and message.mentioned is False:
        return Ignored("not_mentioned", message_id)
    return None


def _edited(message: Message, signed: Signed, at: datetime | None, may_fetch: MayFetch) -> Edited:
    revision = message.revision
    if revision is None:
        if at is None:
            raise SemanticError("revision: an update needs it, or the event a timestamp")
        revision = max(0, int(at.timestamp() * 1000))
    return Edited(_inbound(message, _original(message, signed), signed, at, may_fetch), revision)


def _inbound(
    message: Message,
    message_id: str,
    signed: Signed,
    sent_at: datetime | None,
    may_fetch: MayFetch,
    body: bytes = b"",
) -> Inbound:
    """With ``body``, its id belongs to these very bytes.

    Where no time was signed, nor was the id, and whoever repeats a captured request may change it: the
    message's own id then makes a second key.
    """
    thread = message.thread_id or ""
    return Inbound(
        message_id=message_id,
        sender=message.sender.id,
        chat=message.conversation_id,
        to=lane(message.conversation_id, thread),
        reply_to=message.message_id,
        text=clean(message.text or ""),
        files=tuple(remote_file(each, may_fetch) for each in message.attachments or ()),
        group=message.is_direct is False,
        thread=thread,
        sent_at=sent_at,
        stamp="" if signed.sent_at else message.message_id,
        body_digest=hashlib.sha256(body).hexdigest() if body else "",
    )


def _model(wire: type[W], data: dict[str, Any]) -> W:
    try:
        return wire.model_validate(data)
    except ValidationError as error:
        raise SemanticError(_reason(error)) from None


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
