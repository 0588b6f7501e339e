"""Work that may fail, or not end, without taking anything else with it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from bridge.logs import get_logger

log = get_logger(__name__)


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Run ``work`` to its end, also when the caller is cancelled meanwhile."""
    task = asyncio.create_task(work)  # noqa: TID251 - awaited right here
    try:
        await asyncio.shield(task)
    finally:
        if not task.done():
            await asyncio.wait([task])
            task.exception()


class Isolated:
    """A task of its own for ``work``, since an error in a TaskGroup would end all the others of the group.

    Whoever makes it must await ``ended``. ``stop_seconds`` is how long a cancelled work may take to end; one
    that takes longer is left alone, and logged as the bug that it is.
    """

    def __init__(self, work: Coroutine[Any, Any, None], name: str, stop_seconds: float) -> None:
        self._task = asyncio.create_task(work, name=name)  # noqa: TID251 - awaited by ended
        self._task.add_done_callback(_look_at)
        self._asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop_seconds = stop_seconds

    def cancel(self) -> None:
        """Make ``ended`` stop the work."""
        if not self._asked.done():
            self._asked.set_result(None)

    async def ended(self) -> BaseException | None:
        """Wait for the end; return the error that caused it. Being cancelled stops the work first."""
        try:
            await asyncio.wait([self._task, self._asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._task.done():
                await self._stop()
        return self._error()

    async def _stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task], timeout=self._stop_seconds)
        if not self._task.done():
            log.error("task.would_not_stop", task=self._task.get_name())

    def _error(self) -> BaseException | None:
        if not self._task.done() or self._task.cancelled():
            return asyncio.CancelledError()
        return self._task.exception()


def _look_at(task: asyncio.Task[None]) -> None:
    """``ended`` tells its error, if anybody still waits: the loop need not complain that nobody looked."""
    if not task.cancelled():
        task.exception()
