import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.contract import AgentError, HistoryEntry, Role, ToolCall
from bridge.agents.estimate import entry_tokens, tokens
from bridge.channel.testing.clock import FakeClock
from bridge.sessions.budget import MARGIN_TOKENS, RESERVE_TOKENS, budget, select
from bridge.sessions.notes import NOTE_BYTES, note
from bridge.tools.wait import Wait

NOTE_TOKENS = tokens(NOTE_BYTES)


def user(text: str) -> HistoryEntry:
    return HistoryEntry(role=Role.USER, text=text)


def said(text: str, *calls: str) -> list[HistoryEntry]:
    asked = tuple(ToolCall(name="look", arguments={}, call_id=call) for call in calls)
    results = [HistoryEntry(role=Role.TOOL, text=text, name="look", call_id=call) for call in calls]
    return [HistoryEntry(role=Role.ASSISTANT, text=text, calls=asked), *results]


def chosen(entries: list[HistoryEntry], room: int, own: int = 1) -> list[HistoryEntry]:
    return list(select(entries, [*map(entry_tokens, entries)], room, own).entries)


def size(entries: list[HistoryEntry]) -> int:
    return sum(map(entry_tokens, entries))


def test_the_budget_is_what_answer_margin_system_prompt_and_tools_leave() -> None:
    assert budget(128_000, "", []) == 128_000 - RESERVE_TOKENS - MARGIN_TOKENS == 117_760
    assert budget(128_000, "x" * 300, []) == 117_760 - 104
    assert budget(128_000, "\ud800", []) == 117_760 - 5
    one = 117_760 - budget(128_000, "", [Wait(FakeClock())])
    assert 40 < one < 200
    assert 117_760 - budget(128_000, "", [Wait(FakeClock())] * 2) == 2 * one


def test_a_model_that_takes_less_than_the_session_s_context_has_less_for_messages() -> None:
    assert budget(128_000, "x" * 300, [], 2816) == 2816 - 104
    assert budget(12_000, "", [], 5000) == 12_000 - RESERVE_TOKENS - MARGIN_TOKENS


@pytest.mark.parametrize("room", [0, -500])
def test_where_instructions_and_tools_leave_nothing_a_larger_context_is_asked_for(room: int) -> None:
    with pytest.raises(AgentError, match="instructions and tools alone fill") as error:
        chosen([user("hi")], room)
    assert error.value.code == "context_limit"


def test_what_fits_is_left_as_it_is() -> None:
    entries = [user("a"), *said("b", "1"), user("c")]
    selection = select(entries, [*map(entry_tokens, entries)], size(entries), 1)
    assert (list(selection.entries), selection.removed) == (entries, 0)
    assert selection.before_tokens == selection.after_tokens == size(entries)


def test_the_newest_whole_groups_stay_and_the_rest_becomes_a_note() -> None:
    old, answer, recent = user("old " * 2000), said("answer " * 500, "1", "2"), user("recent")
    entries = [old, *answer, recent]
    room = size([*answer, recent]) + NOTE_TOKENS
    selection = select(entries, [*map(entry_tokens, entries)], room, 1)
    assert list(selection.entries) == [note([old]), *answer, recent]
    assert (selection.removed, selection.before_tokens) == (1, size(entries))
    assert selection.after_tokens == size(list(selection.entries)) <= room
    assert chosen(entries, room - 1) == [note([old, *answer]), recent]  # not a part of a group


def test_results_of_this_turn_go_before_its_question_does() -> None:
    question, first, second = user("question"), said("one " * 3000, "1"), said("two " * 300, "2")
    entries = [user("before"), question, *first, *second]
    room = size([question, *second]) + NOTE_TOKENS
    assert chosen(entries, room, 1 + len([*first, *second])) == [
        note([entries[0], *first]),
        question,
        *second,
    ]


