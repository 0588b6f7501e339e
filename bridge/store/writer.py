"""Group commit: everything that waits goes into one transaction, and is answered after its commit.

No delay is added: while one group is being synced, the next one gathers. The loop is woken once for a group.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bridge.errors import StoreError
from bridge.meter import StoreMeter
from bridge.store import schema
from bridge.store.checkpoints import Checkpoints
from bridge.store.contract import Step
from bridge.store.database import SyncError, explain
from bridge.store.group import Outcome, commit_group
from bridge.store.workers import Workers, post

GROUP_STEPS = 512
_BROKEN = "the store has stopped after an error: the daemon must be started again"

Entry: TypeAlias = "tuple[Step[object], asyncio.Future[object]]"


class Writer:
    """Owns the connection that writes. ``put`` and ``backlog`` are the loop's.

    ``fatal`` is called in the loop when a sync failed: nothing is taken any more, and the process must end.
    """

    def __init__(
        self, workers: Workers, fatal: Callable[[StoreError], None], meter: StoreMeter | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._fatal = fatal
        self._measured = meter.commit if meter is not None else nullcontext
        self._waiting: deque[Entry] = deque()
        self._awake = False
        self._unanswered = 0
        self._refusal = ""
        self._broken = False
        self._cursor: sqlite3.Cursor | None = None
        self._checkpoints: Checkpoints | None = None
        self.worker = workers("store-writer", self._idle)

    def open(self, path: Path) -> None:
        """Open the database; raises as ``schema.open_file`` does."""
        db = schema.open_file(path)
        self._cursor, self._checkpoints = db.cursor(), Checkpoints(db, path)

    def put(self, step: Step[object]) -> asyncio.Future[object]:
        """The future of the step's result, which is set after its commit."""
        if self._refusal:
            raise StoreError(self._refusal)
        future = self._loop.create_future()
        self._waiting.append((step, future))
        self._unanswered += 1
        if not self._awake:
            self._awake = True
            self.worker.submit(self._drain)
        return future

    def backlog(self) -> int:
        """Steps that have no answer yet."""
        return self._unanswered

    def refuse(self, reason: str) -> None:
        """From now on every new step fails for ``reason``."""
        self._refusal = self._refusal or reason

    def finish(self) -> bool:
        """Take what still waits. False: a sync has failed, now or before."""
        self._drain()
        return not self._broken

    def close(self) -> None:
        """Take what still waits, move the log into the database, and close it. Closing again does nothing."""
        if self._cursor is None or self._checkpoints is None:  # it could not be opened
            return
        self._drain()
        self._checkpoint(partial(self._checkpoints.run, "TRUNCATE"))
        self._cursor.connection.close()
        self._cursor = self._checkpoints = None

    def _drain(self) -> None:
        while group := self._next_group():
            try:
                self._take(group)
            except BaseException:  # a bug: whoever waits must not wait for ever
                self._break(StoreError(_BROKEN))
                self._drain()
                raise

    def _next_group(self) -> list[Entry]:
        waiting = self._waiting
        if not waiting:
            self._awake = False
            if not waiting:  # looked at again, since a step may have come just before the flag fell
                return []
            self._awake = True
        return [waiting.popleft() for _ in range(min(len(waiting), GROUP_STEPS))]

    def _take(self, group: list[Entry]) -> None:
        outcomes: list[Outcome] = [StoreError(_BROKEN) for _ in group]
        try:
            if self._cursor is not None and not self._broken:
                with self._measured(len(group)):
                    outcomes = commit_group(self._cursor, [step for step, _ in group])
        finally:
            post(self._loop, lambda: self._answer(group, outcomes))
        if isinstance(outcomes[0], SyncError):  # a failed sync is the outcome of a whole group
            self._break(outcomes[0])
        if self._checkpoints is not None:
            self._checkpoint(self._checkpoints.after_commit)

    def _idle(self) -> None:
        if self._checkpoints is not None:
            self._checkpoint(self._checkpoints.when_idle)

    def _checkpoint(self, run: Callable[[], object]) -> None:
        """One that fails for lack of space or rights is tried again later; the log keeps everything."""
        if self._broken:
            return
        try:
            run()
        except OSError:  # the log's size could not be read
            return
        except sqlite3.Error as error:
            if isinstance(explained := explain(error), SyncError):
                self._break(explained)

    def _break(self, error: StoreError) -> None:
        self._broken = True
        self.refuse(_BROKEN)
        post(self._loop, partial(self._fatal, error))

    def _answer(self, group: Sequence[Entry], outcomes: Sequence[Outcome]) -> None:
        self._unanswered -= len(group)
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if future.done():  # its caller was cancelled
                continue
            if isinstance(outcome, StoreError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
