import asyncio
from pathlib import Path

from bridge.channel.testing.clock import FakeClock, settle
from bridge.tools.contract import Risk, ToolResult
from bridge.tools.wait import Wait, WaitArguments
from tests.tools.place import Shown


async def test_each_second_of_a_wait_is_shown() -> None:
    clock, shown = FakeClock(), Shown(Path("/"))
    tool = Wait(clock)
    assert (tool.risk, tool.summary(WaitArguments(seconds=2))) == (Risk.READ_ONLY, "Wait 2 seconds")
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(tool.run(WaitArguments(seconds=2), shown.place))
        await settle()
        assert shown.lines == []
        await clock.advance(1)
        assert shown.lines == ["waited 1 of 2 seconds"]
        await clock.advance(1)
    assert waiting.result() == ToolResult(True, "Waited 2 seconds.")
    assert len(shown.lines) == 2
