"""Interleavings drawn by seeds: nothing that was accepted is lost, doubled or out of order."""

from typing import Any

import pytest

from bridge.store.contract import Start, Step, Store
from tests.faults.weave import Wrap, weave
from tests.store.around import Around

SEEDS, STEP = 500, 25


@pytest.mark.parametrize("seed", range(8))
def test_what_is_accepted_is_answered_once_and_in_order_however_tasks_take_turns(seed: int) -> None:
    assert weave(seed).breaches == [], f"replay: python -m tests.faults.main --interleaving {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, SEEDS, STEP))
def test_500_seeds(begin: int) -> None:
    wrong = {seed: found for seed in range(begin, begin + STEP) if (found := weave(seed).breaches)}
    assert wrong == {}, "replay: python -m tests.faults.main --interleaving SEED"


def test_a_seed_can_be_replayed_and_another_is_another_order() -> None:
    first, again, other = weave(3), weave(3), weave(4)
    assert first.steps == again.steps
    assert (first.faults, first.restarts) == (again.faults, again.restarts)
    assert other.steps != first.steps
    assert first.faults > 5


class Broken(Around):
    """A store that does as if for one kind of step."""

    def __init__(self, store: Store, kind: type[Any]) -> None:
        super().__init__(store)
        self._kind = kind

    async def do(self, step: Step[Any]) -> Any:
        return True if isinstance(step, self._kind) else await self._store.do(step)


def breaches(wrap: Wrap) -> str:
    return str([weave(seed, wrap).breaches for seed in range(6)])


def test_turns_that_begin_without_a_record_are_noticed() -> None:
    assert "2 turns" in breaches(lambda store: Broken(store, Start))
