"""Agent sessions: what they were started with, their history, and the turns that run."""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Cursor

from bridge.errors import StoreError
from bridge.ids import SessionId
from bridge.store.contract import (
    BeginTurn,
    BindSession,
    ClearSession,
    CompactSession,
    ConfigureSession,
    EndTurn,
    OpenSession,
    ReserveSeq,
    UnbindSession,
)

_BIND = """
    INSERT INTO bindings (account, conversation, session_id, authority, used_ms) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (account, conversation) DO UPDATE
    SET session_id = excluded.session_id, authority = excluded.authority, used_ms = excluded.used_ms
"""
_UNUSED = """
    SELECT session_id FROM sessions WHERE created_ms < :before AND used_ms < :before
        AND session_id NOT IN (SELECT session_id FROM messages WHERE state IN ('claimed', 'running'))
    ORDER BY created_ms LIMIT :limit
"""
_FORGET = [
    f"DELETE FROM {table} WHERE session_id = ?"  # noqa: S608 - our own names
    for table in ("history", "turns", "last_events", "bindings", "sessions")
]
_FORGET_BINDINGS = """
    DELETE FROM bindings WHERE (account, conversation) IN (
        SELECT account, conversation FROM bindings
        WHERE used_ms < ? AND session_id NOT IN (SELECT session_id FROM sessions)
            AND session_id NOT IN (SELECT session_id FROM messages WHERE state IN ('claimed', 'running'))
        ORDER BY used_ms LIMIT ?)
"""
_FORGET_OLDEST = """
    DELETE FROM history WHERE id IN (SELECT id FROM history WHERE session_id = ? ORDER BY id LIMIT ?)
"""
_REWRITE_OLDEST = """
    UPDATE history SET entry = ? WHERE id = (SELECT min(id) FROM history WHERE session_id = ?)
"""


def bind_session(db: Cursor, step: BindSession) -> None:
    db.execute(_BIND, (step.account, step.conversation, step.session_id, step.authority, step.now_ms))


def unbind_session(db: Cursor, step: UnbindSession) -> None:
    db.execute(
        "DELETE FROM bindings WHERE account = ? AND conversation = ?", (step.account, step.conversation)
    )


def open_session(db: Cursor, step: OpenSession) -> None:
    """A session id that exists is refused."""
    record = step.record
    db.execute(
        "INSERT INTO sessions (session_id, cwd, settings, seq, created_ms, used_ms)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (record.session_id, record.cwd, record.settings, record.seq, step.now_ms, step.now_ms),
    )


def begin_turn(db: Cursor, step: BeginTurn) -> None:
    _use(db, step.session_id, step.seq_reserved, step.now_ms)
    db.execute(
        "INSERT INTO turns (session_id, turn_id, request_id, began_ms) VALUES (?, ?, ?, ?)",
        (step.session_id, step.turn_id, step.request_id, step.now_ms),
    )


def end_turn(db: Cursor, step: EndTurn) -> None:
    """A turn that is not known to run is ended all the same."""
    session = step.session_id
    _use(db, session, step.seq, step.now_ms)
    db.execute("DELETE FROM turns WHERE session_id = ? AND turn_id = ?", (session, step.turn_id))
    db.execute("DELETE FROM last_events WHERE session_id = ?", (session,))
    db.executemany(
        "INSERT INTO last_events (session_id, frame) VALUES (?, ?)",
        [(session, frame) for frame in step.events],
    )
    if step.dropped > 0:
        _trim(db, step)
    db.executemany(
        "INSERT INTO history (session_id, entry) VALUES (?, ?)", [(session, entry) for entry in step.history]
    )


def _trim(db: Cursor, step: EndTurn) -> None:
    """The last row that would go becomes the note, which so comes before all that stay."""
    db.execute(_FORGET_OLDEST, (step.session_id, step.dropped - bool(step.note)))
    if step.note:
        db.execute(_REWRITE_OLDEST, (step.note, step.session_id))


def clear_session(db: Cursor, step: ClearSession) -> None:
    cleared = "UPDATE sessions SET seq = ?, settings = coalesce(nullif(?, ''), settings) WHERE session_id = ?"
    _must_be_one(db.execute(cleared, (step.seq, step.settings, step.session_id)).rowcount)
    for table in ("history", "last_events"):
        db.execute(f"DELETE FROM {table} WHERE session_id = ?", (step.session_id,))  # noqa: S608 - our own names


def configure_session(db: Cursor, step: ConfigureSession) -> None:
    configured = "UPDATE sessions SET cwd = ?, settings = ? WHERE session_id = ?"
    _must_be_one(db.execute(configured, (step.cwd, step.settings, step.session_id)).rowcount)


def compact_session(db: Cursor, step: CompactSession) -> None:
    """Refused where there is no history, which is all that there is to sum up."""
    _must_be_one(db.execute("DELETE FROM history WHERE session_id = ?", (step.session_id,)).rowcount)
    db.execute("INSERT INTO history (session_id, entry) VALUES (?, ?)", (step.session_id, step.entry))


def reserve_seq(db: Cursor, step: ReserveSeq) -> None:
    raised = "UPDATE sessions SET seq = max(seq, ?), used_ms = max(used_ms, ?) WHERE session_id = ?"
    _must_be_one(db.execute(raised, (step.seq, step.used_ms, step.session_id)).rowcount)


def forget_unused(db: Cursor, before_ms: int, limit: int) -> None:
    """Forget whole sessions, oldest first, until ``limit`` rows have gone; then bindings to elsewhere."""
    forget_all(db, db.execute(_UNUSED, {"before": before_ms, "limit": limit}).fetchall(), limit)
    db.execute(_FORGET_BINDINGS, (before_ms, limit))


def forget_all(db: Cursor, keys: Iterable[tuple[str]], limit: int) -> bool:
    """Forget the sessions of these ids whole, and what is bound to them, until ``limit`` rows have gone.

    Whether that were all of them.
    """
    rows = 0
    for key in keys:
        if rows >= limit:
            return False
        for statement in _FORGET:
            rows += db.execute(statement, key).rowcount
    return True


def _use(db: Cursor, session_id: SessionId, seq: int, now_ms: int) -> None:
    used = "UPDATE sessions SET seq = ?, used_ms = ? WHERE session_id = ?"
    _must_be_one(db.execute(used, (seq, now_ms, session_id)).rowcount)


def _must_be_one(changed: int) -> None:
    if not changed:
        raise StoreError("the step was refused: there is no such session")
