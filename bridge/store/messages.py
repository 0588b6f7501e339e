"""Messages: claimed once, given to an agent at most once, answered; and forgetting what is long over."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from sqlite3 import Cursor

from bridge.errors import StoreError
from bridge.ids import AccountId, PartId
from bridge.store import outbox, sessions, usage
from bridge.store.change_steps import ALONG, STOPPED
from bridge.store.contract import (
    Answer,
    Claim,
    ClaimVerdict,
    Effect,
    MessageState,
    NewMessage,
    Post,
    Prune,
    Start,
    UnbindSession,
)

_COLUMNS = (
    "account, message_id, redelivery, body_digest, conversation, state, reason, payload, received_ms,"
    " ended_ms"
)
_ROWS = (32, 16, 8, 4, 2, 1)  # rows of one statement: any number takes few statements, and few are prepared
_INSERTS = {
    rows: f"INSERT INTO messages ({_COLUMNS}) VALUES "  # noqa: S608 - our own names
    + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * rows)
    + " ON CONFLICT DO NOTHING"
    for rows in _ROWS
}
_INSERTED = "SELECT account, message_id, redelivery FROM messages WHERE id > ? AND id <= ?"
_CHECKPOINT = """
    INSERT INTO accounts (account, checkpoint) VALUES (?, ?)
    ON CONFLICT (account) DO UPDATE SET checkpoint = excluded.checkpoint
"""
_START = """
    UPDATE messages SET state = 'running', session_id = ?
    WHERE account = ? AND message_id = ? AND state = 'claimed' AND revision = ?
"""
_OPEN = """
    SELECT id FROM messages WHERE account = ? AND message_id = ?
        AND (state = 'running' OR state = 'claimed' AND revision = ?)
"""
_ANSWER = "UPDATE messages SET state = 'answered', reason = ? WHERE id = ?"
_END = """
    UPDATE messages SET state = 'done', reason = ?, payload = '', ended_ms = ?
    WHERE account = ? AND message_id = ? AND (state = 'running' OR state = 'claimed' AND revision = ?)
"""
_STOP = """
    UPDATE messages SET state = 'done', reason = ?, payload = '', ended_ms = ?
    WHERE account = ? AND conversation = ? AND state IN ('claimed', 'running')
"""
_DIGEST = "SELECT body_digest FROM messages WHERE account = ? AND message_id = ?"

_PRUNE_MESSAGES = """
    DELETE FROM messages WHERE id IN (
        SELECT id FROM messages WHERE ended_ms > 0 AND ended_ms < ? ORDER BY ended_ms LIMIT ?)
"""
_PRUNE_PARTS = """
    DELETE FROM parts WHERE id IN (
        SELECT id FROM parts AS old WHERE ended_ms > 0 AND ended_ms < :before AND NOT EXISTS (
            SELECT 1 FROM parts WHERE id BETWEEN old.id - old.part AND old.id - old.part + old.parts - 1
                AND (ended_ms = 0 OR ended_ms >= :before))
        ORDER BY ended_ms LIMIT :limit)
    RETURNING kind, body
"""
_PRUNE_HELD = """
    DELETE FROM held WHERE id IN (SELECT id FROM held WHERE carrier = 0 AND created_ms < ? LIMIT ?)
"""


def claim(db: Cursor, step: Claim) -> tuple[ClaimVerdict, ...]:
    verdicts: list[ClaimVerdict] = []
    for with_reply, messages in groupby(step.messages, lambda message: message.reply is not None):
        if with_reply:
            verdicts += [_claim_answered(db, step.account, message, step.now_ms) for message in messages]
        else:
            verdicts += _claim_plain(db, [(step.account, message, step.now_ms) for message in messages])
    if step.checkpoint is not None:
        db.execute(_CHECKPOINT, (step.account, step.checkpoint))
    return tuple(verdicts)


def is_plain(step: object) -> bool:
    """Whether ``step`` claims one message and does nothing else, as those of pushed channels do."""
    return (
        type(step) is Claim
        and step.checkpoint is None
        and len(step.messages) == 1
        and step.messages[0].reply is None
    )


def claim_together(db: Cursor, steps: Iterable[Claim]) -> list[tuple[ClaimVerdict, ...]]:
    """Take plain claims in a few statements: every statement hands the interpreter's lock to and fro."""
    verdicts = _claim_plain(db, [(step.account, step.messages[0], step.now_ms) for step in steps])
    return [(verdict,) for verdict in verdicts]


