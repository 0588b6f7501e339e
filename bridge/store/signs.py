"""Signs that are to be taken away again."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.ids import AccountId
from bridge.store.sign_steps import DropSign, PutSign, Sign, SignsOf

_PUT = "INSERT OR REPLACE INTO signs VALUES (?, ?, ?, ?, ?, ?)"
_DROP = "DELETE FROM signs WHERE account = ? AND kind = ? AND message_id = ?"
_OF = "SELECT kind, message_id, recipient, reply_to, handle FROM signs WHERE account = ? LIMIT 1000"


def put(db: Cursor, step: PutSign) -> None:
    sign = step.sign
    db.execute(_PUT, (step.account, sign.kind, sign.message_id, sign.to, sign.reply_to, sign.handle))


def drop(db: Cursor, step: DropSign) -> None:
    db.execute(_DROP, (step.account, step.sign.kind, step.sign.message_id))


def signs_of(db: Cursor, query: SignsOf) -> tuple[Sign, ...]:
    return tuple(Sign(*row) for row in db.execute(_OF, (query.account,)))


def forget(db: Cursor, account: AccountId) -> None:
    """What another bot has put nobody else can take away."""
    db.execute("DELETE FROM signs WHERE account = ?", (account,))
