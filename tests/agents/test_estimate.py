"""How many tokens a message is taken for."""

from pathlib import Path

from bridge.agents.contract import HistoryEntry, Role, ToolCall, TurnFile
from bridge.agents.estimate import entry_tokens, text_bytes, tokens


def user(text: str) -> HistoryEntry:
    return HistoryEntry(role=Role.USER, text=text)


def test_a_message_is_a_token_for_three_bytes_begun_and_four_more() -> None:
    assert [tokens(size_bytes) for size_bytes in (0, 1, 3, 4)] == [4, 5, 5, 6]
    assert entry_tokens(user("éé")) == 4 + 2
    call = ToolCall(name="look", arguments={}, call_id="x")
    with_call = HistoryEntry(role=Role.ASSISTANT, text="abc", calls=(call,))
    assert entry_tokens(with_call) == tokens(3 + len('[{"name":"look","arguments":{}}]'))
    heard = TurnFile("audio", Path("/a.ogg"), "a.ogg", "audio/ogg", 3, "x" * 3000)
    assert entry_tokens(HistoryEntry(role=Role.USER, text="", files=(heard,))) > 1000


def test_the_longest_message_of_a_room_fits_it() -> None:
    assert [tokens(text_bytes(room)) for room in (4, 5, 1000)] == [4, 5, 1000]
    assert tokens(text_bytes(1000) + 1) == 1001
