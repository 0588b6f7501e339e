"""The SQLite file: opening it privately, how its connections are set, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from bridge.errors import ConfigError, StoreError

OLDEST_SQLITE = (3, 37, 0)  # STRICT tables; RETURNING came with 3.35
BUSY_SECONDS = 5.0  # only a foreign program can hold the lock
CACHED_STATEMENTS = 256
CACHE_KIB = 8192  # of pages that are read at random: a fraction of a large index, and nothing of a small one
KEPT_WAL_BYTES = 16 << 20  # to what a grown log shrinks when it starts over
CHECKED_BYTES = 16 << 20  # a larger file is not read whole at each start

STEP_ERRORS = (StoreError, sqlite3.Error, ValueError, OverflowError)
"""What a step or a read can end with. ValueError: a text that has no UTF-8 form, or a damaged value."""

_SYNC_ERRORS = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class SyncError(StoreError):
    """The disk failed to sync. Only reading the file anew tells what it holds: the process must end."""


def create_private(path: Path) -> None:
    """Make the file and its directory for the owner alone, and close an existing one to others.

    Raises:
        ConfigError: it cannot be made, or is no regular file of ours.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(handle).st_mode & 0o777 != 0o600:
                os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
    except OSError as error:
        raise ConfigError(f"cannot open the database {path}: {error.strerror or 'no access'}") from error


def connect_writer(path: Path) -> sqlite3.Connection:
    """The one connection that writes and checkpoints. Transactions are begun by hand."""
    db = _connect(f"file:{quote(str(path))}?mode=rw")
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "fullfsync = ON",  # macOS: through the drive's own cache
        "checkpoint_fullfsync = ON",
        "wal_autocheckpoint = 0",
        f"journal_size_limit = {KEPT_WAL_BYTES}",
        f"cache_size = -{CACHE_KIB}",
        "mmap_size = 0",
        "temp_store = MEMORY",
    ):
        db.execute(f"PRAGMA {pragma}").fetchall()
    return db


def connect_reader(path: Path) -> sqlite3.Connection:
    db = _connect(f"file:{quote(str(path))}?mode=ro")
    db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA mmap_size = 0").fetchall()
    return db


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # opened by one thread, used by another, never by two at once
        cached_statements=CACHED_STATEMENTS,
    )


def explain(error: Exception) -> StoreError:
    """``error`` as ours. Its text names no value, since values are messages."""
    if isinstance(error, StoreError):
        return error
    if not isinstance(error, sqlite3.Error):
        return StoreError("the step was refused: it holds a text or a number that cannot be stored")
    code = getattr(error, "sqlite_errorcode", 0)
    if code in _SYNC_ERRORS:
        return SyncError("the disk failed to sync the database: check the disk; nothing more is accepted")
    known = {
        sqlite3.SQLITE_FULL: "the disk is full: free some space",
        sqlite3.SQLITE_READONLY: "the database is read-only: make its directory and files writable",
        sqlite3.SQLITE_CANTOPEN: "the database cannot be opened: check descriptors, rights and space",
        sqlite3.SQLITE_IOERR: "the disk failed to read or write the database: check the disk and its space",
        sqlite3.SQLITE_BUSY: "the database is locked by another program: end it",
        sqlite3.SQLITE_CORRUPT: "the database is damaged: stop the daemon and restore a copy",
        sqlite3.SQLITE_NOTADB: "the database is damaged: stop the daemon and restore a copy",
        sqlite3.SQLITE_CONSTRAINT: "the step was refused: what it names exists already, or lacks a value",
    }
    return StoreError(known.get(code & 0xFF, f"the database failed ({type(error).__name__})"))


def is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE
