from bridge.agents.acp.memory import Memory, mark, split, unheard
from bridge.agents.contract import HistoryEntry, Role, ToolCall


def turn(question: str, answer: str) -> list[HistoryEntry]:
    call = ToolCall(name="x", arguments={})
    return [
        HistoryEntry(role=Role.USER, text=question),
        HistoryEntry(role=Role.ASSISTANT, text="", calls=(call,)),
        HistoryEntry(role=Role.TOOL, text="r", name="x", call_id=call.call_id),
        HistoryEntry(role=Role.ASSISTANT, text=answer),
    ]


def test_what_is_remembered_is_read_again_and_what_others_wrote_is_not() -> None:
    memory = Memory("s1", "/w", mark("a", "b"))
    assert Memory.decode(memory.encode()) == memory
    for other in ("", "x", "7", "[]", '{"more": 1}'):
        assert Memory.decode(other) == Memory()


def test_the_question_is_what_users_said_last() -> None:
    asked = [HistoryEntry(role=Role.USER, text=text) for text in ("now", "more")]
    first = turn("a", "b")
    assert split([*first, *asked]) == (first, asked)
    assert split([]) == ([], [])


def test_what_came_after_the_marked_turn_is_unheard() -> None:
    first, second = turn("a", "b"), turn("c", "d")
    assert unheard([*first, *second], mark("a", "b")) == second
    assert unheard([*first, *second], mark("c", "d")) == []
    assert unheard([*first, *second], mark("x", "y")) == unheard([*first, *second], "") == [*first, *second]
    assert unheard([HistoryEntry(role=Role.NOTE, text="n")], mark("a", "b"))[0].text == "n"
    assert unheard([HistoryEntry(role=Role.USER, text="a")], mark("a", "")) == []
