"""Blocking work of tools: in a thread, for a limited time, and its errors as results for the model."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from bridge.paths import Home
from bridge.tools.contract import ToolResult
from bridge.tools.places import is_own
from bridge.tools.workspace import DAEMONS, RefusedError, Workspace, identity

WORK_SECONDS = 30.0
TOO_LONG = "It took too long."


class StoppedError(Exception):
    """The work has no more time, or nobody waits for it."""


class Stop:
    """What work asks again and again whether it may go on."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def ask(self) -> None:
        self._asked.set()

    def check(self) -> None:
        """Raises StoppedError: no."""
        if self._asked.is_set():
            raise StoppedError


Work = Callable[[Workspace, Stop], ToolResult]


async def in_workspace(work: Work, cwd: Path, home: Home, seconds: float = WORK_SECONDS) -> ToolResult:
    """What comes of ``work``, within ``seconds``. Being cancelled stops it, and waits for its next look."""
    stop = Stop()
    working = asyncio.get_running_loop().run_in_executor(None, _guarded, work, cwd, home, stop)
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.shield(working)
    except TimeoutError:
        stop.ask()
        return await working
    finally:
        stop.ask()
        if not working.done():
            await asyncio.wait([working])


def _guarded(work: Work, cwd: Path, home: Home, stop: Stop) -> ToolResult:
    try:
        with open_workspace(cwd, home) as workspace:
            return work(workspace, stop)
    except RefusedError as refusal:
        return ToolResult(False, str(refusal))
    except StoppedError:
        return ToolResult(False, TOO_LONG)
    except OSError as error:
        return ToolResult(False, f"It did not work: {error.strerror or type(error).__name__}.")
    except ValueError:  # a NUL in the path
        return ToolResult(False, "That path cannot be read.")


def open_workspace(cwd: Path, home: Home) -> Workspace:
    """The workspace ``cwd``, which must not be one of the daemon's own folders; blocking.

    Raises:
        RefusedError: it is.
    """
    if is_own(cwd.resolve(), home) and cwd.resolve() != home.root.resolve():
        raise RefusedError(DAEMONS)
    return Workspace(cwd, identity(home.root))
