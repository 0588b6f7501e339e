"""The durable steps: everything that outlives the process, as frozen values with typed results.

``await store.do(step)`` takes one step atomically and returns its result once it is on disk; its error
changes nothing and reaches its caller alone. ``await store.get(query)`` reads what is committed, the caller's
own steps included. A caller may rely on the atomicity and order of its own awaited steps, never on sharing a
transaction.

Instants are milliseconds since 1970, UTC (``_ms``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bridge.errors import StoreError
from bridge.ids import AccountId, ConversationKey, MessageId, PartId, SessionId
from bridge.store.change_steps import Changed, Edit, Effect, MessageOf, Recall, StoredMessage, TakenBack
from bridge.store.choice_steps import Choose, Chosen, ChosenIn
from bridge.store.dead_steps import Bury, DeadLetter, DeadLetters, Revive, Revived
from bridge.store.forget_steps import Forget, Forgotten
from bridge.store.identity_steps import IdentityOf, SetIdentity, StoredIdentity
from bridge.store.owner_chat_steps import NoteOwner, Notify, OwnerChat, OwnerChats, ToldOf
from bridge.store.reply import NewPart, PartKind, Reply
from bridge.store.sender_turns import SenderTurns
from bridge.store.session_steps import (
    BeginTurn,
    BindSession,
    BoundSession,
    ClearSession,
    CompactSession,
    ConfigureSession,
    EndTurn,
    LoadSession,
    OpenSession,
    ReserveSeq,
    SessionOf,
    SessionRecord,
    StoredSession,
    UnbindSession,
)
from bridge.store.sign_steps import DropSign, PutSign, SignsOf
from bridge.store.states import MessageState, PartState
from bridge.store.step import Query, Step, Store
from bridge.store.usage_steps import HoursOf, Spend, UsageOf, Used
from bridge.values import value

__all__ = [
    "STEPS",
    "Answer",
    "BeginTurn",
    "Bind",
    "BindSession",
    "BindingError",
    "BoundSession",
    "Bury",
    "Changed",
    "Choose",
    "Chosen",
    "ChosenIn",
    "Claim",
    "ClaimVerdict",
    "ClearSession",
    "Collect",
    "CompactSession",
    "ConfigureSession",
    "Counts",
    "CountsOf",
    "DeadLetter",
    "DeadLetters",
    "DropSign",
    "Edit",
    "Effect",
    "EndOf",
    "EndTurn",
    "EndedPart",
    "Forget",
    "Forgotten",
    "HeldText",
    "HeldTexts",
    "Hold", "HoursOf",
    "IdentityOf",
    "Later",
    "LoadSession",
    "Mark",
    "MessageOf",
    "MessageState",
    "NewMessage",
    "NewPart",
    "NoteOwner",
    "Notify",
    "OpenMessage",
    "OpenMessages",
    "OpenParts",
    "OpenPartsFor",
    "OpenSession",
    "OutboxPart",
    "OwnerChat",
    "OwnerChats",
    "PartKind",
    "PartState",
    "PartsOf",
    "Post",
    "Prune",
    "PutSign",
    "Query",
    "Recall",
    "Recover",
    "Reply",
    "ReserveSeq",
    "Revive",
    "Revived",
    "SenderTurns",
    "Sending",
    "SessionOf",
    "SessionRecord",
    "SetIdentity",
    "Settle",
    "Settled", "SignsOf",
    "Spend",
    "Start",
    "Step",
    "Store",
    "StoredIdentity",
    "StoredMessage",
    "StoredSession",
    "TakenBack",
    "ToldOf",
    "UnbindSession",
    "UsageOf", "Used",
]  # fmt: skip


NOWHERE = ConversationKey("")


class BindingError(StoreError):
    """The account's stored state belongs to another identity."""


# --- messages ------------------------------


class ClaimVerdict(StrEnum):
    NEW = "new"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


@value
class NewMessage:
    """A message as intake decided on it, not yet stored.

    ``state`` is SEEN, CLAIMED, or ANSWERED with a ``reply``. ``redelivery`` is the second unique key, "" for
    none. ``payload`` is the message itself as JSON, kept until it is done. ``effect`` is what an answered
    command does to its conversation where it is NEW.
    """

    message_id: MessageId
    state: MessageState
    reason: str = ""
    redelivery: str = ""
    body_digest: str = ""
    conversation: ConversationKey = NOWHERE
    payload: str = ""
    reply: Reply | None = None
    effect: Effect = Effect.NONE


