"""What a command waits for."""

import asyncio

from bridge.channel.testing.clock import FakeClock, settle
from bridge.relay.followed import ASKING_SECONDS, FOLLOW_SECONDS, Followed


async def test_an_asking_is_answered_when_there_is_something_new_and_else_in_time() -> None:
    clock = FakeClock()
    followed = Followed(clock)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(followed.news(1000))
        await settle()
        assert not asking.done()
        followed.tell()
        await asking
        again = tasks.create_task(followed.news(1000))
        await settle()
        await clock.advance(ASKING_SECONDS)
        await again
        short = tasks.create_task(followed.news(2))
        await settle()
        await clock.advance(2)
        await short


async def test_what_nobody_asks_after_for_a_minute_is_abandoned() -> None:
    clock = FakeClock()
    followed = Followed(clock)
    seen = []
    for seconds in (FOLLOW_SECONDS - 1, FOLLOW_SECONDS - 1, 1):
        await clock.advance(seconds)
        seen.append(followed.is_abandoned)
        if len(seen) == 1:
            await followed.news(0)
    assert seen == [False, False, True]
    assert followed.id != Followed(clock).id
