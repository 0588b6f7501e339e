"""Forgetting an account, a piece at a time, so that others' steps come in between."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.store import owner_chats, sessions
from bridge.store.forget_steps import Forget, Forgotten

_LAST = "SELECT max(id) FROM (SELECT id FROM parts WHERE id > ? ORDER BY id LIMIT ?)"
_PARTS = "DELETE FROM parts WHERE account = ? AND id > ? AND id <= ? RETURNING kind, body"
_MESSAGES = "DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE account = ? LIMIT ?)"
_HELD = "DELETE FROM held WHERE id IN (SELECT id FROM held WHERE account = ? LIMIT ?)"
_SESSIONS = "SELECT session_id FROM bindings WHERE account = ? LIMIT ?"


def forget(db: Cursor, step: Forget) -> Forgotten:
    account, limit = step.account, step.limit
    last = db.execute(_LAST, (step.after, limit)).fetchone()[0]
    parts = db.execute(_PARTS, (account, step.after, last or 0)).fetchall()
    gone = [db.execute(statement, (account, limit)).rowcount for statement in (_MESSAGES, _HELD)]
    bound = db.execute(_SESSIONS, (account, limit)).fetchall()
    sessions.forget_all(db, bound, limit)
    copies = tuple(body for kind, body in parts if kind == "file")
    if last is not None or any(gone) or bound:
        return Forgotten(copies, last or step.after)
    owner_chats.forget(db, account)
    db.execute("DELETE FROM accounts WHERE account = ?", (account,))
    return Forgotten(copies, None)
