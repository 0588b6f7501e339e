"""Where the store's blocking work runs: threads of its own, or inline in a simulation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

T = TypeVar("T")
Work = Callable[[], None]

IDLE_SECONDS = 0.5


class Worker(Protocol):
    """Does what it is given, one after the other, in order."""

    def submit(self, work: Work) -> None: ...

    def stop(self) -> None:
        """End once everything that was submitted is done; nothing is submitted after it."""
        ...


Workers = Callable[[str, Work], Worker]
"""Makes a worker from its name and what it does in an idle moment after work."""


class ThreadWorker:
    """A thread. Its wait is the operating system's, so that no clock is read."""

    def __init__(self, name: str, idle: Work) -> None:
        self._idle = idle
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._name = name
        self._start()

    def _start(self) -> None:
        threading.Thread(target=self._run, name=self._name).start()

    def submit(self, work: Work) -> None:
        self._queue.put(work)

    def stop(self) -> None:
        self._queue.put(None)

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException:  # a bug in the work ends its thread, which shows it, but not the worker
            self._start()
            raise

    def _serve(self) -> None:
        wait: float | None = (
            None  # after work, an idle moment is due; after that there is nothing to wake up for
        )
        while True:
            try:
                work = self._queue.get(timeout=wait)
            except Empty:
                self._idle()
                wait = None
                continue
            if work is None:
                return
            work()
            wait = IDLE_SECONDS


class InlineWorker:
    """No thread: work runs in the event loop, in a callback of its own. It has no idle moments."""

    def __init__(self, name: str, idle: Work) -> None:
        self._loop = asyncio.get_running_loop()

    def submit(self, work: Work) -> None:
        self._loop.call_soon(work)

    def stop(self) -> None:
        """Nothing to end."""


def call(worker: Worker, work: Callable[[], T], errors: tuple[type[Exception], ...]) -> asyncio.Future[T]:
    """What ``work`` returns, or raises of ``errors``, in ``worker``. Cancelled, the work is still done."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except errors as error:
            failure = error  # a name of its own, since an except clause deletes its own
            post(loop, lambda: _fail(future, failure))
        else:
            post(loop, lambda: _resolve(future, result))

    worker.submit(run)
    return future


def _resolve(future: asyncio.Future[T], result: T) -> None:
    if not future.done():  # its caller was cancelled
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def post(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Have ``callback`` run in ``loop``, unless that has ended, when nobody waits any more.

    No ``partial`` over what a message says: asyncio shows a callback's arguments when it fails or is slow.
    """
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        if not loop.is_closed():
            raise
