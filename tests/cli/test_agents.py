"""``agents list`` and ``agents check``: by the settings on disk, for people and for programs."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.agents import llm
from bridge.cli.main import main
from bridge.paths import Home, write_private
from tests.agents.llm.server import ModelServer

FAST = '[agents.fast]\ntype = "llm"\nprovider = "compatible"\nbase_url = "{}/v1"\nmodel = "small"\n'
CODE = '[agents.code]\ntype = "acp"\ncommand = ["no-such-program"]\n'


@pytest.fixture
def agents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Write the settings, run the command; its exit code and what it printed."""
    where = Home(tmp_path / "home")

    def ran(settings: str, *words: str) -> tuple[int, str]:
        where.private_dir(where.root)
        write_private(where.config, settings.encode())
        code = main(["agents", *words, "--home", str(where.root)])
        return code, capsys.readouterr().out

    return ran


def test_each_profile_is_a_line_and_the_default_is_marked(agents: Callable[..., tuple[int, str]]) -> None:
    code, said = agents(FAST.format("http://127.0.0.1:1") + CODE, "list")
    assert code == 0
    assert [line.split() for line in said.splitlines()] == [
        ["AGENT", "TYPE", "MODEL", "TOOLS", "STATE"],
        ["code", "acp", "-", "its", "own", "installed"],
        ["echo", "(default)", "echo", "-", "ours", "installed"],
        ["fast", "llm", "small", "ours", "installed"],
    ]


def test_what_is_not_installed_or_cannot_be_read_is_a_no(
    agents: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm, "LIBRARIES", ("no_such_library",))
    code, said = agents(FAST.format("http://127.0.0.1:1") + "[agents.odd]\nx = 1\n", "list", "--json")
    echo, fast, odd = json.loads(said)
    assert code == 1
    assert (echo["is_default"], echo["problem"], fast["problem"]) == (True, "", llm.LACKING)
    assert odd["type"] is None
    assert "agents.odd.type: must name an installed agent" in odd["problem"]


async def test_each_is_asked_and_a_fault_has_its_cure(agents: Callable[..., tuple[int, str]]) -> None:
    async with ModelServer().serving() as server:
        settings = FAST.format(server.address) + CODE + "[agents.odd]\nx = 1\n"
        code, said = await asyncio.to_thread(agents, settings, "check")
        assert code == 1
        assert "agent        fast: the model small is there" in said
        assert "fault    agent        code: no-such-program is not installed" in said
        assert "agents.odd.type: must name an installed agent" in said
        assert "2 faults, 0 warnings" in said
        code, said = await asyncio.to_thread(agents, settings, "check", "fast", "--json")
        assert all(asked.path == "/v1/models" for asked in server.asked)  # nothing is spent
    assert code == 0
    assert json.loads(said)["ok"] is True


async def test_a_context_with_no_room_beside_the_tools_is_warned_of(
    agents: Callable[..., tuple[int, str]],
) -> None:
    async with ModelServer().serving() as server:
        account = '[channels.console.local]\nremote_tools = "owner"\nagent = "fast"\n'
        settings = FAST.format(server.address) + "context_tokens = 2048\n" + account
        code, said = await asyncio.to_thread(agents, settings, "check")
    assert code == 0
    assert "warning  agent        fast: instructions and tools leave nothing for the messages" in said
    assert "0 faults, 1 warning" in said


def test_a_profile_that_is_not_there_is_a_fault(agents: Callable[..., tuple[int, str]]) -> None:
    code, said = agents("", "check", "nobody")
    assert code == 1
    assert "there is no agent called 'nobody'" in said


def test_a_program_is_told_the_faults_in_json(agents: Callable[..., tuple[int, str]]) -> None:
    code, said = agents(CODE, "check", "code", "--json")
    told = json.loads(said)
    assert (code, told["ok"]) == (1, False)
    assert any("no-such-program is not installed" in found["text"] for found in told["findings"])
