"""Replies as they are put into the outbox."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bridge.ids import ConversationKey


class PartKind(StrEnum):
    TEXT = "text"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class NewPart:
    """``body`` is the text of a text part, or a file's JSON (path, name, mime, kind, size)."""

    kind: PartKind
    body: str
    client_id: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Parts for one recipient, delivered in order. ``to`` names the lane.

    ``transient`` replies are never held. ``carried`` are the ids of held texts that the first part contains;
    ``own_text`` is then the reply's text without them. It is empty where the reply is one held text, in as
    many parts as that takes.
    """

    reply_id: str
    conversation: ConversationKey
    to: str
    reply_to: str
    parts: tuple[NewPart, ...]
    transient: bool = False
    carried: tuple[int, ...] = ()
    own_text: str = ""
