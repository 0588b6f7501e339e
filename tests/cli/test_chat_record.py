"""The transcript of the console's chats: private, bounded, and never in the way of a chat."""

import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.cli import chat_record
from bridge.cli.chat_record import Line, Record, alone_in
from bridge.errors import BridgeError


def test_what_was_said_is_there_in_the_next_chat_of_that_conversation(tmp_path: Path) -> None:
    path = tmp_path / "console-local.jsonl"
    first = Record(path, "main")
    first.add("you", "m1", "看这个", ["/tmp/图.png"], "2026-11-30T12:00:00+00:00")
    first.add("agent", "p1", "好\n看")
    Record(path, "other").add("you", "m2", "elsewhere")
    again = Record(path, "main")
    assert again.lines == [
        Line("main", "you", "m1", "看这个", ("/tmp/图.png",), "2026-11-30T12:00:00+00:00"),
        Line("main", "agent", "p1", "好\n看"),
    ]
    assert (again.has("p1"), again.has("m2"), again.has("p2")) == (True, False, False)
    assert (again.question("m1"), again.question("p1"), again.question("m2")) == ("看这个", "", "")


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Record(tmp_path / "a.jsonl", "main").add("you", "m1", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.jsonl").stat().st_mode) == 0o600


def test_a_line_that_a_crash_has_cut_or_another_version_wrote_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    Record(path, "main").add("you", "m1", "kept")
    with path.open("a") as file:
        file.write('{"conversation": "main", "who"\n[]\n{"files": 3}\n{"files": [], "new": 1}\n')
        file.write("[" * 100_000 + "\n")
        for odd in ({"id": ["x"]}, {"text": 7}, {"files": [3]}, {"who": None}):
            line = {"conversation": "main", "who": "you", "id": "m", "text": "odd", "files": [], "at": ""}
            file.write(json.dumps({**line, **odd}) + "\n")
        file.write('{"conversation": "ma')
    record = Record(path, "main")
    assert [line.text for line in record.lines] == ["kept"]
    record.add("agent", "p1", "more")
    assert [line.text for line in Record(path, "main").lines] == ["kept", "more"]


def test_what_was_piped_in_plays_no_tricks_when_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = Record(path, "main")
    record.add("you", "m1", "a\r\n\x1b[2Jb\tc")
    line = {"conversation": "main", "who": "you", "id": "m", "text": "\x1b", "files": [], "at": ""}
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    for texts in (record.lines, Record(path, "main").lines[:1]):
        assert [line.text for line in texts] == ["a\n\N{REPLACEMENT CHARACTER}[2Jb\tc"]
    assert Record(path, "main").question("m") == "\N{REPLACEMENT CHARACTER}"


def test_a_file_that_has_grown_too_large_keeps_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_record, "MOST_BYTES", 2000)
    monkeypatch.setattr(chat_record, "KEPT_BYTES", 500)
    path = tmp_path / "a.jsonl"
    record = Record(path, "main")
    for number in range(40):
        record.add("you", f"m{number}", "some words")
    assert [line.id for line in Record(path, "main").lines][-1] == "m39"
    assert path.stat().st_size <= 500
    assert [line.id for line in Record(path, "main").lines][-1] == "m39"


def test_a_conversation_is_shown_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "console-local.lock"
    held = (
        "import sys; from pathlib import Path; from bridge.cli.chat_record import alone_in\n"
        "with alone_in(Path(sys.argv[1]), 'main'):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", held, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BridgeError, match="main is open in another terminal"), alone_in(path, "main"):
            pass
        with alone_in(path, "another"):
            pass
        other.stdin.close()
        other.wait(10)
    with alone_in(path, "main"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_writer_waits_for_another_ones_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = Record(path, "main")
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        command = (
            "import sys; from pathlib import Path; from bridge.cli.chat_record import Record\n"
            "print('begun', flush=True); Record(Path(sys.argv[1]), 'main').add('you', 'm2', 'x')\n"
        )
        with subprocess.Popen([sys.executable, "-c", command, str(path)], stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert path.read_text() == ""
            fcntl.flock(file, fcntl.LOCK_UN)
            assert other.wait(10) == 0
    record.add("you", "m3", "y")
    assert [line.id for line in Record(path, "main").lines] == ["m2", "m3"]
