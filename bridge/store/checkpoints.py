"""Moving the log into the database: in idle moments, or when the log has grown too large."""

from __future__ import annotations

import sqlite3
from pathlib import Path

LARGE_BYTES = 32 << 20
RETRY_BYTES = 4 << 20  # how much a log must grow before one that a reader kept from ending is tried again


class Checkpoints:
    """Runs them on the writing connection, between transactions. Errors are raised as SQLite's own."""

    def __init__(self, db: sqlite3.Connection, path: Path, large_bytes: int = LARGE_BYTES) -> None:
        self._db = db
        self._log = path.with_name(path.name + "-wal")
        self._large_bytes = self._limit_bytes = large_bytes
        self._due = True  # a log may have been left behind

    def after_commit(self) -> None:
        """Checkpoint when the log is too large.

        The log's file starts over after a whole checkpoint and then shrinks to ``database.KEPT_WAL_BYTES``,
        so that its size tells when it has grown again.
        """
        self._due = True
        size = self._log.stat().st_size
        if size > self._limit_bytes:
            self._limit_bytes = self._large_bytes if self.run() else size + RETRY_BYTES

    def when_idle(self) -> None:
        if self._due:
            self.run()

    def run(self, mode: str = "PASSIVE") -> bool:
        """Whether everything in the log is in the database now."""
        busy, frames, moved = self._db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        self._due = False
        return not busy and bool(frames == moved)
