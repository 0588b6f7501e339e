"""Agent sessions: what they were started with, their history, and the turns that run."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.errors import StoreError
from bridge.ids import SessionId
from bridge.store.contract import (
    BeginTurn,
    BindSession,
    ClearSession,
    DropSession,
    EndTurn,
    OpenSession,
    ReserveSeq,
    UnbindSession,
)

_BIND = """
    INSERT INTO bindings (account, conversation, session_id, authority) VALUES (?, ?, ?, ?)
    ON CONFLICT (account, conversation) DO UPDATE
    SET session_id = excluded.session_id, authority = excluded.authority
"""
_FORGET_OLDEST = """
    DELETE FROM history WHERE id IN (SELECT id FROM history WHERE session_id = ? ORDER BY id LIMIT ?)
"""


def bind_session(db: Cursor, step: BindSession) -> None:
    db.execute(_BIND, (step.account, step.conversation, step.session_id, step.authority))


def unbind_session(db: Cursor, step: UnbindSession) -> None:
    db.execute(
        "DELETE FROM bindings WHERE account = ? AND conversation = ?", (step.account, step.conversation)
    )


def open_session(db: Cursor, step: OpenSession) -> None:
    """A session id that exists is refused."""
    record = step.record
    db.execute(
        "INSERT INTO sessions (session_id, cwd, settings, seq, created_ms) VALUES (?, ?, ?, ?, ?)",
        (record.session_id, record.cwd, record.settings, record.seq, step.now_ms),
    )


def begin_turn(db: Cursor, step: BeginTurn) -> None:
    _set_seq(db, step.session_id, step.seq_reserved)
    db.execute(
        "INSERT INTO turns (session_id, turn_id, request_id, began_ms) VALUES (?, ?, ?, ?)",
        (step.session_id, step.turn_id, step.request_id, step.now_ms),
    )


def end_turn(db: Cursor, step: EndTurn) -> None:
    """A turn that is not known to run is ended all the same."""
    session = step.session_id
    _set_seq(db, session, step.seq)
    db.execute("DELETE FROM turns WHERE session_id = ? AND turn_id = ?", (session, step.turn_id))
    db.execute("DELETE FROM last_events WHERE session_id = ?", (session,))
    db.executemany(
        "INSERT INTO last_events (session_id, frame) VALUES (?, ?)",
        [(session, frame) for frame in step.events],
    )
    if step.dropped > 0:
        db.execute(_FORGET_OLDEST, (session, step.dropped))
    db.executemany(
        "INSERT INTO history (session_id, entry) VALUES (?, ?)", [(session, entry) for entry in step.history]
    )


def clear_session(db: Cursor, step: ClearSession) -> None:
    _set_seq(db, step.session_id, step.seq)
    for table in ("history", "last_events"):
        db.execute(f"DELETE FROM {table} WHERE session_id = ?", (step.session_id,))  # noqa: S608 - our own names


def reserve_seq(db: Cursor, step: ReserveSeq) -> None:
    raised = "UPDATE sessions SET seq = max(seq, ?) WHERE session_id = ?"
    _must_be_one(db.execute(raised, (step.seq, step.session_id)).rowcount)


def drop_session(db: Cursor, step: DropSession) -> None:
    for table in ("history", "turns", "last_events", "bindings", "sessions"):
        db.execute(f"DELETE FROM {table} WHERE session_id = ?", (step.session_id,))  # noqa: S608 - our own names


def _set_seq(db: Cursor, session_id: SessionId, seq: int) -> None:
    _must_be_one(db.execute("UPDATE sessions SET seq = ? WHERE session_id = ?", (seq, session_id)).rowcount)


def _must_be_one(changed: int) -> None:
    if not changed:
        raise StoreError("the step was refused: there is no such session")
