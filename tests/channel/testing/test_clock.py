"""The fake clock: only a test moves time."""

import asyncio
from datetime import timedelta

import pytest

from bridge.channel.testing.clock import START, FakeClock, settle, until


async def test_sleepers_wake_each_at_its_own_time_and_in_order() -> None:
    clock, woken = FakeClock(), list[tuple[str, float]]()
    begun = clock.monotonic()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic() - begun))

    async with asyncio.TaskGroup() as tasks:
        for name, seconds in (("late", 5.0), ("soon", 1.0), ("too", 1.0)):
            tasks.create_task(sleeper(name, seconds))
        await settle()
        assert clock.waits() == [1.0, 1.0, 5.0]
        await clock.advance(0.5)
        assert woken == []
        await clock.advance(10)
    assert woken == [("soon", 1.0), ("too", 1.0), ("late", 5.0)]
    assert clock.now() == START + timedelta(seconds=10.5)
    assert clock.monotonic() == begun + 10.5


async def test_a_sleeper_that_sleeps_on_is_woken_within_the_same_span() -> None:
    clock, ticks = FakeClock(), list[float]()

    async def ticking() -> None:
        for _ in range(3):
            await clock.sleep(2)
            ticks.append(clock.monotonic() - 1000)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ticking())
        await settle()
        await clock.advance(6)
    assert ticks == [2, 4, 6]


@pytest.mark.parametrize("seconds", [0.0, -1.0])
async def test_a_sleep_of_no_length_yields_once(seconds: float) -> None:
    clock, others = FakeClock(), list[str]()
    asyncio.get_running_loop().call_soon(others.append, "ran")
    await clock.sleep(seconds)
    assert others == ["ran"]
    assert clock.waits() == []


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    async with asyncio.TaskGroup() as tasks:
        sleeping = tasks.create_task(clock.sleep(3))
        await settle()
        sleeping.cancel()
        await settle()
        assert clock.waits() == []
        await clock.advance(5)


async def test_a_jump_moves_the_wall_clock_alone_and_wakes_nobody() -> None:
    clock = FakeClock()
    async with asyncio.TaskGroup() as tasks:
        sleeping = tasks.create_task(clock.sleep(60))
        await settle()
        clock.jump(-3600)
        assert (clock.now(), clock.monotonic()) == (START - timedelta(hours=1), 1000.0)
        assert clock.waits() == [60.0]
        sleeping.cancel()


async def test_what_is_waited_for_is_noticed_and_its_absence_too() -> None:
    happened = asyncio.Event()
    asyncio.get_running_loop().call_later(0.001, happened.set)
    await until(happened.is_set)
    with pytest.raises(AssertionError, match="did not happen"):
        await until(lambda: False, rounds=3)
