"""The reads, on a connection that cannot write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sqlite3 import Cursor
from typing import Any, TypeVar, cast

from bridge.ids import AccountId, ConversationKey, MessageId, PartId, SessionId, TurnId
from bridge.store import changes, choices, dead, owner_chats, signs, usage
from bridge.store.contract import (
    BoundSession,
    ChosenIn,
    Counts,
    CountsOf,
    DeadLetters,
    EndedPart,
    EndOf,
    HeldText,
    HeldTexts,
    IdentityOf,
    LoadSession,
    MessageOf,
    MessageState,
    OpenMessage,
    OpenMessages,
    OpenParts,
    OpenPartsFor,
    OutboxPart,
    OwnerChats,
    PartKind,
    PartsOf,
    PartState,
    Query,
    SenderTurns,
    SessionOf,
    SessionRecord,
    StoredIdentity,
    StoredSession,
    ToldOf,
)
from bridge.store.sender_turns import sender_turns
from bridge.store.sign_steps import SignsOf
from bridge.store.usage_steps import HoursOf, UsageOf

R = TypeVar("R")

_MESSAGES = """
    SELECT message_id, state, conversation, payload, session_id, received_ms, revision FROM messages
    WHERE account = ? AND state IN ('claimed', 'running') ORDER BY id
"""
_PARTS = """
    SELECT id, account, reply_id,
        coalesce((SELECT message_id FROM messages WHERE messages.id = parts.message), ''),
        conversation, recipient, reply_to, part, parts, kind, body, client_id, state, transient, attempts,
        created_ms, first_sent_ms, sending_since_ms, due_ms, marked,
        coalesce((SELECT reason FROM messages WHERE messages.id = parts.message), reason)
    FROM parts
"""
_OPEN_PARTS = f"""{_PARTS}
    WHERE account = ? AND state IN ('pending', 'sending') AND id > ? AND ? IN ('', recipient)
    ORDER BY id LIMIT ?
"""
_PARTS_OF = _PARTS + "WHERE reply_id = ? AND account = ? AND state IN ('pending', 'sending') ORDER BY id"
_END_OF = """
    SELECT state, ended_ms, platform_id FROM parts WHERE id = ? AND state NOT IN ('pending', 'sending')
"""
_OPEN_FOR = "SELECT id FROM parts WHERE state IN ('pending', 'sending') AND reason = ? ORDER BY id"
_HELD = (
    "SELECT id, text, created_ms FROM held WHERE account = ? AND conversation = ? AND carrier = 0 ORDER BY id"
)
_COUNTS = """
    SELECT waiting, first_message, open_parts, first_part,
        (SELECT count(*) FROM parts WHERE account = :account AND dead = 1),
        (SELECT count(*) FROM held WHERE account = :account AND carrier = 0)
    FROM (SELECT count(*) AS waiting, min(received_ms) AS first_message FROM messages
          WHERE account = :account AND state IN ('claimed', 'running')),
         (SELECT count(*) AS open_parts FROM parts
          WHERE account = :account AND state IN ('pending', 'sending')),
         (SELECT min(created_ms) AS first_part FROM (SELECT created_ms FROM parts
          WHERE account = :account AND state IN ('pending', 'sending') ORDER BY id LIMIT 1))
"""
_BOUND = """
    SELECT session_id, authority, max(bindings.used_ms, coalesce(sessions.used_ms, 0))
    FROM bindings LEFT JOIN sessions USING (session_id) WHERE account = ? AND conversation = ?
