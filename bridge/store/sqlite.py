"""The store in one SQLite file. ``open_store`` is all that others need."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from bridge.errors import ConfigError, StoreError
from bridge.meter import StoreMeter
from bridge.store import database, queries, schema
from bridge.store.contract import Query, Step
from bridge.store.workers import ThreadWorker, Worker, Workers, call
from bridge.store.writer import Writer

R = TypeVar("R")


class SqliteStore:
    """A ``Store``. Made by ``open_store``, and used only in the loop that opened it."""

    def __init__(self, writer: Writer, reader: Worker, read_db: sqlite3.Connection) -> None:
        self._writer = writer
        self._reader = reader
        self._read_db = read_db

    async def do(self, step: Step[R]) -> R:
        """As ``Store.do``. A caller that is cancelled while it waits may find the step taken or not."""
        return cast(R, await self._writer.put(step))

    async def get(self, query: Query[R]) -> R:
        """As ``Store.get``.

        Raises:
            StoreError: the file cannot be read, or is damaged.
        """
        return await call(self._reader, partial(read, self._read_db, query), (StoreError,))

    def backlog(self) -> int:
        return self._writer.backlog()


def read(db: sqlite3.Connection, query: Query[R]) -> R:
    """The answer to ``query``, or StoreError. Its cursor is closed: one left open would hold the log back."""
    try:
        with closing(db.cursor()) as cursor:
            return queries.read(cursor, query)
    except sqlite3.Error as error:
        raise database.explain(error) from None  # SQLite's text may show a value
    except (ValueError, OverflowError):
        raise StoreError("what was asked for cannot be stored, or the database is damaged") from None


def ignore(error: StoreError) -> None:
    """For callers that end by the steps' own errors."""


@asynccontextmanager
async def open_store(
    path: Path,
    *,
    fatal: Callable[[StoreError], None] = ignore,
    workers: Workers = ThreadWorker,
    meter: StoreMeter | None = None,
) -> AsyncIterator[SqliteStore]:
    """Open or create the database at ``path``; leaving takes what still waits, checkpoints and closes.

    ``fatal`` is called in the loop when the disk failed to sync: the process must end and start again, since
    what the file holds is known only then. ``workers`` make the threads; ``InlineWorker`` does without.

    Raises:
        ConfigError: the file is damaged, of a newer version or another program's, or cannot be used.
    """
    writer = Writer(workers, fatal, meter)
    reader = workers("store-reader", lambda: None)
    try:
        await call(writer.worker, partial(writer.open, path), (ConfigError,))
        read_db = await call(reader, partial(schema.open_reader, path), (ConfigError,))
        try:
            yield SqliteStore(writer, reader, read_db)
        finally:
            writer.refuse("the store is closing: start the daemon again")
            if not await call(writer.worker, writer.finish, ()):
                # Before the reader: the last connection to close would checkpoint, after a failed sync.
                await call(writer.worker, writer.close, ())
            await call(reader, read_db.close, ())
    finally:
        reader.stop()
        try:
            await call(writer.worker, writer.close, ())
        finally:
            writer.worker.stop()
