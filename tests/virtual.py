"""An event loop whose time passes at once, and whose tasks may run in any order that a seed draws.

Time moves to the next timer whenever nothing is ready, neither a callback nor a socket, so hours of timeouts,
waits and probes over real sockets of this machine take seconds. Work for threads is done at once, in the
loop: nothing runs beside it.
"""

from __future__ import annotations

import asyncio
import itertools
import selectors
import socket
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from bridge.channel.testing.clock import START

T = TypeVar("T")

LOOKS = 3  # at the sockets before time moves: what this machine sends itself is there at once
STUCK_SECONDS = 20.0  # of real time without a timer, a callback or a byte


class StuckError(Exception):
    """Everything waits for something that will not come."""


class _Selector:
    """The system's selector, which lets the loop's own time pass instead of waiting."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> Any:
        for _ in range(LOOKS):
            if found := self._real.select(0):
                return found
        if timeout is None:
            if found := self._real.select(STUCK_SECONDS):
                return found
            raise StuckError
        self.seconds += max(0.0, timeout)
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class VirtualLoop(asyncio.SelectorEventLoop):
    """With ``rng``, tasks that are ready run in the order that it draws; what is no task keeps its place.

    ``lookup`` is told a port, and may raise what a failing name service would.
    """

    def __init__(self, rng: Random | None = None) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)  # type: ignore[arg-type]  # all of a selector that the loop uses
        self._rng = rng
        self._numbers: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._made = itertools.count()
        self.lookup: Callable[[int], None] = lambda _: None
        self.steps: list[str] = []  # names of the tasks in the order in which they ran, with an rng

    def time(self) -> float:
        return self._virtual.seconds

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]  # as the loop documents it
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever awaits it gets it
            future.set_exception(error)
        return future

    async def getaddrinfo(self, host: Any, port: Any, **kwargs: Any) -> Any:
        self.lookup(port or 0)
        address = (host if host != "localhost" else "127.0.0.1", port or 0)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]

    def create_task(self, *args: Any, **kwargs: Any) -> asyncio.Task[Any]:
        task = super().create_task(*args, **kwargs)
        self._numbers[task] = next(self._made)
        return task

    def _run_once(self) -> None:
        if self._rng is not None:
            self._shuffle(self._rng)
        super()._run_once()  # type: ignore[misc]  # a loop's own, under no public name

    def _shuffle(self, rng: Random) -> None:
        """Exchange the places of tasks' steps: each has one at most, so none overtakes itself.

        They are sorted before: a group cancels its tasks in an order that no seed draws.
        """
        ready = self._ready  # type: ignore[attr-defined]  # as above
        found = [
            (place, task) for place, handle in enumerate(ready) if (task := _task_of(handle)) is not None
        ]
        drawn = sorted((self._numbers[task], task.get_name(), ready[place]) for place, task in found)
        rng.shuffle(drawn)
        for (place, _), (_, name, handle) in zip(found, drawn, strict=True):
            ready[place] = handle
            self.steps.append("" if name.startswith("Task-") else name)  # which count over all loops


def _task_of(handle: asyncio.Handle) -> asyncio.Task[Any] | None:
    callback = handle._callback  # type: ignore[attr-defined]  # a handle's own, under no public name
    owner = getattr(callback, "__self__", None)
    return owner if isinstance(owner, asyncio.Task) else None


class LoopClock:
    """A ``Clock`` by a virtual loop's time. The wall clock may be moved alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ahead = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self._loop.time() - 1000.0 + self._ahead)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def jump(self, seconds: float) -> None:
        self._ahead += seconds


def virtually(work: Callable[[VirtualLoop], Coroutine[Any, Any, T]], rng: Random | None = None) -> T:
    """The result of ``work``, done in a virtual loop."""
    loops: list[VirtualLoop] = []

    def make() -> VirtualLoop:
        loops.append(VirtualLoop(rng))
        return loops[0]

    with asyncio.Runner(loop_factory=make) as runner:
        runner.get_loop()
        return runner.run(_closing(work(loops[0])))


async def _closing(work: Coroutine[Any, Any, T]) -> T:
    """Let what was closed in ``work`` be closed, which takes the loop some rounds."""
    try:
        return await work
    finally:
        for _ in range(20):
            await asyncio.sleep(0)
