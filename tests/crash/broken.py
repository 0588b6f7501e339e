"""Daemons that are wrong on purpose: a crash run that does not catch them proves nothing."""

import asyncio
import sqlite3
from pathlib import Path
from typing import TypeVar, cast

from bridge.store import schema
from bridge.store.contract import Changed, Claim, ClaimVerdict, Query, Recall, Step, Store, TakenBack

R = TypeVar("R")

VARIANTS = ("ack-first", "no-unique-key", "lost-recalls")
LATE_SECONDS = 0.4


class AckFirst:
    """Says that a message is stored, and stores it a little later."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._late: set[asyncio.Task[object]] = set()

    async def do(self, step: Step[R]) -> R:
        if not isinstance(step, Claim):
            return await self._store.do(step)
        late = asyncio.create_task(self._later(step))  # noqa: TID251 - nobody waits: that is the fault
        self._late.add(late)
        late.add_done_callback(self._late.discard)
        return cast(R, tuple(ClaimVerdict.NEW for _ in step.messages))

    async def _later(self, step: Claim) -> None:
        await asyncio.sleep(LATE_SECONDS)
        await self._store.do(step)

    async def get(self, query: Query[R]) -> R:
        return await self._store.get(query)

    def backlog(self) -> int:
        return self._store.backlog()


class LosesRecalls:
    """Says that a message is taken back, and does not write it down."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def do(self, step: Step[R]) -> R:
        if isinstance(step, Recall):
            return cast(R, TakenBack(Changed.DONE))
        return await self._store.do(step)

    async def get(self, query: Query[R]) -> R:
        return await self._store.get(query)

    def backlog(self) -> int:
        return self._store.backlog()


def drop_unique_keys(path: Path) -> None:
    """Take the keys off the messages, so that every repetition is a new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    schema.open_file(path).close()
    with sqlite3.connect(path) as db:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'messages' "
            "AND sql LIKE 'CREATE UNIQUE%'"
        ).fetchall():
            db.execute(f"DROP INDEX {name}")
    db.close()
