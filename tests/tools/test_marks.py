"""Marked processes, for real."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from contextvars import copy_context
from pathlib import Path

import pytest

from bridge.paths import Home
from bridge.tools import keeper, marks
from bridge.tools.processes import clean_environment, process_group

HEADLESS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as kept:
        yield kept


def home_at(path: Path) -> Home:
    path.mkdir()
    return Home(path)


def started(stack: ExitStack, mark: str, *argv: str) -> subprocess.Popen[bytes]:
    """A process with the mark, which goes with the test."""
    process = stack.enter_context(
        subprocess.Popen(argv or ("sleep", "60"), env={marks.NAME: mark, "PATH": os.defpath})
    )
    stack.callback(process.kill)
    return process


def marked_by(home: Home) -> str:
    """A mark that a daemon of this home, at another time, would give."""

    def daemon() -> str:
        marks.take_over(home)
        return marks.new_mark()

    return copy_context().run(daemon)


def test_each_program_has_a_mark_of_its_own_and_a_daemons_tell_its_home(tmp_path: Path) -> None:
    assert "." not in marks.new_mark()
    first, other = home_at(tmp_path / "a"), home_at(tmp_path / "b")
    one, two, third = marked_by(first), marked_by(first), marked_by(other)
    assert one != two
    assert one.partition(".")[0] == two.partition(".")[0] != third.partition(".")[0]


def test_a_daemon_ends_what_an_earlier_one_of_its_home_left_and_nothing_else(
    tmp_path: Path, stack: ExitStack
) -> None:
    home, other = home_at(tmp_path / "a"), home_at(tmp_path / "b")
    mark, another = marked_by(home), marked_by(home)
    left, stopped = started(stack, mark), started(stack, another)
    stopped.send_signal(signal.SIGSTOP)
    others = [started(stack, mark) for mark in (marked_by(other), marks.new_mark(), "")]
    assert copy_context().run(marks.take_over, home) == 2
    assert (left.wait(), stopped.wait()) == (-signal.SIGKILL, -signal.SIGKILL)
    assert [one.poll() for one in others] == [None] * 3


def test_what_lost_its_first_thread_is_found_by_another(tmp_path: Path, stack: ExitStack) -> None:
    mark = marks.new_mark()
    headless = started(stack, mark, sys.executable, "-c", HEADLESS)
    while b") Z " not in Path(f"/proc/{headless.pid}/stat").read_bytes():
        assert headless.poll() is None
    assert marks.kill_marked(mark) == 1
    assert headless.wait() == -signal.SIGKILL


def test_neither_this_process_nor_those_it_came_of_are_ended(
    tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a program of the daemon has started the next daemon."""
    mark = marks.new_mark()
    child = started(stack, mark)
    monkeypatch.setattr(os, "getpid", lambda: child.pid)
    assert marks.kill_marked(mark) == 0
    monkeypatch.undo()
    assert marks.kill_marked(mark) == 1


def test_what_may_not_be_ended_or_is_gone_already_is_let_be(
    monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    def refused(pid: int, number: int) -> None:
        raise PermissionError

    mark = marks.new_mark()
    started(stack, mark)
    monkeypatch.setattr(os, "kill", refused)
    gone = 2**22 + 1
    shown = keeper.by_proc
    monkeypatch.setattr(keeper, "by_proc", lambda: {**shown(), gone: (1, gone)})
    assert marks.kill_marked(mark) == 1
    monkeypatch.undo()


async def test_programs_have_the_mark_of_the_daemon_whose_task_starts_them(tmp_path: Path) -> None:
    home = home_at(tmp_path / "a")

    async def daemon() -> bytes:
        marks.take_over(home)
        script = f"echo ${marks.NAME}"
        async with process_group(["/bin/sh", "-c", script], tmp_path, clean_environment()) as process:
            return await process.stdout.read()

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(daemon())
    assert running.result().decode().startswith(marked_by(home).partition(".")[0] + ".")