@dataclass(frozen=True, slots=True)
class Bind(Step[str]):
    """Bind the account to its credentials' fingerprint, or prove that it is; returns the checkpoint.

    Raises BindingError when another fingerprint is stored and any state depends on it (a checkpoint, messages
    or parts that are not over); without such state the new fingerprint replaces the old.
    """

    account: AccountId
    fingerprint: str


@value
class Claim(Step[tuple[ClaimVerdict, ...]]):
    """Store messages with the batch's checkpoint; a verdict for each, in order.

    Atomic over check and insert: one key is account and message id, the other account and ``redelivery``.
    A known id with another non-empty ``body_digest`` is a CONFLICT. Duplicates store nothing.
    """

    account: AccountId
    messages: tuple[NewMessage, ...]
    now_ms: int
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Start(Step[bool]):
    """claimed → running on ``session_id``.

    False: it is not claimed (any more), or was edited since ``revision``: what the caller has must not run.
    """

    account: AccountId
    message_id: MessageId
    session_id: SessionId
    now_ms: int
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Answer(Step[tuple[PartId, ...]]):
    """End a claim: claimed or running → answered, its reply in the outbox; without a reply → done.

    Returns the new parts' ids; () when the message was not open any more, or waits and was edited since
    ``revision`` (nothing is stored then). Held texts in ``reply.carried`` become carried. The messages in
    ``along``, with the revisions that the caller has, were answered together with it: they are done. What
    the turn ``used`` is counted with it.
    """

    account: AccountId
    message_id: MessageId
    reply: Reply | None
    now_ms: int
    reason: str = ""
    revision: int = 0
    along: tuple[tuple[MessageId, int], ...] = ()
    used: Used | None = None


@dataclass(frozen=True, slots=True)
class Post(Step[tuple[PartId, ...]]):
    """Put an unprompted reply into the outbox. ``reason``: why the bridge says it by itself."""

    account: AccountId
    reply: Reply
    now_ms: int
    reason: str = ""


# --- the outbox ------------------------------


@dataclass(frozen=True, slots=True)
class OutboxPart:
    """A stored part. ``first_sent_ms`` and ``sending_since_ms`` are 0 while it was never tried.

    ``marked``: it is sent again although it may have arrived, with a visible mark. ``notice``: why the bridge
    says it by itself, as its message ended or it was posted; "" for what an agent answered.
    """

    part_id: PartId
    account: AccountId
    reply_id: str
    message_id: MessageId  # "" when unprompted
    conversation: ConversationKey
    to: str
    reply_to: str
    part: int
    parts: int
    kind: PartKind
    body: str
    client_id: str
    state: PartState
    transient: bool
    attempts: int
    created_ms: int
    first_sent_ms: int
    sending_since_ms: int
    due_ms: int
    marked: bool
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Sending(Step[bool]):
    """pending or sending → sending: recorded before the first byte. False: the part is final already."""

    part_id: PartId
    now_ms: int


@dataclass(frozen=True, slots=True)
class Settled:
    """``reply_done``: every part of the reply is final, so its message is done.

    ``released`` are the bodies of the file parts that this step made final and that are not kept: their
    copies can be removed.
    """

    reply_done: bool
    released: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settle(Step[Settled]):
    """An open part → SENT, UNKNOWN, REFUSED or EXPIRED. The rest of its reply goes on.

    ``keep_until_ms``: a file copy that is still fetched until then is not released now.
    When a reply is done, texts it carried are delivered and gone, if a text of it was SENT.
    """

    part_id: PartId
    state: PartState
    now_ms: int
    platform_id: str = ""
    reason: str = ""
    keep_until_ms: int = 0


@dataclass(frozen=True, slots=True)
class Later(Step[None]):
    """A try gave no usable answer: the part is due again at ``due_ms``.

    ``accepted_possible`` False takes the sending back (→ pending, as if never tried); True leaves it
    ``sending``.
    """

    part_id: PartId
    due_ms: int
    accepted_possible: bool


@dataclass(frozen=True, slots=True)
class Mark(Step[None]):
    """A part whose outcome stayed unknown is sent once more: under a new client id, marked, as if new."""

    part_id: PartId
    client_id: str
    now_ms: int