def test_the_newest_step_stays_though_its_result_is_longer_than_the_room() -> None:
    before, question, old = [user("before " * 900), *said("yes")], user("read it"), said("a" * 900, "1")
    step = said("line " * 10_000, "2")
    asks, result = HistoryEntry(role=Role.ASSISTANT, text="", calls=step[0].calls), step[1]
    entries = [*before, question, *old, asks, result]
    told, *kept = chosen(entries, 3000, 5)
    assert (told.role, told.covers) == (Role.NOTE, 4)
    assert kept[:2] == [question, asks]
    assert "[Cut here: " in kept[2].text
    assert 2700 < size([told, *kept]) <= 3000


def test_a_short_result_stays_where_only_a_note_has_to_give_way() -> None:
    before, question, step = [user("old " * 900)], user("question"), said("20 bytes of a result", "1")
    entries = [*before, question, *step]
    assert chosen(entries, size([question, *step]), 3) == [question, *step]
    told, *kept = chosen(entries, size([question, *step]) + 100, 3)
    assert (told.role, kept) == (Role.NOTE, [question, *step])


def test_what_was_said_into_the_turn_stays_with_its_question_and_its_step() -> None:
    question, step, more = user("question"), said("one " * 3000, "1"), user("and this")
    step[0] = step[0].model_copy(update={"text": ""})
    kept = chosen([user("old"), question, *step, more], 1500, 4)
    assert [entry.text[:8] for entry in kept[-4:]] == ["question", "", "one one ", "and this"]


def test_a_step_that_does_not_fit_ends_the_turn_with_what_to_do() -> None:
    entries = [user("write it"), *said("x" * 9000, "1")]
    with pytest.raises(AgentError, match="does not fit what the model reads at once") as error:
        chosen(entries, 2000, 3)
    assert error.value.code == "context_limit"


def test_a_question_that_fits_alone_is_asked_with_as_much_of_a_note_as_there_is_room_for() -> None:
    entries = [user("old " * 3000), *said("x" * 9000), user("new " * 3000)]
    alone = size(entries[-1:])
    assert chosen(entries, alone) == entries[-1:]
    told, question = chosen(entries, alone + 80)
    assert (told.role, told.covers, question) == (Role.NOTE, 2, entries[-1])
    with pytest.raises(AgentError) as error:
        chosen(entries, alone - 1)
    assert error.value.code == "context_limit"


def test_a_note_of_before_is_taken_into_the_new_one() -> None:
    old = note([user("first")])
    assert old is not None
    entries = [old, user("second " * 4000), user("third")]
    told = chosen(entries, NOTE_TOKENS + 200)[0]
    assert told.covers == 2
    assert "user: first" in told.text
    selection = select(entries[:1] + entries[2:], [900, 10], 100, 1)  # only the note itself is too long
    assert (selection.removed, selection.entries[-1]) == (0, entries[2])


def test_a_result_whose_call_is_not_there_never_begins_what_is_chosen() -> None:
    entries = [said("x" * 9000, "1")[1], *said("y" * 900), user("now")]
    assert chosen(entries, size(entries) - 1)[1:] == entries[1:]


groups = st.one_of(
    st.text(max_size=3000).map(lambda text: [user(text)]),
    st.builds(lambda text, calls: said(text, *"abc"[:calls]), st.text(max_size=3000), st.integers(0, 3)),
)


@given(st.lists(groups, max_size=12), st.text(max_size=300), st.integers(0, 6000))
def test_whatever_is_chosen_fits_in_order_and_whole(
    before: list[list[HistoryEntry]], question: str, room: int
) -> None:
    entries = [entry for group in before for entry in group] + [user(question)]
    try:
        selection = select(entries, [*map(entry_tokens, entries)], room, 1)
    except AgentError:
        assert entry_tokens(entries[-1]) > room
        return
    kept = list(selection.entries)
    assert size(kept) == selection.after_tokens <= room
    own = [entry for entry in kept if entry.role is not Role.NOTE]
    assert own == entries[len(entries) - len(own) :]
    assert not own or own[0].role is not Role.TOOL
    assert selection.removed == len(entries) - len(own)
    assert sum(entry.covers for entry in kept) in (0, selection.removed)
