"""The terminal: modes that are always undone, keys, lines, and the editor's history."""

import locale
import os
import select
import signal
import stat
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.cli import chat_terminal
from bridge.cli.chat_terminal import Terminal, complete, editor, keep_history, speak_utf8, tells_pastes


class Ends:
    """A terminal's two ends, and the pipe that wakes whoever waits for keys."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        self.wakes, self.wake = os.pipe()
        self.terminal = Terminal(self.wakes, self.slave, self.slave)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    @property
    def shown(self) -> str:
        data = b""
        while select.select([self.master], [], [], 0.05)[0]:
            data += os.read(self.master, 65_536)
        return data.decode()

    @property
    def modes(self) -> int:
        flags: int = termios.tcgetattr(self.slave)[3]
        return flags & (termios.ICANON | termios.ECHO | termios.ISIG)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    for each in (made.master, made.slave, made.wakes, made.wake):
        os.close(each)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "console-history"


class FakeEditor(SimpleNamespace):
    """What is used of Python's readline."""

    __doc__ = "GNU readline"

    def __init__(self) -> None:
        super().__init__(_READLINE_LIBRARY_VERSION="8.2", added=[], hooks=[], inserted=[])

    def set_startup_hook(self, hook: Any = None) -> None:
        self.hooks.append(hook)

    def insert_text(self, text: str) -> None:
        self.inserted.append(text)

    def add_history(self, text: str) -> None:
        self.added.append(text)

    def write_history_file(self, path: Path) -> None:
        path.write_text("\n".join(self.added))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeEditor:
    made = FakeEditor()
    monkeypatch.setattr(chat_terminal, "editor", lambda history: made)
    return made


def answers(monkeypatch: pytest.MonkeyPatch, *lines: str | BaseException) -> list[str]:
    """Let ``input`` give ``lines``; returns the prompts that it was given."""
    prompts: list[str] = []
    left = list(lines)

    def read(prompt: str = "") -> str:
        prompts.append(prompt)
        line = left.pop(0)
        if isinstance(line, BaseException):
            raise line
        return line

    monkeypatch.setattr("builtins.input", read)
    return prompts


def test_it_is_as_it_was_afterwards_and_what_was_typed_is_kept_for_its_owner(
    ends: Ends, fake: FakeEditor, history: Path
) -> None:
    before = ends.modes
    with pytest.raises(ZeroDivisionError), ends.terminal.opened(history):
        ends.terminal.remember("图\nb")
        ends.terminal.remember(" ")
        assert ends.modes == before & ~termios.ECHO  # what is typed meanwhile shows up with the prompt
        with ends.terminal.keys():
            assert ends.modes == 0
            raise ZeroDivisionError
    assert ends.modes == before
    assert (fake.added, history.read_text()) == (["图\nb"], "图\nb")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert ends.shown == "\x1b[?2004h\x1b[?2004l"


