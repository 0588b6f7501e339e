from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bridge.agents.contract import HistoryEntry, Option, OwnCall, Role, ToolCall, Turn
from bridge.agents.echo_talk import NO_TOOLS, Talk
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for
from bridge.tools.contract import Risk, Tool, ToolResult
from tests.agents.talking import Talked


@pytest.mark.parametrize("no_tools", [True, False])
async def test_only_the_sessions_tools_are_asked_for(no_tools: bool, tmp_path: Path) -> None:
    tools = tools_for(Home(tmp_path / "home"), FakeClock(), no_tools, "")
    talked = Talked(tools, tmp_path)
    talk = Talk(Turn("s", "", (), tools, tmp_path), talked, talked, FakeClock())
    listed = await talk.call("I look.", "list_files", {})
    refused = await talk.call("I send.", "chat_attach", {"path": "a"})
    assert listed.success is not no_tools
    assert (NO_TOOLS in refused.output) is no_tools
    assert talk.steps == len(talked.steps) == (0 if no_tools else 1)


async def test_what_a_model_would_see_is_looked_up_once_a_step(tmp_path: Path) -> None:
    talked = Talked({}, tmp_path)
    talk = Talk(Turn("s", "", (), {}, tmp_path), talked, talked, FakeClock())
    assert await talk.seen() is await talk.seen()
    await talk.say("one")
    assert talk.steps == 1


async def test_what_was_added_to_the_turn_is_said_back(tmp_path: Path) -> None:
    talked = Talked({}, tmp_path)
    talk = Talk(Turn("s", "go", (), {}, tmp_path), talked, talked, FakeClock())
    talked.history = (HistoryEntry(role=Role.USER, text="go"),)
    await talk.say("one")
    assert talked.steps[-1] == "one\n\nYou added: now"


class OneOwn:
    """An own call that is answered with ``chosen``."""

    def __init__(self, chosen: Option | None) -> None:
        self._chosen = chosen
        self.told: list[object] = []

    async def ask(self, options: Sequence[Option]) -> Option | None:
        return self._chosen

    async def started(self) -> None:
        self.told.append("started")

    async def progress(self, text: str) -> None:
        self.told.append(text)

    async def completed(self, result: ToolResult) -> None:
        self.told.append(result)


class OwnGate(Talked):
    def __init__(self, own: OneOwn, tools: Mapping[str, Tool], cwd: Path) -> None:
        super().__init__(tools, cwd)
        self._own = own

    async def own(self, call: ToolCall, risk: Risk, summary: str) -> OwnCall:
        return self._own


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (Option("a", "Once", True), ["started", "make all", ToolResult(True, "Once")]),
        (Option("b", "Never", False), [ToolResult(False, "Never")]),
        (None, [ToolResult(False, "Nobody agreed.")]),
    ],
)
async def test_an_own_call_runs_only_by_an_option_that_allows(
    chosen: Option | None, told: list[object], tmp_path: Path
) -> None:
    tools, own = tools_for(Home(tmp_path / "home"), FakeClock(), False, ""), OneOwn(chosen)
    gate = OwnGate(own, tools, tmp_path)
    talk = Talk(Turn("s", "", (), tools, tmp_path), gate, gate, FakeClock())
    result = await talk.own("shell", ["make", "all"], [Option("a", "Once", True)])
    assert own.told == told
    assert told[-1] == result


async def test_a_session_without_tools_makes_no_own_call(tmp_path: Path) -> None:
    gate = Talked({}, tmp_path)
    talk = Talk(Turn("s", "", (), {}, tmp_path), gate, gate, FakeClock())
    assert NO_TOOLS in (await talk.own("shell", ["x"], ())).output


async def test_a_tool_that_the_session_lacks_is_named(tmp_path: Path) -> None:
    tools = tools_for(Home(tmp_path / "home"), FakeClock(), False, "")
    gate = Talked(tools, tmp_path)
    talk = Talk(Turn("s", "", (), tools, tmp_path), gate, gate, FakeClock())
    assert "no tool nothing" in (await talk.call("I try.", "nothing", {})).output
