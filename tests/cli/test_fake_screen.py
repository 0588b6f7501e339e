"""The prompt of the fake platform: what appears leaves the half-typed line whole."""

import asyncio
import io
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridge.cli import fake_screen
from bridge.cli.fake_screen import Screen, lines, wrapped

ROOT = Path(__file__).parent.parent.parent
TYPING = """
import asyncio, sys
from bridge.cli.fake_screen import Screen, lines, typed_so_far

async def main():
    screen = Screen(sys.stdout, True, "", typed_so_far)
    async with asyncio.TaskGroup() as tasks:
        async def answer():
            while len(typed_so_far()) < 4:
                await asyncio.sleep(0.01)
            screen.row("bot", "an answer")
        tasks.create_task(answer())
        async for line in lines(sys.stdin, screen):
            screen.note("got: " + line)
            if line == "/quit":
                break

asyncio.run(main())
"""


def test_what_appears_while_a_line_is_typed_stands_above_it() -> None:
    out = io.StringIO()
    screen = Screen(out, True, "", lambda: "half a li")
    with screen.prompting(shown=True):
        screen.row("bot", "an\nanswer")
    assert out.getvalue() == "\r\x1b[K\x1b[1mbot      \x1b[0man\n         answer\n> half a li"
    screen.note("later")
    assert out.getvalue().endswith("\r\x1b[K\x1b[2mlater\x1b[0m\n"), "what is typed ahead is wiped"


def test_long_lines_keep_their_indent_and_addresses_stay_whole() -> None:
    out, address = io.StringIO(), f"http://127.0.0.1/{'x' * 30}"
    screen = Screen(out, True, "", columns=lambda: 24)
    screen.row("bot", f"some words  and more\n你好你好你好你好你好\n{address} a")
    screen.note("  /file PATH  send a file, or a picture")
    plain = re.sub("\r|\x1b\\[[0-9]*[mK]", "", out.getvalue())
    assert plain.splitlines() == [
        "bot      some words  and",
        "         more",
        "         你好你好你好你",
        "         好你好",
        f"         {address}",
        "         a",
        "  /file PATH  send a",
        "              file, or a",
        "              picture",
    ]
    assert wrapped("", 10) == [""]


def test_a_pipe_gets_plain_lines_and_no_prompt() -> None:
    out = io.StringIO()
    screen = Screen(out, False, "")
    with screen.prompting(shown=False):
        screen.row("bot", "a\x1bb\n\nc")
        screen.note("n")
    assert out.getvalue() == "bot      a\N{REPLACEMENT CHARACTER}b\n\n         c\nn\n"


async def test_lines_are_read_one_by_one_and_a_broken_source_is_the_end() -> None:
    class Broken(io.StringIO):
        def readline(self, size: int | None = -1) -> str:  # type: ignore[override]  # as the library has it
            raise ValueError

    out = io.StringIO()
    screen = Screen(out, True, "")
    assert [line async for line in lines(io.StringIO("a\r\nb\n"), screen)] == ["a", "b"]
    assert out.getvalue() == "> > > "
    assert [line async for line in lines(Broken(), screen)] == []


async def test_a_line_is_edited_where_a_terminal_and_an_editor_are(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["one", "two"])

    def ask(prompt: str) -> str:
        assert prompt == "> "
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", ask)
    out = io.StringIO()
    assert [line async for line in lines(sys.stdin, Screen(out, True, ""))] == ["one", "two"]
    assert out.getvalue() == ""


def test_without_an_editor_nothing_is_known_of_what_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fake_screen.has_editor()
    assert fake_screen.typed_so_far() == ""
    monkeypatch.setitem(sys.modules, "readline", None)
    assert not fake_screen.has_editor()
    assert fake_screen.typed_so_far() == ""


async def test_on_a_terminal_the_arrows_edit_and_the_half_typed_line_stays() -> None:
    await asyncio.to_thread(type_on_a_terminal)


def type_on_a_terminal() -> None:
    main, side = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", TYPING],
        cwd=ROOT,
        stdin=side,
        stdout=side,
        stderr=side,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(side)
    try:
        read_until(main, b"> ")
        os.write(main, b"helo")
        read_until(main, b"an answer\r\n> helo")
        os.write(main, b"\x1b[Dl\r")  # left, and the letter that was missing
        read_until(main, b"got: hello")
        os.write(main, b"/quit\r")
        read_until(main, b"got: /quit")
        assert child.wait(10) == 0
    finally:
        child.kill()
        child.wait()
        os.close(main)


def read_until(terminal: int, wanted: bytes) -> None:
    seen, until = b"", time.monotonic() + 20
    while wanted not in seen:
        assert time.monotonic() < until, seen
        seen += os.read(terminal, 1024)
