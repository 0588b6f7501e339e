import asyncio

from bridge.channel.testing.clock import FakeClock, settle
from bridge.relay.waiting import happens


async def test_it_is_told_as_soon_as_it_happens() -> None:
    clock, event = FakeClock(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(happens(event, 5, clock))
        await settle()
        event.set()
    assert waiting.result() is True
    assert clock.waits() == []


async def test_what_does_not_happen_is_waited_for_so_long() -> None:
    clock = FakeClock()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(happens(asyncio.Event(), 5, clock))
        await settle()
        await clock.advance(4.9)
        assert not waiting.done()
        await clock.advance(0.2)
    assert waiting.result() is False


async def test_what_has_happened_or_has_no_time_is_told_at_once() -> None:
    event = asyncio.Event()
    assert await happens(event, 0, FakeClock()) is False
    event.set()
    assert await happens(event, 5, FakeClock()) is True


async def test_a_wait_that_is_cancelled_leaves_nothing_behind() -> None:
    clock = FakeClock()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(happens(asyncio.Event(), 5, clock))
        await settle()
        waiting.cancel()
    assert waiting.cancelled()
    assert clock.waits() == []
