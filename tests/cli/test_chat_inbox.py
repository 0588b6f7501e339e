"""What arrives: once, whole, in order, and never lost."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bridge.cli.chat_client import Part
from bridge.cli.chat_inbox import Inbox
from bridge.cli.chat_record import Record
from bridge.cli.chat_show import Screen
from bridge.cli.chat_words import Words
from tests.cli.console import part


class Here:
    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, io.StringIO()
        self.record = Record(folder / "record.jsonl", "main")
        screen = Screen(Console(file=self.out, width=80, color_system=None), Words(False))
        self.inbox = Inbox(screen, self.record, folder / "files", lambda: "now")

    def show(self, *parts: dict[str, Any], above: str = "m1") -> list[str]:
        self.inbox.above = above
        return self.inbox.show([Part.read(each) for each in parts])

    @property
    def text(self) -> str:
        return self.out.getvalue()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path)


def test_an_answer_is_shown_once_and_ends_its_message_each_time(here: Here) -> None:
    for _ in range(2):
        assert here.show(part(1, "fine")) == ["m1"]
    assert here.text == "  fine\n"
    assert [(line.who, line.id, line.text, line.at) for line in here.record.lines] == [
        ("agent", "p1", "fine", "now")
    ]


def test_the_parts_of_one_reply_are_one_text_and_two_replies_are_two(here: Here) -> None:
    first = part(1, "**one ", reply="r", parts=2)
    ended = here.show(first, part(2, "two**", reply="r", part=2, parts=2), part(3, "three", ""))
    assert ended == ["m1"]
    assert here.text == "  one two\n\n  three\n"
    assert [line.text for line in here.record.lines] == ["**one two**", "", "three"]


def test_what_answers_another_message_is_shown_with_its_question(here: Here) -> None:
    here.record.add("you", "m0", "how are you?" * 30)
    here.show(part(1, "fine", "m0"), above="m1")
    assert here.text.startswith("› how are you?")
    assert here.text.count("how are you?") < 20
    here.record.add("you", "m1", "and now?")
    here.show(part(2, "better", "m1"), above="m1")
    assert "and now?" not in here.text


def test_a_notice_about_another_message_is_shown_with_its_question_once(here: Here) -> None:
    here.record.add("you", "m0", "how are you?")
    notice = {"notice": "interrupted", "parts": 2}
    here.show(part(1, "restarted", "m0", **notice), part(2, "and more", "m0", **notice), above="")
    assert here.text == "› how are you?\n\n  restarted\n\n  and more\n"


def test_a_notice_is_no_markdown_and_one_of_no_room_was_said_already(here: Here) -> None:
    here.show(part(1, "*sorry*", notice="failure"))
    here.record.add("you", "m2", "hi")
    assert here.show(part(2, "too many", "m2", notice="busy")) == ["m2"]
    here.show(part(3, "too many here", "m3", notice="busy"))
    assert here.text == "  *sorry*\n\n  too many here\n"
    assert [line.who for line in here.record.lines] == ["failure", "you", "busy", "busy"]
    assert here.record.lines[2].text == "too many"


def test_files_are_kept_between_texts_and_a_failure_is_told(here: Here) -> None:
    (copy := here.folder / "copy").write_text("abc")
    file = {"path": str(copy), "name": "图.txt", "mime": "text/plain", "size": 3}
    here.show(part(1, "a"), part(2, file=file), part(3, file={**file, "path": "/gone"}), part(4, "b", ""))
    assert [line.strip() for line in here.text.splitlines() if line] == [
        "a", "+ files/图.txt  3 bytes", "图.txt could not be saved: No such file or directory", "b",
    ]  # fmt: skip
    assert here.record.lines[1].files == (str(here.folder / "files" / "图.txt"),)
