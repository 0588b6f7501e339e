"""``exec``: one question, one answer, an exit code; first against a fake, then through a real daemon."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.chat_record import Record, alone_in
from bridge.cli.main import main
from bridge.paths import Home
from tests.cli.console import FakeConsole, console_home, fake_console, part
from tests.cli.socket_daemon import MAIN
from tests.daemons import daemon

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Terminal())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def home() -> Iterator[Home]:
    with console_home() as made:
        yield made


@pytest.fixture
def fake(home: Home) -> Iterator[FakeConsole]:
    with fake_console(home) as served:
        served.answers_with = lambda body: served.reply(part(1, f"echo: {body['text']}", body["id"]))
        yield served


def execute(home: Home, *args: str) -> int:
    return main(["exec", "--home", str(home.root), *args])


def test_the_answer_is_printed(home: Home, fake: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(home, "hi") == 0
    assert capsys.readouterr().out == "echo: hi\n"
    assert fake.waiting == []


def test_each_has_a_conversation_of_its_own_unless_it_is_named(home: Home, fake: FakeConsole) -> None:
    for args in (("a",), ("b",), ("c", "--conversation", "build")):
        execute(home, *args)
    names = [body["conversation"] for body in fake.posted]
    assert len(set(names)) == 3
    assert names[2] == "build"
    said = Record(home.state / "console-local.jsonl", "build").lines
    assert [(line.who, line.text) for line in said] == [("you", "c"), ("agent", "echo: c")]


def test_a_conversation_that_is_open_elsewhere_is_left_alone(home: Home) -> None:
    held = "from pathlib import Path; from bridge.cli.chat_record import alone_in; import sys\n"
    held += "with alone_in(Path(sys.argv[1]), 'main'): print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", held, str(home.state / "console-local.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert execute(home, "hi", "--conversation", "main") == 1
        assert other.stdin is not None
        other.stdin.close()
    with alone_in(home.state / "console-local.lock", "main"):
        pass


def test_json_is_one_object_with_files(
    home: Home, fake: FakeConsole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy := tmp_path / "copy").write_text("abc")
    file = {"path": str(copy), "name": "图.txt", "mime": "text/plain", "size": 3}
    fake.answers_with = lambda body: fake.reply(
        part(1, "Here: 好", body["id"], parts=2), part(2, "", body["id"], file=file, part=2, parts=2)
    )
    assert execute(home, "hi", "--json", "--out", "kept") == 0
    path = str(tmp_path / "kept" / "图.txt")
    assert json.loads(capsys.readouterr().out) == {
        "text": "Here: 好",
        "files": [{"path": path, "name": "图.txt", "mime": "text/plain", "size": 3}],
        "notice": "",
    }
    assert execute(home, "hi") == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("Here: 好\n", "turnbridge-files/图.txt (3 bytes)\n")


def test_a_file_that_cannot_be_kept_fails(
    home: Home, fake: FakeConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    file = {"path": "/gone", "name": "a.txt", "mime": "text/plain", "size": 3}
    fake.answers_with = lambda body: fake.reply(part(1, "", body["id"], file=file))
    assert execute(home, "hi") == 1
    assert "a.txt could not be saved" in capsys.readouterr().err


@pytest.mark.parametrize(("notice", "code"), [("failure", 1), ("interrupted", 1), ("busy", 1), ("empty", 0)])
def test_what_the_bridge_says_itself_is_no_answer(
    home: Home, fake: FakeConsole, notice: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.answers_with = lambda body: fake.reply(part(1, "So it is.", body["id"], notice=notice))
    assert execute(home, "hi") == code
    out, err = capsys.readouterr()
    assert (out, err) == (("So it is.\n", "") if code == 0 else ("", "So it is.\n"))
    assert execute(home, "hi", "--json") == code
    assert json.loads(capsys.readouterr().out)["notice"] == notice


def test_out_of_time_the_turn_is_stopped(
    home: Home, fake: FakeConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.answers_with = None
    assert execute(home, "hi", "--timeout", "0.05", "--json") == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == {"text": "", "files": [], "notice": "stopped"}
    assert "no answer in time" in err
    assert [body["type"] for body in fake.posted] == ["message", "recall"]


class Piped(io.StringIO):
    """Standard input as a pipe: what ``fileno`` gives is one."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self._number = number

    def fileno(self) -> int:
        return self._number


