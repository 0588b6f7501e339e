import pytest

from bridge.agents.contract import HistoryEntry, Role, ToolCall, TurnFile
from bridge.agents.estimate import entry_tokens
from bridge.sessions import history
from bridge.sessions.history import History, Trim, encode, is_too_large
from bridge.sessions.notes import note


def turn(number: int, text: str = "x") -> list[HistoryEntry]:
    call = ToolCall(name="read_file", arguments={"path": text}, call_id="c")
    return [
        HistoryEntry(role=Role.USER, text=f"{number} {text}"),
        HistoryEntry(role=Role.ASSISTANT, text=text, calls=(call,)),
        HistoryEntry(role=Role.TOOL, text=text, name="read_file", call_id="c"),
    ]


def stored(entries: list[HistoryEntry]) -> int:
    return sum(len(encode(entry).encode()) for entry in entries)


def added(kept: History, entries: list[HistoryEntry]) -> Trim:
    trim = kept.trim(entries)
    assert trim is not None
    kept.add(entries, trim)
    return trim


def test_what_is_stored_is_read_back() -> None:
    file = TurnFile("image", None, "a.png", "image/png", 3, pixels=(1, 2))
    entries = [*turn(1), HistoryEntry(role=Role.USER, text="", files=(file,))]
    kept = History(map(encode, entries))
    assert list(kept.entries) == entries
    assert list(kept.tokens) == [entry_tokens(entry) for entry in entries]


def test_the_first_version_s_entries_are_read() -> None:
    old = '{"role":"user","text":"look","files":["/a/b.png"]}'
    tool = '{"role":"tool","text":"done","name":"read_file","call_id":"c"}'
    first, second = History([old, tool]).entries
    assert [file.name for file in first.files] == ["/a/b.png"]
    assert (second.name, second.calls) == ("read_file", ())


def test_nothing_gives_way_while_there_is_room() -> None:
    kept = History(map(encode, turn(1)))
    assert kept.trim(turn(2)) is None
    kept.add(turn(2))
    assert len(kept.entries) == len(kept.tokens) == 6
    kept.clear()
    assert len(kept.entries) == len(kept.tokens) == 0


def test_the_oldest_whole_turns_give_way_to_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_ENTRIES", 10)
    kept = History(map(encode, [*turn(1), *turn(2), *turn(3)]))
    trim = added(kept, turn(4))  # a whole turn, although two entries would do
    assert (trim.dropped, trim.removed, trim.note) == (3, 3, note(turn(1)))
    assert [entry.text for entry in kept.entries if entry.role is Role.USER] == ["2 x", "3 x", "4 x"]
    assert (kept.entries[0], len(kept.tokens)) == (trim.note, 10)
    assert trim.left_bytes == stored(list(kept.entries))
    second = added(kept, turn(5))
    assert (second.dropped, second.removed) == (4, 3)  # with the note of before, which is no message
    assert second.note is not None
    assert second.note.covers == 6
    assert [entry.role for entry in kept.entries].count(Role.NOTE) == 1
    assert "user: 1 x" in second.note.text


def test_the_size_counts_as_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    one = stored(turn(1, "é" * 9000))
    monkeypatch.setattr(history, "MOST_BYTES", 3 * one)
    kept = History(map(encode, [*turn(1, "é" * 9000), *turn(2, "é" * 9000)]))
    assert kept.trim(turn(3, "é" * 9000)) is None
    kept.add(turn(3, "é" * 9000))
    trim = added(kept, turn(4, "é" * 9000))
    assert trim.dropped == 6  # two turns, so that the note has room
    assert trim.left_bytes == stored(list(kept.entries)) <= 3 * one


def test_a_turn_that_leaves_no_room_even_for_the_note_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_ENTRIES", 3)
    kept = History(map(encode, turn(1)))
    trim = added(kept, turn(2))
    assert (trim.dropped, trim.removed, trim.note) == (3, 3, None)
    assert list(kept.entries) == turn(2)


def test_a_turn_alone_over_a_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_too_large(turn(1))
    monkeypatch.setattr(history, "MOST_ENTRIES", 2)
    assert is_too_large(turn(1))
    monkeypatch.setattr(history, "MOST_ENTRIES", 10)
    monkeypatch.setattr(history, "MOST_BYTES", 10)
    assert is_too_large(turn(1))
