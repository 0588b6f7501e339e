import pytest

from bridge.agents.contract import HistoryEntry, Role
from bridge.sessions import history
from bridge.sessions.history import History, encode, is_too_large


def turn(number: int, text: str = "x") -> list[HistoryEntry]:
    return [
        HistoryEntry(role=Role.USER, text=f"{number} {text}"),
        HistoryEntry(role=Role.ASSISTANT, text=text),
        HistoryEntry(role=Role.TOOL, text=text, name="read_file", call_id="c"),
    ]


def test_what_is_stored_is_read_back() -> None:
    entries = [*turn(1), HistoryEntry(role=Role.USER, text="", files=("/a", "/b"))]
    assert list(History(map(encode, entries)).entries) == entries


def test_nothing_is_dropped_while_there_is_room() -> None:
    kept = History(map(encode, turn(1)))
    assert kept.surplus(turn(2)) == 0
    kept.add(turn(2), 0)
    assert len(kept.entries) == 6
    kept.clear()
    assert (len(kept.entries), kept.size_bytes(0, [])) == (0, 0)


def test_the_oldest_whole_turns_make_room_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_ENTRIES", 7)
    kept = History(map(encode, [*turn(1), *turn(2)]))
    dropped = kept.surplus(turn(3))
    assert dropped == 3  # one turn, although two entries would do
    kept.add(turn(3), dropped)
    assert [entry.text for entry in kept.entries if entry.role is Role.USER] == ["2 x", "3 x"]


def test_the_size_counts_as_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    one = sum(len(encode(entry).encode()) for entry in turn(1, "é"))
    monkeypatch.setattr(history, "MOST_BYTES", 2 * one)
    kept = History(map(encode, turn(1, "é")))
    assert kept.surplus(turn(2, "é")) == 0
    kept.add(turn(2, "é"), 0)
    assert kept.surplus(turn(3, "é")) == 3
    assert kept.size_bytes(3, turn(3, "é")) == 2 * one


def test_a_turn_alone_over_a_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_too_large(turn(1))
    monkeypatch.setattr(history, "MOST_ENTRIES", 2)
    assert is_too_large(turn(1))
    monkeypatch.setattr(history, "MOST_ENTRIES", 10)
    monkeypatch.setattr(history, "MOST_BYTES", 10)
    assert is_too_large(turn(1))
    assert History(map(encode, turn(1))).surplus(turn(2)) == 3  # then all of the others go
