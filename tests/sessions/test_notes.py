from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.contract import HistoryEntry, Role
from bridge.sessions.notes import NOTE_BYTES, messages, note

roles = st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL])
entries = st.lists(st.builds(HistoryEntry, role=roles, text=st.text(max_size=600)), min_size=1, max_size=30)


def said(role: Role, text: str) -> HistoryEntry:
    return HistoryEntry(role=role, text=text)


def test_it_counts_what_it_stands_for_and_quotes_beginnings() -> None:
    told = note([said(Role.USER, "my name\nis Ann"), said(Role.ASSISTANT, ""), said(Role.TOOL, "a secret")])
    assert told is not None
    assert (told.role, told.covers) == (Role.NOTE, 3)
    assert (
        told.text == "3 earlier messages were left out here. The newest of them began:\nuser: my name is Ann"
    )


def test_without_words_to_quote_it_only_counts() -> None:
    told = note([said(Role.TOOL, "x")])
    assert told is not None
    assert told.text == "1 earlier messages were left out here."


def test_the_newest_are_quoted_when_not_all_fit() -> None:
    told = note([said(Role.USER, f"number {n} " + "x" * 300) for n in range(50)])
    assert told is not None
    assert "number 49" in told.text
    assert "number 0 " not in told.text


def test_a_note_among_them_is_taken_over() -> None:
    first = note([said(Role.USER, "one"), said(Role.ASSISTANT, "two")])
    assert first is not None
    second = note([first, said(Role.USER, "three")])
    assert second is not None
    assert second.covers == messages([first, said(Role.USER, "three")]) == 3
    assert second.text.splitlines()[1:] == ["user: one", "assistant: two", "user: three"]


def test_there_is_none_for_nothing_and_none_without_room() -> None:
    assert note([]) is None
    assert note([said(Role.USER, "x")], 20) is None


@given(entries, st.integers(128, 3000))
def test_it_is_bounded_and_always_the_same(left_out: list[HistoryEntry], most_bytes: int) -> None:
    told = note(left_out, most_bytes)
    assert told is not None
    assert told == note(left_out, most_bytes)
    assert len(told.text.encode()) <= min(most_bytes, NOTE_BYTES)
    again = note([told], most_bytes)
    assert again == told
