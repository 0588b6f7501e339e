"""Results that are more than the model reads: cut to equal shares, and said to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.contract import AgentError, HistoryEntry, Role
from bridge.agents.estimate import entry_tokens, tokens
from bridge.sessions.results import LEAST_BYTES, _share, fitted

ASKS = HistoryEntry(role=Role.ASSISTANT, text="I look")


def step(*texts: str) -> list[HistoryEntry]:
    return [ASKS, *(HistoryEntry(role=Role.TOOL, text=text, name="look") for text in texts)]


def fit(entries: list[HistoryEntry], room: int, spare: int = 0) -> list[HistoryEntry]:
    found = fitted(entries, [*map(entry_tokens, entries)], room, spare)
    assert sum(map(entry_tokens, found)) <= room
    return found


def test_what_fits_is_left_whole_with_nothing_to_spare() -> None:
    entries = step("x" * 3000, "y")
    assert fit(entries, sum(map(entry_tokens, entries)), spare=100) == entries


def test_a_result_that_does_not_fit_says_how_much_of_it_is_left_out() -> None:
    asks, result = fit(step("beginning " + "好" * 10_000), 1000)
    kept, mark = result.text.split("\n[Cut here: ")
    assert (asks, kept[:12]) == (ASKS, "beginning 好好")
    assert f"the last {30_010 - len(kept.encode())} of 30010 bytes are left out" in mark
    assert 900 < entry_tokens(asks) + entry_tokens(result) <= 1000
    assert entry_tokens(fit(step("x" * 30_000), 1000, spare=300)[1]) < 700


def test_several_results_share_the_room_and_what_short_ones_leave() -> None:
    entries = step("a" * 90_000, "short", "b" * 60_000)
    _, first, short, second = fit(entries, 2000)
    assert short == entries[2]
    assert abs(len(first.text) - len(second.text)) < 4
    assert entry_tokens(first) > 950


@pytest.mark.parametrize(
    ("entries", "room"),
    [
        (step("x" * 9000), tokens(6) + tokens(LEAST_BYTES)),  # the tool's name is not in it
        (step("x" * 9000), 0),
        (step("x" * 9000, *["a"] * 40), 200),
        ([ASKS], 5),
    ],
)
def test_where_too_little_would_be_left_the_turn_ends_with_what_to_do(
    entries: list[HistoryEntry], room: int
) -> None:
    with pytest.raises(AgentError, match=r"result of a tool does not fit .* \(context_tokens") as error:
        fit(entries, room)
    assert error.value.code == "context_limit"


@given(st.lists(st.text(max_size=4000), min_size=1, max_size=6), st.integers(0, 5000), st.integers(0, 300))
def test_whatever_is_cut_fits_and_keeps_its_beginning(texts: list[str], room: int, spare: int) -> None:
    entries = step(*texts)
    try:
        found = fit(entries, room, spare)
    except AgentError:
        assert sum(map(entry_tokens, entries)) > room
        return
    assert [one.name for one in found] == [one.name for one in entries]
    for before, after in zip(entries, found, strict=True):
        kept, _, mark = after.text.rpartition("\n[Cut here: ")
        assert after == before or (mark and before.text.startswith(kept))


def test_where_all_are_short_each_may_have_what_the_others_leave() -> None:
    assert _share([1, 2], 100) == 99
