"""The one fake clock: time moves when a test says so."""

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class FakeClock:
    """A ``Clock`` whose sleepers wake only through ``advance``."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._monotonic = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._count += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, self._count, future))
        await future

    def waits(self) -> list[float]:
        """How long each sleeper still has, in seconds, soonest first."""
        return sorted(due - self._monotonic for due, _, future in self._sleepers if not future.done())

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as an administrator or NTP would."""
        self._now += timedelta(seconds=seconds)

    async def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass, waking each sleeper at its own time and letting it run."""
        end = self._monotonic + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, future = heapq.heappop(self._sleepers)
            self._set(due)
            if not future.done():
                future.set_result(None)
            await settle()
        self._set(end)
        await settle()

    def _set(self, monotonic: float) -> None:
        self._now += timedelta(seconds=monotonic - self._monotonic)
        self._monotonic = monotonic


async def settle(rounds: int = 100) -> None:
    """Let everything that is ready run. Work in threads needs its own waiting."""
    for _ in range(rounds):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool], rounds: int = 200_000) -> None:
    """Let everything run, work in threads too, until ``condition`` holds.

    Raises:
        AssertionError: it does not within ``rounds`` turns of the loop.
    """
    for _ in range(rounds):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("what was waited for did not happen")
