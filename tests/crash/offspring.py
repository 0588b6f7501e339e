"""Processes that a turn starts, and which of them outlive their daemon.

They are known by a variable that each inherits: those that it may have are few, and what belongs to the
locale is among them.
"""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MARK = "LC_CRASH_RUN"
SHOWN_CHARACTERS = 200
_PROC = Path("/proc")
_STUBBORN = "trap '' TERM HUP; while :; do sleep 1; done"
# In its group, out of it, and a child of nobody: most end when they are asked to.
SPAWN = "sleep 3600 & setsid sleep 3600 & (setsid sh -c 'sleep 3600 & sleep 3600' &)"
SPAWN_STUBBORN = f'{SPAWN}; (setsid sh -c "{_STUBBORN}" &)'


def marked(mark: str) -> list[int]:
    """The ids of all processes that were started with ``mark``; none where there is no /proc. Blocking."""
    sought, found = f"{MARK}={mark}".encode(), []
    for name in filter(str.isdigit, os.listdir(_PROC) if _PROC.is_dir() else ()):
        with suppress(OSError):  # it ended meanwhile, or is somebody else's
            if sought in (_PROC / name / "environ").read_bytes().split(b"\0"):
                found.append(int(name))
    return found


def shown(pid: int) -> str:
    """What a process is, for whoever has to find out where it comes from."""
    with suppress(OSError):
        words = (_PROC / f"{pid}" / "cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip()[:SHOWN_CHARACTERS]
    return "ended meanwhile"


def kind(command: str) -> str:
    """What a command line belongs to: the tool ``shell``, the program of an agent, or what they started."""
    if "/bin/sh -c" in command:
        return "shell"
    return "program" if "tests.crash.program" in command else "child"


def is_spawned(pid: int) -> bool:
    """Whether a process is one of ``SPAWN``'s."""
    return "sleep 3600" in shown(pid)


def end(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