def test_what_was_stopped_and_continued_goes_on_as_it_was(
    ends: Ends, fake: FakeEditor, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(prompt: str = "") -> str:
        shell_takes_over()
        seen.append(ends.modes)
        return "line"

    def shell_takes_over() -> None:
        modes = termios.tcgetattr(ends.slave)
        modes[3] |= termios.ICANON | termios.ECHO | termios.ISIG
        termios.tcsetattr(ends.slave, termios.TCSANOW, modes)
        signal.raise_signal(signal.SIGCONT)

    def waits(*args: object) -> tuple[list[int], list[int], list[int]]:
        shell_takes_over()
        seen.append(ends.modes)
        return [ends.slave], [], []

    seen: list[int] = []
    monkeypatch.setattr("builtins.input", read)
    every = ends.modes
    with ends.terminal.opened(history):
        with ends.terminal.keys():
            shell_takes_over()
            assert ends.modes == 0
        assert ends.shown == "\x1b[?2004h" * 2
        monkeypatch.setattr(select, "select", waits)
        assert ends.terminal.line("> ") == "line"
        monkeypatch.undo()
        assert seen == [termios.ISIG, every]  # the line editor sees to its own
        assert ends.shown == "> \x1b[?2004h> \r\x1b[K"
        shell_takes_over()
        assert ends.modes == every & ~termios.ECHO
    assert signal.getsignal(signal.SIGCONT) is signal.SIG_DFL


def test_keys_come_one_by_one_and_cut_characters_wait_for_their_rest(ends: Ends) -> None:
    with ends.terminal.keys():
        ends.type("a\x03")
        assert ends.terminal.typed(5) == "a\x03"
        os.write(ends.master, "好".encode()[:2])
        assert ends.terminal.typed(5) == ""
        os.write(ends.master, "好".encode()[2:])
        assert ends.terminal.typed(5) == "好"
        assert ends.terminal.typed(0) == ""
        os.write(ends.wake, b"x")
        assert ends.terminal.typed(5) == ""


def test_a_terminal_that_is_gone_is_the_end(ends: Ends) -> None:
    own, reader = ends.terminal, os.pipe()
    os.close(reader[1])
    gone = Terminal(ends.wakes, reader[0], ends.slave)
    with pytest.raises(EOFError):
        gone.typed(5)
    os.close(reader[0])
    with own.keys():
        folder = os.open("/", os.O_RDONLY)
        with pytest.raises(EOFError):
            Terminal(ends.wakes, folder, ends.slave)._read()
        os.close(folder)


def test_a_line_is_the_editors_once_a_key_was_typed(
    ends: Ends, fake: FakeEditor, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = answers(monkeypatch, "hello")
    modes: list[int] = []
    own = input

    def noting(prompt: str) -> str:
        modes.append(ends.modes)
        return own(prompt)

    monkeypatch.setattr("builtins.input", noting)
    with ends.terminal.opened(history):
        ends.type("h")
        assert ends.terminal.line("\001\x1b[1m\002> \001\x1b[0m\002") == "hello"
        assert fake.hooks[-1] is None
        fake.hooks[0]()
        assert fake.inserted == [""]
    assert modes[0] & termios.ECHO
    assert prompts == ["\001\x1b[1m\002> \001\x1b[0m\002"]
    assert "\x1b[1m> \x1b[0m" in ends.shown


def test_woken_before_a_key_there_is_no_line(ends: Ends, fake: FakeEditor, history: Path) -> None:
    with ends.terminal.opened(history):
        os.write(ends.wake, b"x")
        assert ends.terminal.line("> ") is None
        assert ends.modes != 0
    assert ends.shown.endswith("> \r\x1b[K\x1b[?2004l")


def test_what_is_typed_already_stands_in_the_line(
    ends: Ends, fake: FakeEditor, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, "half done")
    with ends.terminal.opened(history):
        assert ends.terminal.line("> ", "half") == "half done"
        fake.hooks[0]()
    assert fake.inserted == ["half"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, EOFError])
def test_ctrl_c_and_ctrl_d_get_out_of_a_line(
    ends: Ends, fake: FakeEditor, history: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    answers(monkeypatch, error())
    with ends.terminal.opened(history), pytest.raises(error):
        ends.terminal.line("> ", "x")
    assert fake.hooks[-1] is None


def test_an_editor_that_does_not_tell_a_paste_gives_its_lines_as_one(
    ends: Ends, fake: FakeEditor, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_terminal, "PASTE_SECONDS", 0)
    fake._READLINE_LIBRARY_VERSION = "8.0"
    answers(monkeypatch, "a", "b", EOFError())
    with ends.terminal.opened(history):
        ends.type("more\n")
        assert ends.terminal.line("> ", "x") == "a\nb"
        termios.tcflush(ends.slave, termios.TCIFLUSH)
        answers(monkeypatch, "alone")
        assert ends.terminal.line("> ", "x") == "alone"


def test_without_an_editor_lines_come_all_the_same(
    ends: Ends, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "readline", None)
    assert editor(history) is None
    answers(monkeypatch, "plain")
    with ends.terminal.opened(history):
        ends.terminal.remember("x")
        assert ends.terminal.line("> ") == "plain"
    assert not history.exists()


def test_the_editor_is_readline_with_what_was_typed_before(history: Path) -> None:
    readline = pytest.importorskip("readline")
    history.write_text("earlier\n")
    try:
        made = editor(history)
        assert made is readline
        assert readline.get_history_item(readline.get_current_history_length()) == "earlier"
        assert readline.get_completer() is complete
    finally:
        readline.clear_history()
        readline.set_completer()
        readline.set_auto_history(True)


def test_an_editor_of_another_make_is_set_up_in_its_own_words(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[str] = []
    nothing = lambda *args: None  # noqa: E731 - five times the same
    other = SimpleNamespace(
        __doc__="libedit", set_auto_history=nothing, set_history_length=nothing, set_completer=nothing,
        set_completer_delims=nothing, parse_and_bind=bound.append, read_history_file=nothing,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "readline", other)
    assert editor(history) is other
    assert bound == ["bind ^I rl_complete"]
    assert not tells_pastes(other)


def test_a_history_that_cannot_be_kept_is_no_error(tmp_path: Path, fake: FakeEditor) -> None:
    keep_history(fake, tmp_path / "gone" / "history")


def test_tab_completes_commands_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.png").write_text("x")
    assert [complete("/h", n) for n in range(3)] == ["/help", "/history", None]
    assert complete("", 0) is None
    assert complete("/file a", 0) == "/file a\\ b.png "
    assert complete("/stop a", 0) is None


@pytest.mark.parametrize(
    ("reads", "knows", "then"),
    [("utf-8", "ANSI_X3.4-1968", "C.UTF-8"), ("utf-8", "UTF-8", "x"), ("latin-1", "ISO-8859-1", "x")],
)
def test_the_editor_is_told_of_utf_8_where_only_python_reads_it(
    reads: str, knows: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "x")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(encoding=reads))
    monkeypatch.setattr(locale, "nl_langinfo", lambda item: knows)
    chosen: list[object] = []
    monkeypatch.setattr(locale, "setlocale", lambda *args: chosen.extend(args))
    speak_utf8()
    assert os.environ["LC_ALL"] == then
    assert chosen == ([locale.LC_CTYPE, then] if then != "x" else [])


def test_what_the_locale_has_no_bytes_for_is_only_not_remembered(
    ends: Ends, fake: FakeEditor, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(text: str) -> None:
        raise UnicodeEncodeError("locale", text, 0, 1, "encoding error")

    with ends.terminal.opened(history):
        monkeypatch.setattr(fake, "add_history", refuses)
        ends.terminal.remember("é")
    assert fake.added == []
