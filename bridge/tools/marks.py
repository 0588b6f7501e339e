"""A mark in the environment of all that a program starts, by which what is left of it is found: on Linux."""

import hashlib
import os
import signal
from contextlib import suppress
from contextvars import ContextVar

from bridge.ids import new_uuid
from bridge.paths import Home
from bridge.tools import keeper

NAME = "TURNBRIDGE_PROGRAM"
_ROUNDS = 10
_ours: ContextVar[str] = ContextVar("ours", default="")  # how the marks of this daemon's programs begin


def new_mark() -> str:
    """For one program; a daemon's tell its home."""
    return _ours.get() + new_uuid()


def take_over(home: Home) -> int:
    """Kill what an earlier daemon of this home left behind, and return how many processes that were.

    For whoever has the home to itself, before it starts anything. What the caller's tasks start is marked as
    this home's: the folder itself is meant, not its name, which another machine's may have as well.
    """
    found = home.root.stat()
    text = f"{home.root.resolve()}\0{found.st_dev}\0{found.st_ino}"
    _ours.set(f"{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()[:24]}.")
    return kill_marked(_ours.get())


def kill_marked(beginning: str) -> int:
    """Kill the processes whose mark begins so, but for this one and those it came of; how many they were."""
    entry = f"{NAME}={beginning}".encode()
    killed: set[int] = set()
    for _ in range(_ROUNDS):  # a fork may be new
        table = keeper.by_proc()
        left = [pid for pid in table.keys() - _line(table) if _has(pid, entry)]
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(left)
        if not left:
            break
    return len(killed)


def _line(table: keeper.Table) -> set[int]:
    """This process, its parent, and so on."""
    line, pid = set[int](), os.getpid()
    while pid not in line:
        line.add(pid)
        pid = table.get(pid, (pid, 0))[0]
    return line


def _has(pid: int, entry: bytes) -> bool:
    return any(each.startswith(entry) for each in _environment(pid).split(b"\0"))


def _environment(pid: int) -> bytes:
    """As its first thread shows it, or another where that one has ended; empty: it is gone, or another's."""
    threads = f"/proc/{pid}/task"
    with suppress(OSError):
        shown = (_shown(f"{threads}/{thread}/environ") for thread in sorted(os.listdir(threads), key=int))
        return next(filter(None, shown), b"")
    return b""


def _shown(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (ProcessLookupError, FileNotFoundError):  # the thread ended meanwhile
        return b""
