"""Every rule is seen to fail: each on a server that was broken so that it must."""

import asyncio

import pytest

from tests.conformance.running import Word, judge
from tests.conformance.server import ours
from tests.conformance.suite import RULES, chosen
from tests.conformance.test_rules import marked
from tests.conformance.variants import load

PATIENCE_SECONDS = 0.12  # what a broken server does not say, it never says

PAIRS = [marked(one, one.id, name) for one in chosen() for name in one.broken_by]


def test_every_rule_has_a_variant_that_breaks_it() -> None:
    lacking = {one.id: set(one.broken_by) - load().keys() for one in chosen()}
    assert {key: value for key, value in lacking.items() if value} == {}
    assert [one.id for one in chosen() if not one.broken_by] == []


def test_every_variant_breaks_some_rule() -> None:
    assert load().keys() - {name for one in RULES.values() for name in one.broken_by} == set()


@pytest.mark.parametrize(("name", "variant"), PAIRS)
async def test_a_rule_is_reported_as_broken_where_it_is(name: str, variant: str) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # a broken server may do anything
    rule = RULES[name]
    with load()[variant]():
        async with ours(rule, PATIENCE_SECONDS) as target:
            outcome = await judge(rule, target)
    assert outcome.word is Word.BROKEN, f"{name} did not notice {variant}"
