"""An ``Inbound`` as JSON and back, and the keys that are made of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256

from pydantic import TypeAdapter

from bridge.channel import Inbound
from bridge.ids import ConversationKey

_INBOUND = TypeAdapter(Inbound)
_DIVIDERS = 3
_STAMP_CHARACTERS = 20
_DIGEST_DIGITS = 32


def encode(message: Inbound) -> str:
    try:
        return _INBOUND.dump_json(message).decode()
    except ValueError:  # half a surrogate pair, which UTF-8 has no form for
        return json.dumps(asdict(message), default=datetime.isoformat)


def decode(payload: str) -> Inbound:
    """What ``encode`` made of it, without what only a later version knows."""
    try:
        return _INBOUND.validate_json(payload)
    except ValueError:  # the same: only the standard library reads it
        return _INBOUND.validate_python(json.loads(payload))


def conversation_of(message: Inbound) -> ConversationKey:
    """One chat, or one sender in a group, or one thread of it. NUL divides, so it is escaped in ids."""
    kind = "group" if message.group else "direct"
    key = f"{kind}\0{message.chat}\0{message.sender}\0{message.thread}"
    if key.count("\0") == _DIVIDERS and "\\" not in key:
        return ConversationKey(key)
    parts = (kind, message.chat, message.sender, message.thread)
    return ConversationKey("\0".join(map(escaped, parts)))


def is_from(conversation: ConversationKey, chat: str, sender: str) -> bool:
    """Whether the conversation is of this chat and this sender; "" is any, and any is of none (``""``)."""
    if not conversation:
        return True
    _, own_chat, own_sender, _ = conversation.split("\0")
    return (not chat or escaped(chat) == own_chat) and (not sender or escaped(sender) == own_sender)


def sender_in(conversation: ConversationKey) -> str:
    """Who writes in it, ``escaped``; "" for none."""
    return conversation.split("\0")[2] if conversation else ""


def escaped(part: str) -> str:
    """An id as it stands in a key."""
    return part.replace("\\", "\\\\").replace("\0", "\\0")


def digest_of(conversation: ConversationKey) -> str:
    """16 hex digits, safe as a folder's name."""
    return sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def redelivery_of(message: Inbound, conversation: ConversationKey) -> str:
    """The second unique key: conversation, sender, send time and content; "" without a time.

    A file's key may name the message that brings it, which is what differs here. The time comes first, so
    that what is stored together stands together in the key's index: a random key costs a page each.
    """
    if not message.stamp:
        return ""
    time = message.stamp[:_STAMP_CHARACTERS] if message.stamp.isascii() else ""
    content = f"{conversation}\0{message.stamp}\0{message.reference}\0{_files_of(message)}\0{message.text}"
    return f"{time}:{sha256(content.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGEST_DIGITS]}"


def _files_of(message: Inbound) -> str:
    if not message.files:
        return ""
    known_by = [file.name or file.key.replace(message.message_id, "") for file in message.files]
    return json.dumps([(file.kind, by, file.size) for file, by in zip(message.files, known_by, strict=True)])
