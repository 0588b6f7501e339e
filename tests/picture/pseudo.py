"""A terminal around a real command: what is typed goes in, and pyte shows what a person would see."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte

DEADLINE_SECONDS = 30.0
OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Pseudo:
    """A command in a terminal of ``columns`` by ``rows``."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, screen: pyte.HistoryScreen) -> None:
        self.process, self._master, self.screen = process, master, screen
        self._stream = pyte.ByteStream(self.screen)
        self.received = b""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        self.type(text + "\r")

    @property
    def text(self) -> str:
        """Everything that stands on the screen, and what has scrolled away above."""
        above = [_line(row, self.screen.columns) for row in self.screen.history.top]
        return "\n".join([*above, *(line.rstrip() for line in self.screen.display)]).rstrip()

    def until(self, what: str | Callable[[str], bool]) -> str:
        """Wait until ``what`` can be seen.

        Raises:
            AssertionError: it cannot, in time; with what is there.
        """
        seen = what if callable(what) else lambda text: what in text
        end = time.monotonic() + DEADLINE_SECONDS
        while not seen(self.text):
            left = end - time.monotonic()
            if left <= 0 or not self._take(left):
                raise AssertionError(f"never seen: {what!r} in:\n{self.text}")
        return self.text

    def settle(self, seconds: float = 0.15) -> None:
        """Take in what comes until nothing does for so long."""
        while self._take(seconds):
            pass

    def ended(self) -> int:
        """The exit code, once it has ended."""
        end = time.monotonic() + DEADLINE_SECONDS
        while self._take(max(0.0, end - time.monotonic())):
            pass
        return self.process.wait(DEADLINE_SECONDS)

    def _take(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        try:
            data = os.read(self._master, 65_536) if ready else b""
        except OSError:  # the other end is closed
            data = b""
        self.received += data
        self._stream.feed(data)
        return bool(data)


@contextmanager
def pseudo(
    command: Sequence[str],
    environ: Mapping[str, str],
    columns: int = 80,
    rows: int = 24,
    cwd: Path | None = None,
    screen: pyte.HistoryScreen | None = None,
) -> Iterator[Pseudo]:
    """Run ``command`` in a terminal of its own; it is killed at the end where it still runs."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *command],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=dict(environ),
        cwd=cwd,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Pseudo(process, master, screen or pyte.HistoryScreen(columns, rows, history=1000))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(master)


def _line(row: Any, columns: int) -> str:
    return "".join(row[column].data for column in range(columns)).rstrip()
