import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from bridge.errors import StoreError
from bridge.store import workers
from bridge.store.workers import InlineWorker, ThreadWorker, call, post

MAKERS = [ThreadWorker, InlineWorker]


def nothing() -> None:
    """No idle work."""


@pytest.mark.parametrize("make", MAKERS)
async def test_work_is_done_in_order_and_its_results_come_back(make: Callable[..., workers.Worker]) -> None:
    def work(number: int) -> int:
        done.append(number)
        return number

    done: list[int] = []
    worker = make("test", nothing)
    futures = [call(worker, partial(work, number), ()) for number in range(9)]
    assert [await future for future in futures] == list(range(9)) == done
    worker.stop()


@pytest.mark.parametrize("make", MAKERS)
async def test_an_expected_error_comes_back(make: Callable[..., workers.Worker]) -> None:
    def fail() -> None:
        raise StoreError("full")

    worker = make("test", nothing)
    with pytest.raises(StoreError, match="full"):
        await call(worker, fail, (StoreError,))
    worker.stop()


@pytest.mark.parametrize("make", MAKERS)
async def test_work_is_done_although_its_caller_was_cancelled(make: Callable[..., workers.Worker]) -> None:
    def fail() -> None:
        raise StoreError("full")

    done = threading.Event()
    worker = make("test", nothing)
    call(worker, done.set, ()).cancel()
    call(worker, fail, (StoreError,)).cancel()
    await call(worker, nothing, ())
    assert done.is_set()
    worker.stop()


async def test_a_thread_works_apart_and_ends_after_its_last_work() -> None:
    worker = ThreadWorker("store-test", nothing)
    thread = await call(worker, threading.current_thread, ())
    assert thread.name == "store-test"
    late = call(worker, threading.current_thread, ())
    worker.stop()
    assert await late is thread
    await asyncio.to_thread(thread.join, 10)
    assert not thread.is_alive()


async def test_a_bug_ends_a_thread_but_not_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: shown.append(args.exc_type))
    worker = ThreadWorker("test", nothing)
    thread = await call(worker, threading.current_thread, ())
    call(worker, lambda: 1 // 0, ())
    after = await call(worker, threading.current_thread, ())
    worker.stop()  # before anything can fail: a thread that is left would keep the interpreter from ending
    await asyncio.to_thread(thread.join, 10)  # it shows its error while the next one works already
    assert after is not thread
    assert shown == [ZeroDivisionError]


async def test_an_idle_moment_comes_once_after_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.01)
    idle = threading.Semaphore(0)
    worker = ThreadWorker("test", idle.release)
    assert not await asyncio.to_thread(idle.acquire, timeout=0.03)
    await call(worker, nothing, ())
    assert await asyncio.to_thread(idle.acquire, timeout=10)
    assert not await asyncio.to_thread(idle.acquire, timeout=0.03)
    worker.stop()


def test_an_answer_for_a_loop_that_has_ended_is_dropped() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    post(loop, nothing)


def test_another_error_of_the_loop_is_not_hidden() -> None:
    class Odd(asyncio.SelectorEventLoop):
        def call_soon_threadsafe(self, *_: object, **__: object) -> asyncio.Handle:
            raise RuntimeError("odd")

    loop = Odd()
    with pytest.raises(RuntimeError, match="odd"):
        post(loop, nothing)
    loop.close()
