"""The screen of the fake platform: what is shown never destroys the line that is being typed."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import termios
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from bridge.cli.common import visible

PROMPT = "> "
_INDENT = 9
_ATOMS = re.compile(r"\s+|[!-\u2e7f]+|.")  # blanks, a word, or one character of a script without blanks
_MARGIN = re.compile(r"\s*")  # further rows stand below what comes after it
_COLUMN = re.compile(r"\s+\S.*?\s{2,}|\s*")  # in the help also after a command
_DIM, _BOLD, _PLAIN, _CLEAR = "\x1b[2m", "\x1b[1m", "\x1b[0m", "\r\x1b[K"


class Screen:
    """Where to show things: with colours and a prompt when a person is at it, else plain lines.

    ``typed`` tells what is typed so far and not sent, ``columns`` how wide a person's terminal is.
    """

    def __init__(
        self,
        out: TextIO,
        interactive: bool,
        help_text: str,
        typed: Callable[[], str] = lambda: "",
        columns: Callable[[], int] = lambda: shutil.get_terminal_size().columns,
    ) -> None:
        self._out, self._typed, self._columns = out, typed, columns
        self.help_text = help_text
        self.interactive = interactive
        self._prompting = False

    def row(self, who: str, text: str) -> None:
        """``text`` under the name of who says it, further lines below."""
        rows = self._wrapped((f"{' ' * _INDENT}{line}" for line in visible(text).split("\n")), _MARGIN)
        name = f"{who:<{_INDENT - 1}} "
        head = f"{_BOLD}{name}{_PLAIN}" if self.interactive else name
        self._write("\n".join([head + rows[0][_INDENT:], *rows[1:]]))

    def note(self, text: str) -> None:
        told = "\n".join(self._wrapped(text.split("\n"), _COLUMN))
        self._write(f"{_DIM}{told}{_PLAIN}" if self.interactive else told)

    def _wrapped(self, texts: Iterable[str], before: re.Pattern[str]) -> list[str]:
        """Where a person reads, no line is broken by the terminal, which knows no indent."""
        if not self.interactive:
            return [text.rstrip() for text in texts]
        width = self._columns()
        return [row for text in texts for row in wrapped(text, width, before)]

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
        """What the terminal shows of lines typed ahead is wiped: the editor shows it again."""
        if self.interactive:
            text = f"{_CLEAR}{text}"
        end = f"\n{PROMPT}{self._typed()}" if self._prompting else "\n"
        print(text, end=end, flush=True, file=self._out)


def wrapped(text: str, width: int, before: re.Pattern[str] = _MARGIN) -> list[str]:
    """One line in rows of ``width`` columns, further ones indented by what matches ``before``.

    A word that is longer, such as an address, stays whole, so that it can be copied.
    """
    from rich.cells import cell_len

    head = before.match(text)
    indent = cell_len(head.group()) if head else 0
    rows, used = [""], 0
    for atom in _ATOMS.findall(text):
        size = cell_len(atom)
        if used > indent and used + size > width:
            rows.append(" " * indent)
            used = indent
            if atom.isspace():
                continue
        rows[-1] += atom
        used += size
    return [row.rstrip() for row in rows]


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
