"""``chat``: the real command, through a pipe and in a terminal, against a real daemon."""

import asyncio
import io
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.cli import chat
from bridge.cli.common import NotRunningError
from bridge.cli.main import main
from bridge.paths import Home
from tests.cli.console import console_home, fake_console, part
from tests.cli.socket_daemon import MAIN
from tests.daemons import daemon
from tests.picture.pseudo import Pseudo, pseudo

ROOT = Path(__file__).parent.parent.parent
ENVIRON = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}


@pytest.fixture
def home() -> Iterator[Home]:
    with console_home() as made:
        yield made


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


async def test_through_a_pipe_answers_alone_are_printed(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with daemon(home):
        type_in(monkeypatch, "hi\n你好\n")
        assert await asyncio.to_thread(main, ["chat", "--home", str(home.root)]) == 0
        assert capsys.readouterr() == ("You said: hi\n你说：你好\n", "")
        type_in(monkeypatch, "fail\n")
        assert await asyncio.to_thread(main, ["chat", "--home", str(home.root), "--conversation", "b"]) == 1
    for name in ("console-local.jsonl", "console-local.lock"):
        assert stat.S_IMODE((home.state / name).stat().st_mode) == 0o600


def test_bytes_of_another_encoding_end_nothing(home: Home) -> None:
    with fake_console(home) as fake:
        fake.answers_with = lambda body: fake.reply(part(1, "› 好", body["id"]))
        command = [sys.executable, "-c", MAIN, "chat", "--home", str(home.root)]
        environ = {**os.environ, "PYTHONIOENCODING": "gbk"}
        done = subprocess.run(
            command, cwd=ROOT, env=environ, input=b"\xff\n", capture_output=True, timeout=30
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode("gbk") == "? 好\n"
        assert fake.posted[0]["text"] == "\ufffd"


@pytest.mark.parametrize(
    ("settings", "args", "code", "told"),
    [
        (
            "[web]\nport = 0\n",
            [],
            2,
            "config.toml has no account console:local: add the line [channels.console.local]",
        ),
        (None, [], 3, "no daemon runs there: start it with: "),
        (None, ["--account", "console:local"], 3, "no daemon runs there"),
        (None, ["--conversation", ""], 2, "a conversation's name"),
    ],
)
def test_what_is_wrong_is_one_line_that_says_what_to_do(
    settings: str | None,
    args: list[str],
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, "hi\n")
    with console_home(*([settings] if settings else [])) as home:
        assert main(["chat", "--home", str(home.root), *args]) == code
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_at_a_terminal_it_is_a_chat(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the command builds it, but for the keyboard: Ctrl-D is pressed at once."""
    from bridge.cli import chat_terminal

    def leaves(self: object, prompt: str, typed: str = "") -> str:
        raise EOFError

    master, slave = os.openpty()
    monkeypatch.setattr(chat, "is_terminal", lambda: True)
    monkeypatch.setattr(chat_terminal.Terminal, "line", leaves)
    monkeypatch.setattr(chat_terminal.Terminal.__init__, "__defaults__", (slave, slave))
    monkeypatch.setattr(chat_terminal, "editor", lambda history: None)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    with fake_console(home) as fake:
        fake.reply(part(1, "等了很久", "m0"))
        assert main(["chat", "--home", str(home.root)]) == 0
    said = capsys.readouterr().out
    assert "/help 查看帮助" in said
    assert said.index("你不在的时候") < said.index("等了很久")
    os.close(master)
    os.close(slave)


def test_a_person_is_at_it_only_where_both_ends_are_a_terminal_that_can_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    for given, out, term, expected in (
        (Tty(), Tty(), "xterm", True),
        (io.StringIO(), Tty(), "xterm", False),
        (Tty(), io.StringIO(), "xterm", False),
        (Tty(), Tty(), "dumb", False),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", given)
            patch.setattr(sys, "stdout", out)
            patch.setenv("TERM", term)
            found = chat.is_terminal()
        assert found is expected


async def test_the_status_is_a_line_for_each_account(home: Home) -> None:
    async with daemon(home):
        assert await asyncio.to_thread(chat.status, home) == f"{'console:local':<24} connected"


# --- in a terminal of its own


async def in_terminal(home: Home, play: Callable[[Pseudo], None], **environ: str) -> str:
    """Run the command in a terminal, let ``play`` type, and give what was on the screen at the end."""

    def run() -> str:
        command = [sys.executable, "-c", MAIN, "chat", "--home", str(home.root)]
        with pseudo(command, {**ENVIRON, **environ}, 80, 40, Path.cwd()) as terminal:
            play(terminal)
            assert terminal.ended() == 0, terminal.text
            return terminal.text

    return await asyncio.to_thread(run)


async def test_a_dialogue_with_a_file_a_stop_and_several_lines(home: Home) -> None:
    def play(terminal: Pseudo) -> None:
        terminal.until("/help")
        terminal.enter("你好，终端")
        terminal.until("你说：你好，终端")
        terminal.enter("picture 回声.png 30x20")
        terminal.until("+ turnbridge-files/回声.png")
        terminal.settle()
        terminal.enter("slow 60")
        terminal.until("working")
        terminal.type("\x03")
        terminal.until("Stopped.")
        terminal.settle()
        terminal.type("\x1b[200~one\ntwo\x1b[201~\r")
        terminal.until("You said: one\n  two")
        terminal.settle()
        terminal.type("\x1b[A\x1b[A\x1b[A")
        terminal.until("picture 回声.png 30x20")
        terminal.type("\x15/quit\r")

    async with daemon(home):
        await in_terminal(home, play)
    assert (Path.cwd() / "turnbridge-files" / "回声.png").read_bytes().startswith(b"\x89PNG")
    history = home.state / "console-history"
    assert "slow 60" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


async def test_utf_8_can_be_typed_in_a_locale_that_knows_none(home: Home) -> None:
    def play(terminal: Pseudo) -> None:
        terminal.until("/help")
        terminal.settle()
        for text in ("你好", "é"):
            terminal.enter(text)
            terminal.until(f"{'你说：' if text == '你好' else 'You said: '}{text}")
            terminal.settle()
        terminal.type("\x04")

    async with daemon(home):
        await in_terminal(home, play, LC_ALL="C", LANG="C")


async def test_what_was_typed_in_a_locale_that_is_not_there_comes_back(home: Home) -> None:
    def play(terminal: Pseudo) -> None:
        terminal.until("/help")
        terminal.settle()
        terminal.enter("你好 é")
        terminal.until("你说：你好 é")
        terminal.settle()
        terminal.type("\x1b[A")
        terminal.until(lambda text: text.count("› 你好 é") == 2)
        terminal.type("\x15\x04")

    async with daemon(home):
        await in_terminal(home, play, LC_ALL="zh_CN.GBK")


async def test_ctrl_c_twice_leaves_and_colours_can_be_switched_off(home: Home) -> None:
    shown: list[bytes] = []

    def play(terminal: Pseudo) -> None:
        terminal.until("›")
        terminal.type("\x03")
        terminal.until("再按一次 Ctrl-C")
        terminal.settle()
        terminal.type("\x03")
        shown.append(terminal.received)

    async with daemon(home):
        await in_terminal(home, play, NO_COLOR="1", LANG="zh_CN.UTF-8", LC_ALL="", LC_CTYPE="C.UTF-8")
    assert b"\x1b[1;36m" not in shown[0]


async def test_a_daemon_that_restarts_while_the_chat_is_open_loses_nothing(home: Home) -> None:
    running, restarted = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def reached(event: asyncio.Event) -> None:
        loop.call_soon_threadsafe(event.set)

    def play(terminal: Pseudo) -> None:
        terminal.until("/help")
        terminal.settle()
        terminal.enter("slow 30")
        terminal.until("working 1 s")
        reached(running)
        terminal.until("The daemon is gone")
        terminal.enter("typed meanwhile")
        terminal.until("› typed meanwhile")
        reached(restarted)
        terminal.until("It is back")
        terminal.until("I was restarted while working on this message")
        terminal.until("You said: typed meanwhile")
        terminal.settle()
        terminal.type("\x04")

    async with asyncio.TaskGroup() as tasks:
        async with daemon(home):
            playing = tasks.create_task(in_terminal(home, play))
            await running.wait()
        await restarted.wait()
        async with daemon(home):
            text = await playing
    assert text.count("I was restarted") == 1
    assert text.count("You said: typed meanwhile") == 1


async def test_a_chat_that_is_killed_shows_nothing_twice_and_loses_nothing(home: Home) -> None:
    def talk() -> list[str]:
        command = [sys.executable, "-c", MAIN, "chat", "--home", str(home.root)]
        texts = []
        for number in range(2):
            with pseudo(command, ENVIRON, 80, 40, Path.cwd()) as terminal:
                terminal.until("/help")
                if number == 0:
                    terminal.enter("hello")
                    terminal.until("You said: hello")
                    terminal.settle()
                    terminal.process.send_signal(signal.SIGKILL)
                    continue
                terminal.enter("again")
                terminal.until("You said: again")
                terminal.settle()
                terminal.type("\x04")
                terminal.ended()
                texts.append(terminal.text)
        return texts

    async with daemon(home):
        (text,) = await asyncio.to_thread(talk)
    assert "You said: hello" not in text


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (("local", "main"), ""),
        (("console:local", "weekly report"), " --conversation 'weekly report'"),
        (("other", "main"), " --account other"),
    ],
)
def test_a_chat_is_opened_again_by_the_whole_command(args: tuple[str, str], options: str) -> None:
    with console_home("[channels.console.local]\n[channels.console.other]\n") as home:
        again = chat.again_in(home, chat.client_for(home, *args))
        assert again.endswith(f" chat{options} --home {home.root}")


@pytest.mark.parametrize(
    ("media", "most"),
    [("", 50 * 1_048_576), ("owner_max_mib = 1", 1_048_576), ("owner_max_mib = -1", None)],
)
def test_the_settings_tell_how_large_files_may_be(media: str, most: int | None) -> None:
    with console_home(f"[channels.console.local.media]\n{media}\n") as home:
        assert chat.client_for(home, "local", "main").most_bytes == most


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_leaves_the_terminal_as_it_was(home: Home, number: int) -> None:
    def talk() -> None:
        command = [sys.executable, "-c", MAIN, "chat", "--home", str(home.root)]
        for busy in (False, True):
            with pseudo(command, ENVIRON, 80, 40, Path.cwd()) as terminal:
                terminal.until("/help")
                terminal.settle()
                if busy:
                    terminal.enter("slow 60")
                    terminal.until("working")
                terminal.process.send_signal(number)
                assert terminal.ended() == 128 + number
                assert b"\x1b[?2004h" not in terminal.received.rpartition(b"\x1b[?2004l")[2]
                assert b"\x1b[?25l" not in terminal.received.rpartition(b"\x1b[?25h")[2]

    async with daemon(home):
        before = signal.signal(number, signal.SIG_DFL)  # whatever started us may ignore it
        try:
            await asyncio.to_thread(talk)
        finally:
            signal.signal(number, before)


def test_nothing_heavy_is_loaded_for_its_help() -> None:
    code = "import sys\nfrom bridge.cli.main import parser\nparser()\nprint(*sys.modules)"
    done: Any = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {"rich", "http.client", "readline", "PIL"} & set(done.stdout.split()) == set()


def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError, match="does not exist: look at --home"):
        chat.places(Home(tmp_path / "gone"), "local")
    assert not (tmp_path / "gone").exists()
