"""What counts of the figures that agents tell of a turn."""

import pytest

from bridge.store.usage_steps import MOST, NOTHING_USED, Used, bounded


@pytest.mark.parametrize(
    ("figure", "counts"),
    [(None, 0), (0, 0), (7, 7), (MOST, MOST), (MOST + 1, MOST), (2**70, MOST)],
)
def test_a_figure_counts_up_to_a_bound_and_as_nothing_where_none_was_told(
    figure: int | None, counts: int
) -> None:
    assert bounded(figure) == counts


def test_the_tokens_of_a_turn_are_those_it_read_and_those_it_wrote() -> None:
    assert Used(input_tokens=10, output_tokens=5).tokens == 15
    assert Used(output_tokens=5).tokens == 5
    assert Used(input_tokens=2**64, output_tokens=2**64).tokens == 2 * MOST


def test_the_cost_of_a_turn_is_bounded_and_apart_from_its_tokens() -> None:
    assert (Used(cost_micros=7).micros, Used(cost_micros=7).tokens) == (7, 0)
    assert Used(cost_micros=2**70).micros == MOST


def test_a_turn_of_which_nothing_was_told_counts_nothing() -> None:
    assert (NOTHING_USED.tokens, NOTHING_USED.micros) == (0, 0)