def test_standard_input_is_the_question_or_is_added_to_it(
    home: Home, fake: FakeConsole, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    silent = os.open(os.devnull, os.O_RDONLY)
    try:
        for args, text, number in (
            (["-"], "from a pipe", reader),
            ([], "from a pipe", reader),
            (["Sum up:"], "a long text", reader),
            (["hi"], " \n", reader),
            (["hi"], "never read", silent),
        ):
            monkeypatch.setattr(sys, "stdin", Piped(text, number))
            assert execute(home, *args) == 0
    finally:
        for each in (reader, writer, silent):
            os.close(each)
    asked = [body["text"] for body in fake.posted]
    assert asked == ["from a pipe", "from a pipe", "Sum up:\n\na long text", "hi", "hi"]
    empty = "turnbridge: standard input was empty: only the text of the command was asked\n"
    assert capsys.readouterr().err == empty


def test_files_go_along(home: Home, fake: FakeConsole) -> None:
    Path("图.txt").write_text("abc")
    assert execute(home, "look", "--file", "图.txt") == 0
    assert fake.posted[0]["files"] == [{"path": str(Path("图.txt").resolve()), "size": 3}]


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        ([], 2, "there is nothing to ask"),
        (["hi"], 3, "no daemon runs there: start it with:"),
        (["hi", "--account", "gone"], 2, "add the line [channels.console.gone] at its end"),
        (["hi", "--conversation", "a\nb"], 2, "printable characters"),
        (["hi", "--file", "gone.txt"], 2, "gone.txt: No such file"),
        (["hi", "--file", "."], 2, ". is no regular file"),
    ],
)
def test_what_is_wrong_is_one_line_and_a_code(
    home: Home, args: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(home, *args) == code
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


async def test_a_real_daemon_answers_keeps_files_and_stops_in_time(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    async with daemon(home):
        assert await asyncio.to_thread(execute, home, "hello") == 0
        assert await asyncio.to_thread(execute, home, "picture 回声.png 20x10") == 0
        assert await asyncio.to_thread(execute, home, "fail") == 1
        assert await asyncio.to_thread(execute, home, "slow 60", "--timeout", "0.2") == 1
    out, err = capsys.readouterr()
    assert out == "You said: hello\nHere is 回声.png.\n"
    assert "turnbridge-files/回声.png" in err
    assert "20 x 10" in err
    assert "Something went wrong" in err
    assert "no answer in time" in err


async def test_ctrl_c_takes_the_turn_back_and_exits_with_130(home: Home) -> None:
    with fake_console(home) as fake:
        command = [sys.executable, "-c", MAIN, "exec", "--home", str(home.root), "hi"]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:

            def asks() -> bool:
                return any(kind == "replies" for kind, _ in list(fake.asked))

            async with asyncio.timeout(20):
                while not asks():
                    await asyncio.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, err = await asyncio.to_thread(process.communicate)
        assert (process.returncode, err) == (130, b"")
        assert [body["type"] for body in fake.posted] == ["message", "recall"]


def test_what_answers_earlier_messages_is_told_apart_and_not_lost(
    home: Home, fake: FakeConsole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy := tmp_path / "copy").write_text("abc")
    file = {"path": str(copy), "name": "a.txt", "mime": "text/plain", "size": 3}
    record = Record(home.state / "console-local.jsonl", "main")
    record.add("agent", "p0", "shown")

    def both(body: dict[str, Any]) -> None:
        fake.reply(part(1, "shown", "m0", id="p0"), part(2, "earlier", "m0"), part(3, "", "m0", file=file))
        fake.reply(part(4, "mine", body["id"]))

    fake.answers_with = both
    assert execute(home, "hi", "--conversation", "main") == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("mine\n", f"earlier\n{tmp_path / 'turnbridge-files' / 'a.txt'}\n")
    assert Record(home.state / "console-local.jsonl", "main").has("p2")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_timeout_that_is_none_is_refused_before_anything_is_sent(seconds: str, home: Home) -> None:
    with pytest.raises(SystemExit) as exited:
        execute(home, "hi", f"--timeout={seconds}")
    assert exited.value.code == 2


def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mistyped = tmp_path / "hmoe"
    assert main(["exec", "hello", "--home", str(mistyped)]) == 3
    assert f"{mistyped} does not exist: look at --home" in capsys.readouterr().err
    assert not mistyped.exists()
