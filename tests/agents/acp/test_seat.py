import asyncio
from pathlib import Path
from typing import Any

from bridge.agents.acp.prompting import Prompting
from bridge.agents.acp.seat import Seat
from bridge.agents.acp.session import Session
from bridge.agents.contract import ToolCall
from tests.agents.acp.test_session import Program


def live(program: Any) -> Session:
    session = Session(program, "s", Path("/w"), {})
    program.sessions["s"] = session
    return session


def test_an_open_session_counts_as_long_as_its_process_takes_turns() -> None:
    program: Any = Program({})
    program.retired = False
    seat = Seat(live=live(program))
    assert seat.opened() is not None
    program.retired = True
    assert seat.opened() is None
    assert Seat().opened() is Seat().drop() is None


def test_what_is_dropped_hears_nothing_more() -> None:
    program: Any = Program({})
    seat = Seat(live=live(program))
    assert seat.drop() is not None
    assert (seat.live, program.sessions) == (None, {})


async def test_a_call_needs_a_turn() -> None:
    assert not (await Seat().call(ToolCall(name="x", arguments={}))).success
    over: Any = None
    prompting = Prompting("x", over, over, 1)
    prompting.close()
    assert not (await Seat(prompting=prompting).call(ToolCall(name="x", arguments={}))).success


async def test_the_next_turn_waits_for_one_that_is_being_stopped() -> None:
    seat, go = Seat(), asyncio.Event()
    await seat.settled()
    async with asyncio.TaskGroup() as tasks:

        async def settle() -> None:
            await go.wait()

        seat.settling = tasks.create_task(settle())
        waiting = tasks.create_task(seat.settled())
        await asyncio.sleep(0)
        assert not waiting.done()
        go.set()
    assert seat.settling is None
