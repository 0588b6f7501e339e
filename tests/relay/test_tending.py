"""What an account lets go of in time."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridge.channel.testing.clock import START, until
from bridge.relay.tending import SWEEP_SECONDS, sweep_all
from tests.relay.harness import STRANGER, Desk, desk, homes

THEN = START.timestamp()  # as old as the test is


@asynccontextmanager
async def sweeping(*desks: Desk) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        accounts = [here.account for here in desks]
        sweeps = tasks.create_task(sweep_all(lambda: accounts, desks[0].clock))
        yield
        sweeps.cancel()


async def test_idle_sessions_are_closed_and_only_a_stranger_s_history_is_dropped() -> None:
    async with desk(settings={"remote_tools": "owner"}) as here:
        await here.say("a")
        await here.say("b", STRANGER)
        await here.answered(2)
        await here.clock.advance(1900)
        await until(lambda: here.server.closed == 2)
        assert len(here.server.frames("session.clear")) == 1
        await here.say("c")
        await here.answered(3)
        assert here.server.opened == 2


async def test_received_files_are_swept_when_their_time_is_over() -> None:
    async with desk(settings={"media": {"keep_days": 1}}) as here:
        old = here.home.inbox("test", "a", "0123456789abcdef") / "0-a.txt"
        here.home.private_dir(old.parent)
        old.write_text("abc")
        async with sweeping(here):
            await until(lambda: bool(here.clock.waits()))  # the sweep at the start is over
            assert old.exists()
            here.clock.jump(10 * 365 * 86_400)
            await here.clock.advance(SWEEP_SECONDS)
            await until(lambda: not old.parent.exists())
        assert old.parent.parent.is_dir()


async def test_received_files_over_the_quota_are_swept_at_the_start() -> None:
    async with homes() as home:
        kept = [home.inbox("test", "a", "0123456789abcdef") / f"{n}-a.bin" for n in range(3)]
        home.private_dir(kept[0].parent)
        for stamp, path in enumerate(kept):
            path.write_bytes(bytes(600 * 1024))
            os.utime(path, (THEN + stamp, THEN + stamp))
        async with desk(home=home, media={"quota_mib": 1}) as here, sweeping(here):
            await until(lambda: [path.exists() for path in kept] == [False, False, True])
