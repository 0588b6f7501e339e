from pathlib import Path

import pytest

from bridge.agents.contract import HistoryEntry, Role, Turn
from bridge.agents.echo_talk import NO_TOOLS, Talk
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for
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
