"""The screen of the fake platform: what is shown never destroys the line that is being typed."""

from __future__ import annotations

import asyncio
import sys
import termios
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from bridge.cli.common import visible

PROMPT = "> "
_DIM, _BOLD, _PLAIN, _CLEAR = "\x1b[2m", "\x1b[1m", "\x1b[0m", "\r\x1b[K"


class Screen:
    """Where to show things: with colours and a prompt when a person is at it, else plain lines.

    ``typed`` tells what is typed so far and not sent.
    """

    def __init__(
        self, out: TextIO, interactive: bool, help_text: str, typed: Callable[[], str] = lambda: ""
    ) -> None:
        self._out, self._typed = out, typed
        self.help_text = help_text
        self.interactive = interactive
        self._prompting = False

    def row(self, who: str, text: str) -> None:
        """``text`` under the name of who says it, further lines below."""
        lines = visible(text).split("\n")
        head = f"{_BOLD}{who:<9}{_PLAIN}" if self.interactive else f"{who:<9}"
        self._write(head + "\n".join([lines[0], *((" " * 9 + line).rstrip() for line in lines[1:])]))

    def note(self, text: str) -> None:
        self._write(f"{_DIM}{text}{_PLAIN}" if self.interactive else text)

    @contextmanager
    def prompting(self, shown: bool) -> Iterator[None]:
        """A line is typed while the block runs; ``shown``: whoever reads it shows the prompt."""
        self._prompting = self.interactive
        if self._prompting and not shown:
            print(PROMPT, end="", flush=True, file=self._out)
        try:
            yield
        finally:
            self._prompting = False

    def _write(self, text: str) -> None:
        if self._prompting:
            text = f"{_CLEAR}{text}\n{PROMPT}{self._typed()}"
        print(text, end="" if self._prompting else "\n", flush=True, file=self._out)


async def lines(source: TextIO, screen: Screen) -> AsyncGenerator[str, None]:
    """The lines of ``source``, each read when it is asked for.

    They are read in a thread that nobody waits for: a terminal's read cannot be ended.
    """
    loop, queue, wanted = asyncio.get_running_loop(), asyncio.Queue[str](), threading.Semaphore(0)
    edited = screen.interactive and source is sys.stdin and has_editor()

    def read() -> None:
        line = "\n"
        with suppress(RuntimeError):  # the loop has ended before the input
            while line:
                wanted.acquire()
                line = _edited_line() if edited else _plain_line(source)
                loop.call_soon_threadsafe(queue.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    with _terminal_kept(source):
        while True:
            wanted.release()
            with screen.prompting(shown=edited):
                line = await queue.get()
            if not line:
                return
            yield line.rstrip("\r\n")


def has_editor() -> bool:
    """Load the editor of ``input``, for arrow keys and a history; False: this Python has none."""
    try:
        import readline  # noqa: F401 - importing it is what it takes
    except ImportError:
        return False
    return True


def typed_so_far() -> str:
    """What stands in the editor's line."""
    try:
        import readline
    except ImportError:
        return ""
    return readline.get_line_buffer()


def _edited_line() -> str:
    try:
        return input(PROMPT) + "\n"
    except (EOFError, OSError, ValueError):
        return ""


def _plain_line(source: TextIO) -> str:
    try:
        return source.readline()
    except (OSError, ValueError):  # the terminal is gone, or what came is no text
        return ""


@contextmanager
def _terminal_kept(source: TextIO) -> Iterator[None]:
    """Leave a terminal as it was, also when the end comes while the editor reads a line."""
    try:
        before = termios.tcgetattr(source.fileno())
    except (OSError, ValueError, termios.error):
        yield
        return
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(source.fileno(), termios.TCSADRAIN, before)
