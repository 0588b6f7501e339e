"""The terminal that a person types into: lines with an editor, single keys while an agent works."""

from __future__ import annotations

import codecs
import locale
import os
import select
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bridge.cli.chat_files import completions

PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
HISTORY_LINES = 1000
PASTE_SECONDS = 0.03  # what comes so soon behind a line's end was pasted, where the editor cannot tell
COMMANDS = ("/file ", "/help", "/history", "/quit", "/status", "/stop")


class Terminal:
    """``wakes`` is a file descriptor that ends a wait for a key once it is readable."""

    def __init__(self, wakes: int, source: int = 0, target: int = 1) -> None:
        self._wakes, self._source, self._target = wakes, source, target
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._editor: Any = None
        self._now: list[Any] | None = None  # the modes that hold; None: the line editor sees to them
        self._prompt = ""  # that stands there while a key is awaited

    @contextmanager
    def opened(self, history: Path) -> Iterator[None]:
        """Use it while the block runs: afterwards it is as it was, and what was typed is kept.

        What is typed while nobody reads shows up with the next prompt, and not in the midst of something.
        """
        self._editor = editor(history)
        self._write(PASTE_ON)
        try:
            with self._mode(off=termios.ECHO), self._continued():
                yield
        finally:
            self._write(PASTE_OFF)
            if self._editor is not None:
                keep_history(self._editor, history)

    def line(self, prompt: str, typed: str = "") -> str | None:
        """A line, or several that were pasted, beginning with what is ``typed`` already; None: woken before.

        Raises:
            KeyboardInterrupt: Ctrl-C. EOFError: Ctrl-D, or the terminal is gone.
        """
        if self._editor is None:
            return self._read_line(prompt.replace("\001", "").replace("\002", ""))
        if not typed and not self._has_key(prompt):
            return None
        self._editor.set_startup_hook(lambda: self._editor.insert_text(typed))
        try:
            return self._read_line(prompt)
        finally:
            self._editor.set_startup_hook()

    def remember(self, text: str) -> None:
        """What was typed comes back with the arrow keys."""
        if self._editor is not None and text.strip():
            with suppress(UnicodeEncodeError):  # which the locale has no bytes for
                self._editor.add_history(text)

    @contextmanager
    def keys(self) -> Iterator[None]:
        """``typed`` gives single keys while the block runs, Ctrl-C among them."""
        with self._mode(off=termios.ICANON | termios.ISIG):
            yield

    def typed(self, seconds: float) -> str:
        """What was typed within ``seconds``; it is over sooner when woken. Raises EOFError: it is gone."""
        ready, _, _ = select.select([self._source, self._wakes], [], [], seconds)
        return self._decoder.decode(self._read()) if self._source in ready else ""

    def _read(self) -> bytes:
        try:
            data = os.read(self._source, 4096)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        return data

    def _has_key(self, prompt: str) -> bool:
        """Wait for a key, with the prompt on the screen, which is gone again then. False: woken."""
        with self._mode(off=termios.ICANON):
            self._prompt = prompt.replace("\001", "").replace("\002", "")
            self._write(self._prompt)
            try:
                ready, _, _ = select.select([self._source, self._wakes], [], [])
            finally:
                self._prompt = ""
                self._write("\r\x1b[K")
        return self._source in ready

    @contextmanager
    def _mode(self, *, on: int = 0, off: int = 0) -> Iterator[None]:
        """Switch these local modes while the block runs."""
        before, outer = termios.tcgetattr(self._source), self._now
        self._now = termios.tcgetattr(self._source)
        self._now[3] = self._now[3] & ~off | on
        termios.tcsetattr(self._source, termios.TCSADRAIN, self._now)
        try:
            yield
        finally:
            self._now = outer
            termios.tcsetattr(self._source, termios.TCSADRAIN, before)

    @contextmanager
    def _continued(self) -> Iterator[None]:
        """Be as before where the process was stopped meanwhile: the shell has set modes of its own."""

        def again(*_: object) -> None:
            if self._now is not None:
                termios.tcsetattr(self._source, termios.TCSADRAIN, self._now)
                self._write(PASTE_ON + self._prompt)

        before = signal.signal(signal.SIGCONT, again)
        try:
            yield
        finally:
            signal.signal(signal.SIGCONT, before)

    def _read_line(self, prompt: str) -> str:
        with self._mode(on=termios.ECHO):  # readline shows nothing where it is off
            self._now = None
            return self._pasted(input(prompt))

    def _pasted(self, text: str) -> str:
        """``text`` with the lines that came along with it, where the editor does not tell a paste."""
        if self._editor is not None and tells_pastes(self._editor):
            return text
        lines = [text]
        while select.select([self._source], [], [], PASTE_SECONDS)[0]:
            try:
                lines.append(input())
            except EOFError:
                break
        return "\n".join(lines)

    def _write(self, text: str) -> None:
        sys.stdout.flush()
        with suppress(OSError):
            os.write(self._target, text.encode())


def editor(history: Path) -> Any:
    """Python's readline, set up, with what was typed in earlier chats; None where there is none."""
    try:
        import readline
    except ImportError:
        return None
    speak_utf8()
    libedit = "libedit" in (readline.__doc__ or "")
    readline.set_auto_history(False)
    readline.set_history_length(HISTORY_LINES)
    readline.set_completer_delims("\n")
    readline.set_completer(complete)
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    if not libedit:
        readline.parse_and_bind("set enable-bracketed-paste on")  # Python switches it off
    with suppress(OSError):
        readline.read_history_file(history)
    return readline


def speak_utf8() -> None:
    """Let the editor know UTF-8 where Python reads that in a locale that does not, as it does in C.

    The editor goes by the environment, each time that it reads a line.
    """
    reads, knows = sys.stdin.encoding, locale.nl_langinfo(locale.CODESET)
    if codecs.lookup(reads).name == "utf-8" != codecs.lookup(knows).name:
        os.environ["LC_ALL"] = "C.UTF-8"
        with suppress(locale.Error):  # for what is remembered
            locale.setlocale(locale.LC_CTYPE, "C.UTF-8")


def tells_pastes(editor: Any) -> bool:
    """Whether the editor takes a paste as one text, as GNU readline does from 8.1 on."""
    return (
        "libedit" not in (editor.__doc__ or "") and getattr(editor, "_READLINE_LIBRARY_VERSION", "") >= "8.1"
    )


def keep_history(editor: Any, history: Path) -> None:
    before = os.umask(0o077)
    try:
        with suppress(OSError):
            editor.write_history_file(history)
            history.chmod(0o600)
    finally:
        os.umask(before)


def complete(line: str, number: int) -> str | None:
    """The ``number``-th line that Tab may make of ``line``: a command, or a path behind /file."""
    command, blank, words = line.partition(" ")
    if blank:
        found = [f"{command} {each}" for each in completions(words)] if command == "/file" else []
    else:
        found = [each for each in COMMANDS if line and each.startswith(line)]
    return found[number] if number < len(found) else None