"""
_SESSION = "SELECT cwd, settings, seq FROM sessions WHERE session_id = ?"
_HISTORY = "SELECT entry FROM history WHERE session_id = ? ORDER BY id"
_LAST_EVENTS = "SELECT frame FROM last_events WHERE session_id = ? ORDER BY id"
_TURNS = "SELECT turn_id, request_id FROM turns WHERE session_id = ? ORDER BY id"


def read(db: Cursor, query: Query[R]) -> R:
    """The answer to ``query`` from what is committed now."""
    return cast(R, READERS[type(query)](db, query))


def open_messages(db: Cursor, query: OpenMessages) -> tuple[OpenMessage, ...]:
    return tuple(
        OpenMessage(
            MessageId(message_id),
            MessageState(state),
            ConversationKey(key),
            payload,
            SessionId(session),
            received,
            revision,
        )
        for message_id, state, key, payload, session, received, revision in db.execute(
            _MESSAGES, (query.account,)
        )
    )


def open_parts(db: Cursor, query: OpenParts) -> tuple[OutboxPart, ...]:
    rows = db.execute(_OPEN_PARTS, (query.account, query.after, query.to, query.limit))
    return tuple(_part(*row) for row in rows)


def parts_of(db: Cursor, query: PartsOf) -> tuple[OutboxPart, ...]:
    return tuple(_part(*row) for row in db.execute(_PARTS_OF, (query.reply_id, query.account)))


def _part(
    part_id: int, account: str, reply_id: str, message_id: str, conversation: str, recipient: str,
    reply_to: str, part: int, parts: int, kind: str, body: str, client_id: str, state: str, transient: int,
    attempts: int, created_ms: int, first_sent_ms: int, sending_since_ms: int, due_ms: int, marked: int,
    notice: str,
) -> OutboxPart:  # fmt: skip
    return OutboxPart(
        PartId(part_id), AccountId(account), reply_id, MessageId(message_id), ConversationKey(conversation),
        recipient, reply_to, part, parts, PartKind(kind), body, client_id, PartState(state), bool(transient),
        attempts, created_ms, first_sent_ms, sending_since_ms, due_ms, bool(marked), notice,
    )  # fmt: skip


def end_of(db: Cursor, query: EndOf) -> EndedPart | None:
    row = db.execute(_END_OF, (query.part_id,)).fetchone()
    return EndedPart(PartState(row[0]), row[1], row[2]) if row else None


def open_parts_for(db: Cursor, query: OpenPartsFor) -> tuple[PartId, ...]:
    return tuple(PartId(row[0]) for row in db.execute(_OPEN_FOR, (query.reason,)))


def held_texts(db: Cursor, query: HeldTexts) -> tuple[HeldText, ...]:
    return tuple(HeldText(*row) for row in db.execute(_HELD, (query.account, query.conversation)))


def session_of(db: Cursor, query: SessionOf) -> BoundSession | None:
    row = db.execute(_BOUND, (query.account, query.conversation)).fetchone()
    return BoundSession(SessionId(row[0]), row[1], row[2]) if row else None


def load_session(db: Cursor, query: LoadSession) -> StoredSession | None:
    """Several selects, in one transaction so that they see the same state."""
    key = (query.session_id,)
    db.execute("BEGIN")
    try:
        row = db.execute(_SESSION, key).fetchone()
        if row is None:
            return None
        return StoredSession(
            SessionRecord(query.session_id, *row),
            tuple(entry for (entry,) in db.execute(_HISTORY, key)),
            tuple(frame for (frame,) in db.execute(_LAST_EVENTS, key)),
            tuple((TurnId(turn), request) for turn, request in db.execute(_TURNS, key)),
        )
    finally:
        db.execute("ROLLBACK")


def identity_of(db: Cursor, query: IdentityOf) -> StoredIdentity | None:
    row = db.execute("SELECT bot_id, name FROM accounts WHERE account = ?", (query.account,)).fetchone()
    return StoredIdentity(row[0], row[1]) if row and (row[0] or row[1]) else None


def counts_of(db: Cursor, query: CountsOf) -> Counts:
    waiting, first_message, open_parts, first_part, dead, held = db.execute(
        _COUNTS, {"account": query.account}
    ).fetchone()
    oldest = min((stored for stored in (first_message, first_part) if stored is not None), default=0)
    return Counts(waiting, oldest, open_parts, dead, held)


# Any: each function takes the type that is its key, which a mapping's type cannot say.
READERS: Mapping[type[Query[object]], Callable[[Cursor, Any], object]] = {
    OpenMessages: open_messages,
    OpenParts: open_parts,
    PartsOf: parts_of,
    EndOf: end_of,
    OpenPartsFor: open_parts_for,
    HeldTexts: held_texts,
    SessionOf: session_of,
    LoadSession: load_session,
    IdentityOf: identity_of,
    CountsOf: counts_of,
    DeadLetters: dead.letters,
    OwnerChats: owner_chats.owner_chats,
    ToldOf: owner_chats.told_of,
    MessageOf: changes.message_of,
    ChosenIn: choices.chosen_in,
    SenderTurns: sender_turns,
    SignsOf: signs.signs_of,
    UsageOf: usage.usage_of,
    HoursOf: usage.hours_of,
}
