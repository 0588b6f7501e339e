"""Runs one program for the daemon, and ends all that came of it: also what daemonised itself, also after -9.

A small program of its own, started as ``python -I -S keeper.py LIFE STATUS PROGRAM ARGUMENT …``; it imports
nothing of ours. LIFE is a pipe that the daemon holds open: its end means that the daemon is gone, a byte is
an order. What became of the program is written to STATUS, line by line: ``errno N`` or ``pid N``, then
``exit N``. It leaves when nothing of the program is left, and its leaving is what the daemon waits for.

On Linux whatever loses its parent comes to this process (a "subreaper"), so nothing escapes it. Elsewhere
only the program's children and its process group are found.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

END, KILL = b"e", b"k"  # the daemon's orders: politely, at once
GRACE_SECONDS = 2.0  # between TERM and KILL
LOST_SECONDS = 0.5  # the same when the daemon is gone, or in a hurry
KILL_SECONDS = 3.0  # what KILL has not ended by then is not ours to end, or waits for a disk
LOOK_SECONDS = 0.05
_OUTSIDE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
_SUBREAPER, _DEATH_SIGNAL = 36, 1  # of prctl
_PROC = "/proc"

Table = dict[int, tuple[int, int]]
"""From a process's id to that of its parent and of its group."""


class Keeper:
    """``life`` and ``status`` are descriptors."""

    def __init__(self, life: int, status: int) -> None:
        self._life, self._status = life, status
        self._wake = _woken_by_signals()
        self._main = 0
        self._kill_at: float | None = None  # the end has begun, and gets rough then
        self._leave_at: float | None = None  # KILL was sent, and is in vain from then on
        self._told: set[int] = set()  # who has had its TERM

    def run(self, argv: Sequence[str]) -> None:
        """Start the program, and return once nothing of it is left, or can be ended."""
        self._main, problem = start(argv)
        _leave_streams()
        self._tell(f"errno {problem}" if problem else f"pid {self._main}")
        while not self._is_over(has_children=self._reap()):
            self._listen(None if self._kill_at is None else LOOK_SECONDS)

    def _listen(self, seconds: float | None) -> None:
        """Wait for an order, a child's end, or ``seconds``."""
        waiting = [self._wake, *([self._life] if self._life >= 0 else [])]
        ready, _, _ = select.select(waiting, [], [], seconds)
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._life in ready:
            order = os.read(self._life, 64)
            if KILL in order:
                self._end(0.0)
            else:
                self._end(GRACE_SECONDS if order else LOST_SECONDS)
            self._life = self._life if order else -1

    def _reap(self) -> bool:
        """Take in what has ended, the program's own end begins that of the rest; whether anything is left.

        Only the kernel knows that: a table is read line by line, and misses one whose parent dies meanwhile.
        """
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._main:
                    self._tell(f"exit {os.waitstatus_to_exitcode(found[1])}")
                    self._end(GRACE_SECONDS)
        except ChildProcessError:
            return False
        return True

    def _end(self, grace_seconds: float) -> None:
        """Begin, or hasten, the end."""
        kill_at = time.monotonic() + grace_seconds
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)

    def _is_over(self, *, has_children: bool) -> bool:
        """Send what is due to all that is left; whether that is nothing, or nothing that can be ended."""
        if self._kill_at is None:
            return False
        left, now = descendants(os.getpid(), self._main), time.monotonic()
        if now >= self._kill_at:
            _send(left, signal.SIGKILL)
            self._leave_at = self._leave_at or now + KILL_SECONDS
        elif new := {pid: group for pid, group in left.items() if pid not in self._told}:
            self._told |= new.keys()
            _send(new, signal.SIGTERM)
            _send(new, signal.SIGCONT)  # what is stopped hears TERM only then
        return not (left or has_children) or (self._leave_at is not None and now > self._leave_at)

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # nobody listens any more
            os.write(self._status, f"{line}\n".encode())


def start(argv: Sequence[str]) -> tuple[int, int]:
    """Start a program in a session of its own: its id, and the number of the error that prevented it."""
    prctl = _prctl()
    reading, writing = os.pipe()  # closed by the start itself
    if not (pid := os.fork()):
        try:
            os.setsid()
            prctl(_DEATH_SIGNAL, signal.SIGKILL)
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python itself
                signal.signal(ignored, signal.SIG_DFL)
            os.execvp(argv[0], list(argv))  # noqa: S606 - no shell is wanted
        except OSError as error:
            os.write(writing, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(writing)
    with open(reading, "rb") as problem:
        return pid, int(problem.read() or 0)


def descendants(root: int, group: int) -> dict[int, int]:
    """All that came of the process ``root``, each with its process group.

    Where orphans do not come to ``root`` they are found by the program's ``group``.
    """
    table = by_proc()
    orphans: list[int] = []
    if not table:
        table = by_ps()
        orphans = [pid for pid, (_, theirs) in table.items() if theirs == group]
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, int] = {}
    waiting = [*children.get(root, []), *orphans]
    while waiting:
        pid = waiting.pop()
        found[pid] = table[pid][1]
        waiting += children.get(pid, [])
    return found


def by_proc() -> Table:
    """All processes that are not dead already, as Linux shows them; nothing where there is no /proc.

    One whose first thread has ended is called a zombie, and lives as long as it has others.
    """
    table: Table = {}
    for name in filter(str.isdigit, os.listdir(_PROC) if os.path.isdir(_PROC) else ()):
        with suppress(OSError, ValueError):  # it ended meanwhile
            with open(f"{_PROC}/{name}/stat", "rb") as file:
                state, parent, group, *more = file.read().rpartition(b")")[2].split()
            if state not in (b"Z", b"X") or int(more[14]) > 1:
                table[int(name)] = int(parent), int(group)
    return table


def by_ps() -> Table:
    """The same where there is no /proc."""
    import subprocess

    with subprocess.Popen(["ps", "-axo", "pid=,ppid=,pgid=,stat="], stdout=subprocess.PIPE) as ps:
        shown, _ = ps.communicate()
    rows = [line.split() for line in shown.splitlines()]
    table = {int(row[0]): (int(row[1]), int(row[2])) for row in rows if row[3][:1] != b"Z"}
    table.pop(ps.pid, None)
    return table


def _send(targets: dict[int, int], number: signal.Signals) -> None:
    """To whole groups first, out of which nothing can fork away; to each for what is in none of its own."""
    own = os.getpgrp()
    for group in set(targets.values()) - {own, 0}:
        with suppress(OSError):
            os.killpg(group, number)
    for pid, group in targets.items():
        if group == own:
            with suppress(OSError):
                os.kill(pid, number)


def _woken_by_signals() -> int:
    """A descriptor that tells of signals: none of them ends this process, and the program has its own."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in _OUTSIDE:
        signal.signal(number, lambda *_: None)
    return reading


def _leave_streams() -> None:
    """The program alone holds them, so that their ends tell of its own."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.close(null)


def _prctl() -> Callable[[int, int], object]:
    """Linux's call of this name, already found, so that a child can use it at once; else nothing."""
    if not sys.platform.startswith("linux"):
        return lambda what, value: None
    call = ctypes.CDLL(None).prctl
    return lambda what, value: call(what, ctypes.c_ulong(value), 0, 0, 0)


def main(life: int, status: int, argv: Sequence[str]) -> None:
    for ours in (life, status):
        os.set_inheritable(ours, False)
    prctl = _prctl()
    prctl(_SUBREAPER, 1)
    prctl(_DEATH_SIGNAL, signal.SIGCONT)  # a program may stop us: woken by the kernel we see LIFE's end
    Keeper(life, status).run(argv)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