def _claim_plain(db: Cursor, claims: list[tuple[AccountId, NewMessage, int]]) -> list[ClaimVerdict]:
    """Verdicts as if taken one by one. An id that comes twice is judged again when its first is stored."""
    if len({(account, message.message_id) for account, message, _ in claims}) < len(claims):
        return [verdict for claim in claims for verdict in _insert(db, _INSERTS[1], [claim])]
    verdicts: list[ClaimVerdict] = []
    first = 0
    for rows, statement in _INSERTS.items():
        while len(claims) - first >= rows:
            verdicts += _insert(db, statement, claims[first : first + rows])
            first += rows
    return verdicts


def _insert(
    db: Cursor, statement: str, claims: list[tuple[AccountId, NewMessage, int]]
) -> list[ClaimVerdict]:
    """A verdict for each of as many claims as the statement has rows."""
    values: list[str | int] = []
    for account, message, now_ms in claims:
        values += row(account, message, now_ms)
    stored = db.execute(statement, values).rowcount
    if stored == len(claims):
        return [ClaimVerdict.NEW] * stored
    last = db.lastrowid or 0  # new rows have neighbouring ids
    new = set(db.execute(_INSERTED, (last - stored, last)).fetchall()) if stored else set()
    return [_verdict(db, account, message, new) for account, message, _ in claims]


def _verdict(
    db: Cursor, account: AccountId, message: NewMessage, new: set[tuple[str, str, str]]
) -> ClaimVerdict:
    key = (account, message.message_id, message.redelivery)  # both keys: the first that has them is the one
    if key in new:
        new.remove(key)
        return ClaimVerdict.NEW
    return _known(db, account, message)


def _claim_answered(db: Cursor, account: AccountId, message: NewMessage, now_ms: int) -> ClaimVerdict:
    if not db.execute(_INSERTS[1], row(account, message, now_ms)).rowcount:
        return _known(db, account, message)
    if message.reply is not None:
        outbox.insert(db, account, message.reply, db.lastrowid or 0, now_ms)
    match message.effect:
        case Effect.STOP:
            db.execute(_STOP, (STOPPED, now_ms, account, message.conversation))
        case Effect.FORGET:
            sessions.unbind_session(db, UnbindSession(account, message.conversation))
    return ClaimVerdict.NEW


def row(account: AccountId, message: NewMessage, now_ms: int) -> tuple[str | int, ...]:
    """The values of ``_COLUMNS``.

    Raises:
        StoreError: the message is in a state that intake cannot have decided on.
    """
    state = message.state
    seen = state is MessageState.SEEN
    with_reply = message.reply is not None and bool(message.reply.parts)
    if with_reply != (state is MessageState.ANSWERED) or not (
        seen or with_reply or state is MessageState.CLAIMED
    ):
        raise StoreError(
            "the step was refused: a message is claimed as seen, claimed, or answered with a reply"
        )
    return (
        account,
        message.message_id,
        message.redelivery,
        message.body_digest,
        message.conversation,
        state._value_,
        message.reason,
        "" if seen else message.payload,
        now_ms,
        now_ms if seen else 0,
    )


def _known(db: Cursor, account: AccountId, message: NewMessage) -> ClaimVerdict:
    known = db.execute(_DIGEST, (account, message.message_id)).fetchone()
    if known and known[0] and message.body_digest and known[0] != message.body_digest:
        return ClaimVerdict.CONFLICT
    return ClaimVerdict.DUPLICATE


def start(db: Cursor, step: Start) -> bool:
    values = (step.session_id, step.account, step.message_id, step.revision)
    return bool(db.execute(_START, values).rowcount)


def answer(db: Cursor, step: Answer) -> tuple[PartId, ...]:
    found = db.execute(_OPEN, (step.account, step.message_id, step.revision)).fetchone()
    if found is None:
        return ()
    if step.used is not None:
        usage.count(db, step.account, step.used, step.now_ms)
    for message_id, revision in step.along:
        db.execute(_END, (ALONG, step.now_ms, step.account, message_id, revision))
    if step.reply is None or not step.reply.parts:
        db.execute(_END, (step.reason, step.now_ms, step.account, step.message_id, step.revision))
        return ()
    db.execute(_ANSWER, (step.reason, found[0]))
    return outbox.insert(db, step.account, step.reply, found[0], step.now_ms)


def post(db: Cursor, step: Post) -> tuple[PartId, ...]:
    return outbox.insert(db, step.account, step.reply, 0, step.now_ms, step.reason)


def prune(db: Cursor, step: Prune) -> tuple[str, ...]:
    db.execute(_PRUNE_MESSAGES, (step.before_ms, step.limit))
    forgotten = db.execute(_PRUNE_PARTS, {"before": step.before_ms, "limit": step.limit}).fetchall()
    db.execute(_PRUNE_HELD, (step.held_before_ms, step.limit))
    sessions.forget_unused(db, step.before_ms, step.limit)
    usage.prune(db, step.before_ms, step.limit)
    return tuple(body for kind, body in forgotten if kind == "file")
