"""What waits is bounded by its number and by its size."""

import pytest

from bridge.agents.acp import waiting
from bridge.agents.acp.waiting import Room, size


def test_there_is_room_for_so_many_and_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MOST_WAITING", 2)
    monkeypatch.setattr(waiting, "MOST_CHARACTERS", 10)
    room = Room()
    assert [room.take(one) for one in (9, 2, 1, 0)] == [True, False, True, False]
    room.leave(9)
    assert room.take(9)
    assert (room.count, room.characters) == (2, 10)


def test_a_size_is_that_of_all_its_text() -> None:
    assert size({"a": "x" * 1000}) > 1000
    assert size("\ud800" * 10) >= 10  # no text that could be encoded
