"""How far a message and a part came."""

from __future__ import annotations

from enum import StrEnum


class MessageState(StrEnum):
    """How far a message came.

    ``seen`` needs nothing; ``claimed`` was never given to an agent; ``running`` was; ``answered`` has its
    reply in the outbox; ``done`` is over.
    """

    SEEN = "seen"
    CLAIMED = "claimed"
    RUNNING = "running"
    ANSWERED = "answered"
    DONE = "done"


class PartState(StrEnum):
    """``pending`` and ``sending`` are open; the others are final. ``unknown`` is final and maybe arrived."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    REFUSED = "refused"
    EXPIRED = "expired"
    SKIPPED = "skipped"  # not sent, because an earlier part of its reply was refused or withdrawn
