import asyncio
import threading
from pathlib import Path

import pytest

from bridge.paths import Home
from bridge.tools import blocking
from bridge.tools.blocking import Stop, StoppedError, in_workspace, open_workspace
from bridge.tools.contract import ToolResult
from bridge.tools.workspace import RefusedError, Workspace


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RefusedError("No."), "No."),
        (OSError(28, "No space left on device"), "It did not work: No space left on device."),
        (OSError(), "It did not work: OSError."),
        (ValueError("embedded null byte"), "That path cannot be read."),
        (StoppedError(), blocking.TOO_LONG),
    ],
)
async def test_errors_are_results_for_the_model(
    error: Exception, said: str, tmp_path: Path, home: Home
) -> None:
    def work(workspace: Workspace, stop: Stop) -> ToolResult:
        raise error

    assert await in_workspace(work, tmp_path, home) == ToolResult(False, said)


async def test_a_workspace_that_is_gone_is_said(tmp_path: Path, home: Home) -> None:
    result = await in_workspace(lambda workspace, stop: ToolResult(True, ""), tmp_path / "gone", home)
    assert result == ToolResult(False, "It did not work: No such file or directory.")


def test_the_daemons_own_folders_are_no_workspace_except_one(home: Home) -> None:
    for folder in ("state", "workspace", "credentials"):
        (home.root / folder).mkdir(parents=True)
    for folder in ("state", "credentials"):
        with pytest.raises(RefusedError, match="daemon"):
            open_workspace(home.root / folder, home)
    for cwd in (home.root, home.root / "workspace"):
        open_workspace(cwd, home)


def ask_for_ever(workspace: Workspace, stop: Stop) -> ToolResult:
    pause = threading.Event()
    while True:
        stop.check()
        pause.wait(0.001)


async def test_work_that_takes_too_long_is_stopped(tmp_path: Path, home: Home) -> None:
    assert await in_workspace(ask_for_ever, tmp_path, home, 0.01) == ToolResult(False, blocking.TOO_LONG)


async def test_cancelling_stops_the_work_and_waits_for_its_end(tmp_path: Path, home: Home) -> None:
    began, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(workspace: Workspace, stop: Stop) -> ToolResult:
        loop.call_soon_threadsafe(began.set)
        try:
            return ask_for_ever(workspace, stop)
        finally:
            ended.set()

    async with asyncio.TaskGroup() as tasks:
        call = tasks.create_task(in_workspace(work, tmp_path, home))
        await began.wait()
        call.cancel()
    assert call.cancelled()
    assert ended.is_set()
