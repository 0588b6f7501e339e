"""Our own session server keeps every rule."""

import asyncio
from typing import Any

import pytest

from tests.conformance.running import Outcome, Word, judge
from tests.conformance.server import ours
from tests.conformance.suite import RULES, Rule, chosen


def marked(one: Rule, *values: str) -> Any:
    return pytest.param(*values, marks=[pytest.mark.slow] if one.slow else [], id="-".join(values))


NAMES = [marked(one, one.id) for one in chosen()]


@pytest.mark.parametrize("name", NAMES)
async def test_our_server_keeps_the_rule(name: str) -> None:
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    async with ours(RULES[name]) as target:
        outcome = await judge(RULES[name], target)
    assert outcome == Outcome(Word.HELD)
    assert unheard == [], "an error that nobody looked at"


def test_every_rule_says_in_a_sentence_what_it_is_about() -> None:
    for one in chosen():
        assert one.text.endswith("."), one.id
        assert 20 < len(one.text) < 200, one.id
