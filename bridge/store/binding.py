"""To whom an account's stored state is bound, read from the file itself, beside a daemon that has it open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bridge.errors import ConfigError
from bridge.ids import AccountId
from bridge.store.schema import open_reader

_BOUND = """
    SELECT fingerprint FROM accounts WHERE account = :account AND (
        checkpoint != ''
        OR EXISTS (SELECT 1 FROM messages WHERE account = :account)
        OR EXISTS (SELECT 1 FROM held WHERE account = :account)
        OR EXISTS (SELECT 1 FROM parts WHERE account = :account))
"""


def bound_to(path: Path, account: AccountId) -> str:
    """The fingerprint of whom the account's state in the database ``path`` depends on; "" for nobody.

    Raises:
        ConfigError: the database cannot be read.
    """
    if not path.exists():
        return ""
    with closing(open_reader(path)) as db:
        try:
            row = db.execute(_BOUND, {"account": account}).fetchone()
        except sqlite3.Error as error:
            raise ConfigError(f"cannot read {path}: start the daemon once, it says what is wrong") from error
    return str(row[0]) if row else ""
