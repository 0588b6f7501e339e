"""Accounts: whose state it is, and who the bot is."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.store import owner_chats
from bridge.store.contract import Bind, BindingError, Recover, SetIdentity

_BIND = "INSERT INTO accounts (account, fingerprint) VALUES (?, ?)"
_REBIND = "UPDATE accounts SET fingerprint = ? WHERE account = ?"
_REPLACE = "UPDATE accounts SET fingerprint = ?, bot_id = '', name = '' WHERE account = ?"
_IN_USE = """
    SELECT EXISTS (SELECT 1 FROM messages WHERE account = :account AND state IN ('claimed', 'running'))
        OR EXISTS (SELECT 1 FROM parts WHERE account = :account AND state IN ('pending', 'sending'))
"""


def bind(db: Cursor, step: Bind) -> str:
    """Where another identity may come in, what the old one left goes, except the ids that were seen."""
    row = db.execute(
        "SELECT fingerprint, checkpoint FROM accounts WHERE account = ?", (step.account,)
    ).fetchone()
    if row is None:
        db.execute(_BIND, (step.account, step.fingerprint))
        return ""
    fingerprint, checkpoint = row
    if fingerprint == step.fingerprint:
        return str(checkpoint)
    if fingerprint == "":
        db.execute(_REBIND, (step.fingerprint, step.account))
        return str(checkpoint)
    if checkpoint or db.execute(_IN_USE, {"account": step.account}).fetchone()[0]:
        raise BindingError(
            "the account's stored state belongs to another identity: sign in as before, or rename the account"
        )
    db.execute(_REPLACE, (step.fingerprint, step.account))
    owner_chats.forget(db, step.account)
    db.execute("DELETE FROM held WHERE account = ?", (step.account,))
    for table in ("bindings", "choices", "signs"):
        db.execute(f"DELETE FROM {table} WHERE account = ?", (step.account,))  # noqa: S608 - our own names
    db.execute("UPDATE parts SET dead = 0 WHERE account = ? AND dead = 1", (step.account,))
    return ""


def recover(db: Cursor, step: Recover) -> int:
    count = "SELECT count(*) FROM parts WHERE account = ? AND state IN ('pending', 'sending')"
    return int(db.execute(count, (step.account,)).fetchone()[0])


def set_identity(db: Cursor, step: SetIdentity) -> None:
    db.execute(
        "INSERT INTO accounts (account, bot_id, name) VALUES (?, ?, ?)"
        " ON CONFLICT (account) DO UPDATE SET bot_id = excluded.bot_id, name = excluded.name",
        (step.account, step.bot_id, step.name),
    )
