"""The schema's numbered migrations, ``migrations/NNNN_<name>.sql``, each taken in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from bridge.errors import ConfigError
from bridge.store import database


def open_file(path: Path) -> sqlite3.Connection:
    """Open or create the database at ``path``, bring it up to date, and return the writing connection.

    Raises:
        ConfigError: it belongs to a newer version or another program, is damaged, or cannot be used.
    """
    if sqlite3.sqlite_version_info < database.OLDEST_SQLITE:
        raise ConfigError(f"SQLite {sqlite3.sqlite_version} is too old: 3.37 or later is needed")
    database.create_private(path)
    db: sqlite3.Connection | None = None
    try:
        db = database.connect_reader(path)
        refuse_foreign(db, path)
        db.close()
        db = database.connect_writer(path)
        migrate(db, migrations())
        check(db, path)
    except (sqlite3.Error, ConfigError) as error:
        if db is not None:
            db.close()
        raise _refusal(error, path) from error
    return db


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads, and has read: only then is it part of the file's locking.

    Raises:
        ConfigError: as ``open_file``.
    """
    try:
        db = database.connect_reader(path)
        try:
            version(db)
        except sqlite3.Error:
            db.close()
            raise
        return db
    except sqlite3.Error as error:
        raise _refusal(error, path) from error


def migrations() -> list[str]:
    """The scripts in order; the n-th, counted from 1, leads to schema version n."""
    folder = files("bridge.store") / "migrations"
    found = sorted(folder.iterdir(), key=lambda file: file.name)
    return [file.read_text(encoding="utf-8") for file in found if file.name.endswith(".sql")]


def refuse_foreign(db: sqlite3.Connection, path: Path) -> None:
    """Raise ConfigError for a file of a newer version or of another program, before anything is changed."""
    newest, found = len(migrations()), version(db)
    if found > newest:
        raise ConfigError(
            f"the database {path} has schema {found}, this version knows {newest}: install the newer one"
        )
    if found < 0 or (found == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]):
        raise ConfigError(f"{path} is another program's database: move it away")


def version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def migrate(db: sqlite3.Connection, scripts: list[str]) -> None:
    """Take every script that the file has not seen, each with its number in one transaction."""
    for number in range(version(db) + 1, len(scripts) + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements(scripts[number - 1]):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except sqlite3.Error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def statements(script: str) -> Iterator[str]:
    """The script's statements, the last with or without its semicolon.

    (``executescript`` would commit before it starts.)
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def check(db: sqlite3.Connection, path: Path) -> None:
    """Look for damage: all of a small file, of a large one what opening it touches."""
    pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if pages * size > database.CHECKED_BYTES:
        return
    if [row[0] for row in db.execute("PRAGMA quick_check(1)")] != ["ok"]:
        raise _damaged(path)


def _damaged(path: Path) -> ConfigError:
    return ConfigError(
        f"the database {path} is damaged: restore a copy of it, or move it away to start afresh"
    )


def _refusal(error: sqlite3.Error | ConfigError, path: Path) -> ConfigError:
    if isinstance(error, ConfigError):
        return error
    if database.is_damage(error):
        return _damaged(path)
    return ConfigError(f"cannot open {path}: {database.explain(error)}")
