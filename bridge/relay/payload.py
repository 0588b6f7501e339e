"""An ``Inbound`` as JSON and back, and the keys that are made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from datetime import datetime
from hashlib import sha256
from typing import Any

from bridge.channel import FileKind, Inbound, RemoteFile
from bridge.ids import ConversationKey

_DEFAULTS = tuple((one.name, one.default) for one in fields(Inbound))
_NAMES = frozenset(name for name, _ in _DEFAULTS)
_FILE_NAMES = frozenset(one.name for one in fields(RemoteFile))
_dumps = json.JSONEncoder(separators=(",", ":")).encode


def encode(message: Inbound) -> str:
    """What is as it is by default is left out: most of a message is."""
    values = {name: value for name, default in _DEFAULTS if (value := getattr(message, name)) is not default}
    if message.files:
        values["files"] = [asdict(file) for file in message.files]
    if message.sent_at is not None:
        values["sent_at"] = message.sent_at.isoformat()
    return _dumps(values)


def decode(payload: str) -> Inbound:
    """What ``encode`` made of it, without what only a later version knows."""
    values = {name: value for name, value in json.loads(payload).items() if name in _NAMES}
    if files := values.get("files"):
        values["files"] = tuple(map(_file, files))
    if sent_at := values.get("sent_at"):
        values["sent_at"] = datetime.fromisoformat(sent_at)
    return Inbound(**values)


def _file(stored: dict[str, Any]) -> RemoteFile:
    values = {name: value for name, value in stored.items() if name in _FILE_NAMES}
    return RemoteFile(**{**values, "kind": FileKind(values["kind"])})


def conversation_of(message: Inbound) -> ConversationKey:
    """One chat, or one sender in a group, or one thread of it. NUL divides, so it is escaped in ids."""
    kind = "group" if message.group else "direct"
    parts = (kind, message.chat, message.sender, message.thread)
    return ConversationKey("\0".join(part.replace("\\", "\\\\").replace("\0", "\\0") for part in parts))


def digest_of(conversation: ConversationKey) -> str:
    """16 hex digits, safe as a folder's name."""
    return sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def redelivery_of(message: Inbound) -> str:
    """The second unique key: conversation, sender, send time and content; "" without a time.

    A file's key may name the message that brings it, which is what differs here.
    """
    if not message.stamp:
        return ""
    files = [
        (file.kind, file.name or file.key.replace(message.message_id, ""), file.size)
        for file in message.files
    ]
    ids = [one.replace("\0", "") for one in (message.stamp, message.reference)]
    content = "\0".join((conversation_of(message), *ids, _dumps(files) if files else "", message.text))
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
