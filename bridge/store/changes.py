"""Messages that their senders took back or changed."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.ids import AccountId, ConversationKey
from bridge.store import held
from bridge.store.change_steps import RECALLED, Changed, Edit, MessageOf, Recall, StoredMessage, TakenBack
from bridge.store.states import MessageState

_FIND = """
    SELECT id, conversation, state, reason, revision FROM messages WHERE account = ? AND message_id = ?
"""
_REMEMBER = """
    INSERT INTO messages (account, message_id, redelivery, body_digest, conversation, state, reason, payload,
                          received_ms, ended_ms)
    VALUES (?, ?, '', '', '', 'done', ?, '', ?, ?)
"""
_END = "UPDATE messages SET state = 'done', reason = ?, payload = '', ended_ms = ? WHERE id = ?"
_SKIP = """
    UPDATE parts SET state = 'skipped', reason = ?, ended_ms = ?
    WHERE account = ? AND message = ? AND state IN ('pending', 'sending')
    RETURNING id - part, carries, CASE kind WHEN 'file' THEN body END
"""
_UNHOLD = """
    DELETE FROM held WHERE account = ? AND carrier = 0
        AND EXISTS (SELECT 1 FROM parts WHERE parts.id = held.origin AND parts.message = ?)
"""
_FORGET_DEAD = "UPDATE parts SET dead = 0 WHERE account = ? AND message = ? AND dead = 1"
_EDIT = """
    UPDATE messages SET payload = ?, revision = ?
    WHERE account = ? AND message_id = ? AND conversation = ? AND state = 'claimed' AND revision < ?
"""
_MESSAGE = """
    SELECT state, reason, conversation, received_ms FROM messages WHERE account = ? AND message_id = ?
"""
_OVER = frozenset({MessageState.SEEN, MessageState.DONE})


def recall(db: Cursor, step: Recall) -> TakenBack:
    found = db.execute(_FIND, (step.account, step.message_id)).fetchone()
    if found is None:
        db.execute(_REMEMBER, (step.account, step.message_id, RECALLED, step.now_ms, step.now_ms))
        return TakenBack(Changed.DONE)
    row, conversation, state, reason, _ = found
    if conversation != step.conversation:
        return TakenBack(Changed.OTHER)
    if state in _OVER and not db.execute(_UNHOLD, (step.account, row)).rowcount:
        return TakenBack(Changed.KNOWN if reason == RECALLED else Changed.TOO_LATE)
    released = _skip_parts(db, step.account, row, step.now_ms)
    db.execute(_FORGET_DEAD, (step.account, row))
    db.execute(_END, (RECALLED, step.now_ms, row))
    return TakenBack(Changed.DONE, released)


def _skip_parts(db: Cursor, account: AccountId, message: int, now_ms: int) -> tuple[str, ...]:
    """The open parts of the message's reply are not sent; returns the bodies of the files among them."""
    skipped = db.execute(_SKIP, (RECALLED, now_ms, account, message)).fetchall()
    for first in {first for first, carries, _ in skipped if carries}:
        held.unload(db, first, now_ms)
    return tuple(file for _, _, file in skipped if file is not None)


def edit(db: Cursor, step: Edit) -> Changed:
    key = (step.account, step.message_id, step.conversation)
    if db.execute(_EDIT, (step.payload, step.revision, *key, step.revision)).rowcount:
        return Changed.DONE
    found = db.execute(_FIND, (step.account, step.message_id)).fetchone()
    if found is None:
        return Changed.TOO_LATE
    _, conversation, state, _, revision = found
    if conversation != step.conversation:
        return Changed.OTHER
    known = state == MessageState.CLAIMED and revision >= step.revision
    return Changed.KNOWN if known else Changed.TOO_LATE


def message_of(db: Cursor, query: MessageOf) -> StoredMessage | None:
    row = db.execute(_MESSAGE, (query.account, query.message_id)).fetchone()
    if row is None:
        return None
    state, reason, conversation, received_ms = row
    return StoredMessage(MessageState(state), reason, ConversationKey(conversation), received_ms)
