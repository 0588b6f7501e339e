from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bridge.channel.testing.clock import FakeClock
from bridge.config import ToolsTable
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.tools.choose import others_of, toolbox, tools_for
from bridge.tools.contract import Risk, Tool
from bridge.tools.wait import Wait
from tests.tools.test_installed import GOOD, Install, install

__all__ = ["install"]

RISKS = {
    "list_files": Risk.READ_ONLY,
    "read_file": Risk.READ_ONLY,
    "search_files": Risk.READ_ONLY,
    "write_file": Risk.FILESYSTEM,
    "edit_file": Risk.FILESYSTEM,
    "shell": Risk.PROCESS,
    "web_fetch": Risk.NETWORK,
    "chat_history": Risk.READ_ONLY,
    "skill": Risk.READ_ONLY,
    "wait": Risk.READ_ONLY,
}


def test_a_session_gets_what_it_may_use(tmp_path: Path) -> None:
    home, clock = Home(tmp_path), FakeClock()
    assert not tools_for(home, clock, True, "Feishu")
    assert {name: tool.risk for name, tool in tools_for(home, clock, False, "").items()} == RISKS
    chat = tools_for(home, clock, False, "Feishu")
    assert {name: tool.risk for name, tool in chat.items()} == RISKS | {"chat_attach": Risk.NETWORK}
    for name, tool in chat.items():
        assert tool.name == name
        schema = tool.arguments.model_json_schema()
        assert schema["additionalProperties"] is False
        assert tool.description


def test_case_73_no_tool_has_an_argument_that_names_a_chat_an_account_or_a_receiver(tmp_path: Path) -> None:
    telling = (
        "chat",
        "to",
        "target",
        "session",
        "account",
        "channel",
        "user",
        "recipient",
        "receiver",
        "conversation",
    )
    for tool in tools_for(Home(tmp_path), FakeClock(), False, "Feishu").values():
        assert not set(tool.arguments.model_json_schema()["properties"]) & set(telling), tool.name


def test_what_the_settings_disable_is_not_there_whoever_brings_it(tmp_path: Path) -> None:
    theirs = Wait(FakeClock())
    table = ToolsTable(disabled=("shell", "chat_attach", "mine", "web__search"))
    known: dict[str, Tool] = {"mine": theirs, "web__search": theirs, "web__more": theirs}
    found = tools_for(
        Home(tmp_path), FakeClock(), False, "Feishu", table=table, others=known, more=lambda: known
    )
    assert set(found) == {*RISKS, "web__more"} - {"shell"}


def test_tools_of_others_are_those_of_now_and_never_in_place_of_ours(tmp_path: Path) -> None:
    theirs, mine = Wait(FakeClock()), Wait(FakeClock())
    known: dict[str, Tool] = {"wait": theirs, "mine": theirs, "web__search": theirs}
    others: dict[str, Tool] = {"mine": mine, "shell": mine}

    def found(no_tools: bool) -> dict[str, Tool]:
        return dict(tools_for(Home(tmp_path), FakeClock(), no_tools, "", others=others, more=lambda: known))

    assert set(found(False)) == {*RISKS, "mine", "web__search"}
    assert found(False)["wait"] not in (theirs, mine)
    assert found(False)["shell"] is not mine
    assert found(False)["mine"] is mine
    del known["web__search"]
    assert set(found(False)) == {*RISKS, "mine"}
    assert not found(True)


def test_the_settings_of_a_tool_reach_it(tmp_path: Path) -> None:
    found = toolbox(Home(tmp_path), FakeClock(), ToolsTable(shell_seconds=7))(False, "")
    assert "7 seconds" in found["shell"].description


def test_a_package_brings_a_tool_and_one_that_is_broken_is_logged(tmp_path: Path, install: Install) -> None:
    install("inst_good", GOOD, "[turnbridge.tools]\ngood = inst_good:SPEC\n")
    install("inst_bad", "SPEC = 3", "[turnbridge.tools]\nbad = inst_bad:SPEC\n")
    with capture_logs() as logs:
        found = toolbox(Home(tmp_path), FakeClock(), ToolsTable())
    assert set(found(False, "")) == {*RISKS, "good"}
    assert not found(True, "")
    assert [entry["event"] for entry in logs] == ["tools.not_loaded"]


def test_disabling_what_is_not_there_is_a_mistake_unless_a_server_may_have_it(tmp_path: Path) -> None:
    home, clock = Home(tmp_path), FakeClock()
    with pytest.raises(
        ConfigError, match="'shel', which is no tool here: there are chat_attach, chat_history"
    ):
        toolbox(home, clock, ToolsTable(disabled=("shel",)))
    assert others_of(home, clock, ToolsTable(disabled=("shell", "web__search"))).lacking == ()
