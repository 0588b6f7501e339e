"""A disk that fails when a test says so, under a real connection."""

import sqlite3
from typing import Any


def failure(name: str) -> sqlite3.OperationalError:
    """SQLite's error of this name."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = getattr(sqlite3, name)
    return error


class Disk:
    """A cursor whose statements fail as ``fail`` says, by first word and the name of SQLite's error."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.fail: dict[str, str] = {}
        self.seen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        word = statement.split()[0]
        self.seen.append(word)
        if word in self.fail:
            raise failure(self.fail[word])
        return self._cursor.execute(statement, values)
