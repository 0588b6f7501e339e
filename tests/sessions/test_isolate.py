import asyncio
import gc

import pytest

from bridge.channel.testing.clock import settle
from bridge.sessions.isolate import Isolated, finish


async def forever() -> None:
    await asyncio.Event().wait()


async def test_an_error_is_returned_and_not_raised() -> None:
    async def broken() -> None:
        raise KeyError("x")

    assert isinstance(await Isolated(broken(), "work", 1).ended(), KeyError)
    assert await Isolated(asyncio.sleep(0), "work", 1).ended() is None


async def test_a_cancelled_work_is_stopped_and_waited_for() -> None:
    ended = []

    async def slow_to_end() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    work = Isolated(slow_to_end(), "work", 1)
    await settle()
    work.cancel()
    work.cancel()
    assert isinstance(await work.ended(), asyncio.CancelledError)
    assert ended == [True]


async def test_a_work_that_swallows_its_cancellation_is_left() -> None:
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    work = Isolated(stubborn(), "work", 0.01)
    await settle()
    work.cancel()
    assert isinstance(await work.ended(), asyncio.CancelledError)
    release.set()
    await settle()


async def test_cancelling_who_waits_stops_the_work() -> None:
    ended = []

    async def noted() -> None:
        try:
            await forever()
        finally:
            ended.append(True)

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(Isolated(noted(), "work", 1).ended())
        await settle()
        waiting.cancel()
    assert waiting.cancelled()
    assert ended == [True]


async def test_what_must_be_finished_is_finished_although_the_caller_is_cancelled() -> None:
    release, done = asyncio.Event(), []

    async def work() -> None:
        await release.wait()
        done.append(True)

    async with asyncio.TaskGroup() as tasks:
        caller = tasks.create_task(finish(work()))
        await settle()
        caller.cancel()
        await settle()
        assert not caller.done()
        release.set()
    assert caller.cancelled()
    assert done == [True]


async def test_an_error_of_what_must_be_finished_is_raised() -> None:
    async def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await finish(broken())


@pytest.mark.parametrize("stop_seconds", [1, 0])  # in time, or not
async def test_an_error_after_the_stop_is_no_surprise_to_the_loop(stop_seconds: float) -> None:
    surprises = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: surprises.append(context))

    async def breaks_off() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            raise KeyError("x")

    async def waiting() -> None:
        await Isolated(breaks_off(), "work", stop_seconds).ended()

    async with asyncio.TaskGroup() as tasks:
        waiter = tasks.create_task(waiting())
        await settle()
        waiter.cancel()
    del waiter, tasks  # with all that they hold
    await settle()
    gc.collect()
    assert surprises == []
