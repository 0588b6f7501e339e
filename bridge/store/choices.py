"""What was chosen in conversations."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.ids import AccountId
from bridge.store.choice_steps import Choose, Chosen, ChosenIn

_CHOOSE = "INSERT OR REPLACE INTO choices VALUES (?, ?, ?, ?, ?, ?)"
_UNCHOOSE = "DELETE FROM choices WHERE account = ? AND conversation = ?"
_CHOSEN = "SELECT agent, model, mode, cwd FROM choices WHERE account = ? AND conversation = ?"
_FORGET = """
    DELETE FROM choices WHERE account = :account AND conversation IN (
        SELECT conversation FROM choices WHERE account = :account LIMIT :limit)
"""


def choose(db: Cursor, step: Choose) -> None:
    chosen, key = step.chosen, (step.account, step.conversation)
    if chosen == Chosen():
        db.execute(_UNCHOOSE, key)
    else:
        db.execute(_CHOOSE, (*key, chosen.agent, chosen.model, chosen.mode, chosen.cwd))


def chosen_in(db: Cursor, query: ChosenIn) -> Chosen:
    row = db.execute(_CHOSEN, (query.account, query.conversation)).fetchone()
    return Chosen(*row) if row else Chosen()


def forget(db: Cursor, account: AccountId, limit: int) -> int:
    """Forget ``limit`` of the account's at most; returns how many went."""
    return db.execute(_FORGET, {"account": account, "limit": limit}).rowcount
