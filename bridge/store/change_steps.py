"""What a message's sender does to it afterwards, as durable steps: taking it back, and changing it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bridge.ids import AccountId, ConversationKey, MessageId
from bridge.store.states import MessageState
from bridge.store.step import Query, Step

RECALLED = "recalled"
"""The reason of a message that was taken back."""


STOPPED = "stopped"
"""The reason of a message that ended with a ``/stop`` of its conversation."""

ALONG = "answered_along"
"""The reason of a message that was answered together with a later one."""


class Effect(StrEnum):
    """What a command does to its conversation, in the step that stores it."""

    NONE = ""
    STOP = "stop"  # every message that waits or runs is done, for the reason ``stopped``
    FORGET = "forget"  # its session is unbound


class Changed(StrEnum):
    """What became of a recall or an edit. It changed something only where it is ``done``."""

    DONE = "done"
    KNOWN = "known"  # it was in effect already
    TOO_LATE = "too_late"  # there is nothing left that it could change
    OTHER = "other"  # the message belongs to another conversation than the caller thinks


@dataclass(frozen=True, slots=True)
class TakenBack:
    """``released`` are the bodies of file parts that are not sent any more: their copies can be removed."""

    change: Changed
    released: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recall(Step[TakenBack]):
    """A message is taken back: it is done, for the reason ``recalled``, wherever it was on its way.

    Claimed, it does not start any more; running, it gets no answer; answered, its open parts are SKIPPED and
    never held, and what they carried is held again; done, what is held of its answer goes. No dead letter of
    its answer is left. One that was never seen is remembered as recalled, so that its late delivery is a
    duplicate. ``conversation`` is the message's own as the caller read it, None where there was no such
    message.
    """

    account: AccountId
    message_id: MessageId
    conversation: ConversationKey | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class Edit(Step[Changed]):
    """A claimed message of this conversation gets another ``payload``, if ``revision`` is over its own.

    A message is claimed with revision 0. Its keys stay as they are.
    """

    account: AccountId
    message_id: MessageId
    conversation: ConversationKey
    payload: str
    revision: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """What is remembered of a message. ``reason`` says why it ended as it did, "" for an answer."""

    state: MessageState
    reason: str
    conversation: ConversationKey
    received_ms: int


@dataclass(frozen=True, slots=True)
class MessageOf(Query[StoredMessage | None]):
    account: AccountId
    message_id: MessageId
