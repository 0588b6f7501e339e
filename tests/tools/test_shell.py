"""Commands for real: short ones, floods, stubborn ones, and what they leave behind."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from bridge.channel.testing.clock import FakeClock
from bridge.clock import SystemClock
from bridge.tools import shell
from bridge.tools.contract import ArgumentsError, Risk, ToolResult, read_arguments
from bridge.tools.shell import COMMAND_BYTES, Shell, ShellArguments
from bridge.tools.texts import OUTPUT_BYTES
from tests.tools.place import Shown
from tests.tools.test_processes import marked, seen


async def run(cwd: Path, command: str, seconds: int | None = None) -> ToolResult:
    return await Shell(SystemClock()).run(ShellArguments(command=command, seconds=seconds), Shown(cwd).place)


def test_it_says_its_risk_its_limits_and_the_whole_command() -> None:
    tool = Shell(FakeClock(), 7)
    assert (tool.name, tool.risk) == ("shell", Risk.PROCESS)
    assert "7 seconds" in tool.description
    assert tool.summary(ShellArguments(command="ls -l")) == "Run ls -l"


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"command": " \n"},
        {"command": "a\0b"},
        {"command": "x" * (COMMAND_BYTES + 1)},
        {"command": "ls", "seconds": 0},
        {"command": "ls", "seconds": 601},
        {"command": "ls", "seconds": "1"},
        {"command": "ls", "cwd": "/"},
    ],
)
def test_bad_arguments_are_refused(raw: dict[str, object]) -> None:
    with pytest.raises(ArgumentsError):
        read_arguments(ShellArguments, raw)


async def test_a_command_runs_in_the_workspace_reads_nothing_and_tells_all(tmp_path: Path) -> None:
    result = await run(tmp_path, "pwd; cat; echo no >&2; printf end")
    assert result == ToolResult(True, f"{tmp_path}\nno\nend\n[exit code 0]")
    assert await run(tmp_path, "exit 3") == ToolResult(False, "[It wrote nothing; exit code 3]")
    assert await run(tmp_path, "kill -9 $$") == ToolResult(False, "[It wrote nothing; ended by signal 9]")
    assert not (await run(tmp_path, "nonesuch")).success
    assert (await run(tmp_path, "echo \ud800")).output == "?\n[exit code 0]"
    assert (await run(tmp_path / "gone", "ls")).output == "sh cannot be started: No such file or directory."


async def test_no_secret_of_ours_reaches_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    assert "sesame" not in (await run(tmp_path, "env; cat /proc/$PPID/environ")).output
    assert "TERM=dumb" in (await run(tmp_path, "env")).output


async def test_lines_are_shown_as_they_come(tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    await Shell(FakeClock()).run(ShellArguments(command="echo one; echo two"), shown.place)
    assert shown.lines == ["one", "two"]


@pytest.mark.parametrize(
    "command",
    ["yes | head -c 30000000", "head -c 30000000 /dev/zero", "head -c 30000000 /dev/urandom"],
)
async def test_floods_end_and_are_cut_in_the_middle(command: str, tmp_path: Path) -> None:
    result = await run(tmp_path, command)
    assert result.success
    assert result.truncated
    assert f"{30_000_000 - OUTPUT_BYTES} bytes are left out" in result.output
    assert result.output.endswith("[exit code 0]")
    assert len(result.output.encode()) < OUTPUT_BYTES + 100


async def test_who_never_stops_writing_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "WRITTEN_BYTES", 1_000_000)
    result = await run(tmp_path, "yes")
    assert not result.success
    assert result.output.endswith("[stopped: it wrote over 1000000 bytes]")


async def test_what_runs_in_the_background_ends_with_the_call(tmp_path: Path) -> None:
    mark = f"{tmp_path}"
    at = time.monotonic()
    result = await run(tmp_path, f"MARK={mark} sleep 60 & MARK={mark} setsid sleep 60 & echo done")
    assert result == ToolResult(True, "done\n[exit code 0]")
    assert time.monotonic() - at < 20
    assert marked(mark) == []


async def test_what_takes_too_long_is_stopped_and_its_output_told(tmp_path: Path) -> None:
    result = await run(tmp_path, f"echo begun; MARK={tmp_path} sleep 60", 1)
    assert result == ToolResult(False, "begun\n[stopped: it took over 1 seconds]")
    assert marked(f"{tmp_path}") == []


async def test_what_ignores_term_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    command = f"trap '' TERM; export MARK={tmp_path}; echo begun; sleep 60; sleep 60"
    result = await run(tmp_path, command, 1)
    assert result.output.endswith("[stopped: it took over 1 seconds]")
    assert marked(f"{tmp_path}") == []


async def test_cancelling_ends_the_whole_tree(tmp_path: Path) -> None:
    mark = f"{tmp_path}"
    command = f"export MARK={mark}; setsid sleep 60 & (setsid sh -c 'sleep 60 & sleep 60' &); sleep 60"
    async with asyncio.TaskGroup() as tasks:
        call = tasks.create_task(run(tmp_path, command))
        assert await asyncio.to_thread(seen, mark, lambda count: count >= 4)
        call.cancel()
    assert call.cancelled()
    assert marked(mark) == []


async def test_what_cannot_be_ended_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a program of another user would be: here its keeper is killed, and it has left the group."""
    monkeypatch.setattr(shell, "LAST_SECONDS", 0.01)
    result = await run(tmp_path, "setsid sh -c 'echo $$; exec sleep 60' & sleep 0.2; kill -9 $PPID; sleep 60")
    pid, how = result.output.splitlines()
    os.kill(int(pid), signal.SIGKILL)
    assert how == "[ended by signal 9]"
