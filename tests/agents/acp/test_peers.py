import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.acp.launch import Launch
from bridge.agents.acp.peers import Peers
from bridge.agents.acp.settings import AcpSettings
from bridge.agents.contract import AgentError
from tests.agents.acp.stage import PROGRAM


@asynccontextmanager
async def peers(*command: str, shared: bool = False) -> AsyncIterator[Peers]:
    settings = AcpSettings(command=command or (sys.executable, PROGRAM), shared=shared, start_seconds=10)
    async with asyncio.TaskGroup() as tasks:
        made = Peers(Launch.of("x", settings), settings, tasks)
        try:
            yield made
        finally:
            made.stop()


class Busy:
    def __init__(self) -> None:
        self.is_busy = True


async def test_each_session_has_a_process_of_its_own_that_ends_with_it() -> None:
    async with peers() as made:
        one, two = await made.take(Path("/")), await made.take(Path("/"))
        assert one is not two
        made.let_go(one)
        await one.gone.wait()
        assert two.alive


async def test_a_shared_one_stays_until_it_ends_by_itself() -> None:
    async with peers(shared=True) as made:
        one = await made.take(Path("/"))
        made.let_go(one)
        assert await made.take(Path("/")) is one
        one.stop()
        assert await made.take(Path("/")) is not one


async def test_one_that_hangs_ends_with_the_last_turn_in_it_and_takes_no_new_ones() -> None:
    async with peers(shared=True) as made:
        one = await made.take(Path("/"))
        busy: Any = Busy()
        one.sessions["s"] = busy
        made.give_up(one, "it hangs")
        made.turn_over(one)
        assert one.alive
        assert await made.take(Path("/")) is not one
        busy.is_busy = False
        made.turn_over(one)
        await one.gone.wait()


@pytest.mark.parametrize("shared", [True, False])
async def test_one_that_does_not_start_is_an_error_each_time(shared: bool) -> None:
    async with peers("false", shared=shared) as made:
        for _ in range(2):
            with pytest.raises(AgentError):
                await made.take(Path("/"))


async def test_whoever_stops_waiting_for_its_own_process_ends_it() -> None:
    async with peers("cat") as made:
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(made.take(Path("/")))
            while not made._all:
                await asyncio.sleep(0)
            (one,) = made._all
            waiting.cancel()
        await one.gone.wait()


async def test_one_that_hangs_with_no_turn_in_it_ends_at_once() -> None:
    async with peers(shared=True) as made:
        one = await made.take(Path("/"))
        made.give_up(one, "it hangs")
        await one.gone.wait()
