import asyncio

import pytest

from bridge.channel.testing.clock import settle
from bridge.errors import StoreError
from bridge.relay.settle import settled


async def fail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def test_a_bug_is_a_value() -> None:
    error = KeyError("x")
    assert await settled(fail(error), "test") is error


async def test_an_error_of_ours_is_raised() -> None:
    with pytest.raises(StoreError, match="full"):
        await settled(fail(StoreError("full")), "test")


async def test_work_that_ends_well_gives_its_result() -> None:
    assert await settled(asyncio.sleep(0, "done"), "test") == "done"


async def test_cancelling_the_caller_cancels_the_work_and_waits_for_it() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            seen.append("ended")

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(settled(work(), "test"))
        await settle()
        task.cancel()
    assert seen == ["ended"]