@dataclass(frozen=True, slots=True)
class Hold(Step[Settled]):
    """End a whole reply at this part: the part becomes ``state``, later open ones SKIPPED, its message done.

    ``held_text`` (not empty, not transient) is kept for the conversation's next reply. Texts that the reply
    carried are held again, ahead of it, when no text of it was SENT; the reply's ``own_text`` is then held in
    place of ``held_text``. Of a reply that is nothing but a held text (its ``own_text`` is empty) and that
    arrived in part, ``held_text`` takes that one's place. Beyond the newest 4 and 32 KiB of a conversation,
    128 of an account and 7 days, held texts are dropped.
    """

    part_id: PartId
    state: PartState
    held_text: str
    now_ms: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Recover(Step[int]):
    """At the start of a run: nothing is being sent. Returns how many parts are open.

    Parts left in ``sending`` keep that state, so that whoever takes them up knows that they may have arrived.
    Parts and running messages are listed by queries.
    """

    account: AccountId


@dataclass(frozen=True, slots=True)
class Collect(Step[tuple[Settled, ...]]):
    """Asking settles: every open part of the account with an id up to ``after`` was received.

    An ``after`` that is no part of the account settles nothing: whoever asks has it from another database.
    ``to`` names one recipient, whose parts alone are meant; "": all of them.
    """

    account: AccountId
    after: int
    now_ms: int
    to: str = ""


@dataclass(frozen=True, slots=True)
class Prune(Step[tuple[str, ...]]):
    """Forget what ended before ``before_ms``, and held texts from before ``held_before_ms``.

    Sessions that were not used since ``before_ms`` go with their history, turns and bindings, unless a
    message runs on them; so do such bindings to sessions that are not stored here. ``limit`` bounds the rows
    of each kind, but a session goes whole. Returns bodies of file parts forgotten.
    """

    before_ms: int
    held_before_ms: int
    limit: int = 1000


# --- reads ------------------------------


@dataclass(frozen=True, slots=True)
class OpenMessage:
    """A claimed or running message."""

    message_id: MessageId
    state: MessageState
    conversation: ConversationKey
    payload: str
    session_id: SessionId
    received_ms: int
    revision: int = 0


@dataclass(frozen=True, slots=True)
class OpenMessages(Query[tuple[OpenMessage, ...]]):
    """The account's claimed and running messages, in the order they were claimed."""

    account: AccountId


@dataclass(frozen=True, slots=True)
class OpenParts(Query[tuple[OutboxPart, ...]]):
    """The account's open parts with ids over ``after``, oldest first; ``limit`` at most.

    ``to`` names one recipient, whose parts alone are meant; "": all of them.
    """

    account: AccountId
    after: int = 0
    limit: int = 1000
    to: str = ""


@dataclass(frozen=True, slots=True)
class PartsOf(Query[tuple[OutboxPart, ...]]):
    """The open parts of one reply, in order."""

    account: AccountId
    reply_id: str


@value
class EndedPart:
    """How a part ended: by its ``state``, and under ``platform_id`` where it was sent."""

    state: PartState
    ended_ms: int
    platform_id: str


@dataclass(frozen=True, slots=True)
class EndOf(Query[EndedPart | None]):
    """How the part ended; None while it is open, or once it is forgotten."""

    part_id: PartId


@dataclass(frozen=True, slots=True)
class OpenPartsFor(Query[tuple[PartId, ...]]):
    """The open parts of any account that the bridge says by itself for this ``reason``."""

    reason: str


@dataclass(frozen=True, slots=True)
class HeldText:
    held_id: int
    text: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class HeldTexts(Query[tuple[HeldText, ...]]):
    """The conversation's held texts that no reply carries, oldest first."""

    account: AccountId
    conversation: ConversationKey


@dataclass(frozen=True, slots=True)
class Counts:
    """What an account has open.

    ``waiting``: claimed or running messages. ``oldest_ms``: when the oldest of these or of the open parts was
    stored, 0 for none. ``dead``: parts that ended refused, expired or unknown, of replies that are not
    transient, and were not carried to their reader since. ``held``: texts that wait for a next reply.
    """

    waiting: int
    oldest_ms: int
    open_parts: int
    dead: int
    held: int


@dataclass(frozen=True, slots=True)
class CountsOf(Query[Counts]):
    account: AccountId


STEPS: tuple[type[Step[object]], ...] = (
    Bind, Claim, Recall, Edit, Start, Answer, Post, Sending, Settle, Later, Mark, Hold, Recover, Collect,
    SetIdentity, Prune, Revive, Bury, BindSession, UnbindSession, OpenSession, BeginTurn, EndTurn,
    ClearSession, ReserveSeq, ConfigureSession, CompactSession, Choose, Spend, PutSign, DropSign,
    NoteOwner, Notify, Forget,
)  # fmt: skip
"""Every durable step, for the crash points: before and after each."""
