"""Forgetting an account, a piece at a time, so that others' steps come in between."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.store import choices, owner_chats, sessions, signs, usage
from bridge.store.forget_steps import Forget, Forgotten

_LAST = "SELECT max(id) FROM (SELECT id FROM parts WHERE id > ? ORDER BY id LIMIT ?)"
_PARTS = "DELETE FROM parts WHERE account = ? AND id > ? AND id <= ? RETURNING kind, body"
_MESSAGES = """
    DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE account = ? ORDER BY message_id LIMIT ?)
"""
_RAN_ON = """
    SELECT DISTINCT session_id FROM (
        SELECT session_id FROM messages WHERE account = ? ORDER BY message_id LIMIT ?)
    WHERE session_id != ''
"""
_HELD = "DELETE FROM held WHERE id IN (SELECT id FROM held WHERE account = ? LIMIT ?)"
_SESSIONS = "SELECT session_id FROM bindings WHERE account = ? LIMIT ?"


def forget(db: Cursor, step: Forget) -> Forgotten:
    account, limit = step.account, step.limit
    last = db.execute(_LAST, (step.after, limit)).fetchone()[0]
    parts = db.execute(_PARTS, (account, step.after, last or 0)).fetchall()
    some = (account, limit)
    bound = db.execute(_SESSIONS, some).fetchall()
    ran_on = db.execute(_RAN_ON, some).fetchall()  # also those that are bound no more
    gone = [db.execute(_HELD, some).rowcount, choices.forget(db, account, limit)]
    gone.append(usage.forget(db, account, limit))
    if all_went := sessions.forget_all(db, [*bound, *ran_on], limit):
        gone.append(db.execute(_MESSAGES, some).rowcount)
    copies = tuple(body for kind, body in parts if kind == "file")
    if last is not None or any(gone) or bound or not all_went:
        return Forgotten(copies, last or step.after)
    owner_chats.forget(db, account)
    signs.forget(db, account)
    db.execute("DELETE FROM accounts WHERE account = ?", (account,))
    return Forgotten(copies, None)
