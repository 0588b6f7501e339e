"""A chat through a pipe: answers alone on standard output, and every line gets its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.cli import chat_turn
from bridge.cli.chat_plain import Printer, talk
from bridge.cli.chat_record import Record
from bridge.cli.chat_turn import Turns
from tests.cli.console import FakeConsole, client_of, console_home, fake_console, part, turn


class Here:
    def __init__(self, fake: FakeConsole, turns: Turns, folder: Path) -> None:
        self.fake, self.turns, self.folder = fake, turns, folder
        self.cursor = 0
        fake.answers_with = self.echo

    def record(self) -> Record:
        return Record(self.folder / "record.jsonl", "main")

    def echo(self, body: dict[str, Any]) -> None:
        self.say(f"echo: {body['text']}", body["id"])

    def say(self, text: str, reply_to: str, **changes: Any) -> None:
        self.cursor += 1
        self.fake.reply(part(self.cursor, text, reply_to, **changes))

    def talk(self, *lines: str) -> int:
        printer = Printer(self.folder / "files", self.record(), lambda: "now")
        return talk(self.turns, [f"{line}\n" for line in lines], printer)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.chdir(tmp_path)
    with console_home() as home, fake_console(home) as fake:
        yield Here(fake, Turns(client_of(home)), tmp_path)


def test_every_message_has_its_answer_on_standard_output(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.talk("hi", "", "a \\", "b", '"""', "c") == 0
    out, err = capsys.readouterr()
    assert out == "echo: hi\necho: a \nb\necho: c\n"
    assert err == ""
    assert [(line.who, line.text) for line in here.record().lines][:2] == [
        ("you", "hi"),
        ("agent", "echo: hi"),
    ]


def test_what_waits_comes_first_and_what_was_shown_before_does_not_come_again(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    here.say("shown", "m1")
    here.record().add("agent", "p1", "shown")
    here.say("waited", "m0")
    assert here.talk("hi") == 0
    assert capsys.readouterr().out == "waited\necho: hi\n"


def test_notices_go_to_standard_error_and_fail(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    here.fake.answers_with = lambda body: here.say("Something went wrong", body["id"], notice="failure")
    assert here.talk("hi") == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "Something went wrong\n")


def test_an_empty_answer_is_an_answer(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    here.fake.answers_with = lambda body: here.say("Done.", body["id"], notice="empty")
    assert here.talk("hi") == 0
    assert capsys.readouterr().out == "Done.\n"


@pytest.mark.parametrize("notice", ["said", "chosen"])
def test_what_a_command_is_answered_is_an_answer(
    here: Here, notice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    here.fake.answers_with = lambda body: here.say("These are my commands.", body["id"], notice=notice)
    assert here.talk("/help") == 0
    assert capsys.readouterr() == ("These are my commands.\n", "")


def test_no_room_is_told_and_written_nowhere(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    here.fake.outcome = "busy"
    here.fake.answers_with = None
    assert here.talk("hi") == 1
    assert capsys.readouterr().err == "Too many messages are waiting.\n"


def test_a_stopped_turn_is_told_and_the_next_line_goes_on(
    here: Here, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(body: dict[str, Any]) -> None:
        here.fake.shows(body["id"], turn(over=True)) if body["text"] == "a" else here.echo(body)

    here.fake.answers_with = stopped
    monkeypatch.setattr(chat_turn, "ASK_SECONDS", 0.05)
    assert here.talk("a", "b") == 1
    out, err = capsys.readouterr()
    assert out == "echo: b\n"
    assert "ended without an answer" in err


def test_files_go_with_the_next_message_or_alone_at_the_end(here: Here) -> None:
    Path("a.txt").write_text("abc")
    assert here.talk("/file a.txt", "look", "/file a.txt", "/quit", "never") == 0
    first, second = here.fake.posted
    assert (first["text"], first["files"]) == ("look", [{"path": str(Path("a.txt").resolve()), "size": 3}])
    assert (second["text"], len(second["files"])) == ("", 1)


def test_files_that_arrive_are_kept_and_named_on_standard_error(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = here.folder / "copy"
    copy.write_text("abc")
    file = {"path": str(copy), "name": "../图.txt", "mime": "text/plain", "size": 3}
    here.fake.answers_with = lambda body: here.say("", body["id"], file=file)
    assert here.talk("file") == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "files/图.txt (3 bytes)\n")
    copy.unlink()
    assert here.talk("file") == 1
    assert "could not be saved" in capsys.readouterr().err
