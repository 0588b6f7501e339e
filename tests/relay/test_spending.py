"""What is used of tokens and money in any 24 hours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import ChannelSettings
from bridge.channel.testing.clock import FakeClock
from bridge.relay import spending
from bridge.relay.spending import DAY_SECONDS, Caps, Spending, caps_of, limits_a_day
from bridge.store.contract import (
    Used,
)
from bridge.store.usage_steps import HourUsage

HOUR_MS = 3_600_000


def settings(**keys: float) -> ChannelSettings:
    return ChannelSettings.model_validate(keys)


def test_dollars_become_whole_millionths() -> None:
    each, whole = caps_of(settings(cost_per_day=0.1, account_cost_per_day=29.99, account_tokens_per_day=5))
    assert (each, whole) == (Caps(0, 100_000), Caps(5, 29_990_000))


@pytest.mark.parametrize("key", ["turns_per_day", "tokens_per_day", "cost_per_day", "account_tokens_per_day"])
def test_any_limit_of_a_day_has_to_be_remembered(key: str) -> None:
    assert limits_a_day(settings(**{key: 1}))
    assert not limits_a_day(settings(messages_per_minute=1))


async def test_an_hour_goes_as_a_whole_24_hours_after_it_began() -> None:
    clock = FakeClock()
    own = Spending(Caps(tokens=10), Caps(), clock)
    own.add("a", Used(input_tokens=6))
    await clock.advance(1800)
    own.add("a", Used(input_tokens=3))
    await clock.advance(1800)
    own.add("a", Used(output_tokens=1))
    assert own.over("a") == "tokens_per_day"
    await clock.advance(DAY_SECONDS - 3600)
    assert own.over("a") == ""
    own.add("a", Used(output_tokens=8))
    assert own.over("a") == ""
    own.add("a", Used(output_tokens=1))
    assert own.over("a") == "tokens_per_day"


def test_without_limits_nothing_is_kept() -> None:
    own = Spending(Caps(), Caps(), FakeClock())
    own.add("a", Used(input_tokens=10**9, cost_micros=10**9))
    assert not own.is_limited
    assert (own.over("a"), own.account_over) == ("", "")


def test_the_account_s_limit_stops_whoever_has_used_nothing() -> None:
    own = Spending(Caps(micros=5), Caps(tokens=3), FakeClock())
    own.add("a", Used(cost_micros=5))
    assert (own.over("a"), own.over("b"), own.account_over) == ("cost_per_day", "", "")
    own.add("", Used(input_tokens=3))
    assert (own.over("a"), own.over("b")) == ("account_tokens_per_day",) * 2


def test_senders_that_never_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "SENDERS_KEPT", 2)
    own = Spending(Caps(tokens=1), Caps(), FakeClock())
    for sender in "abc":
        own.add(sender, Used(input_tokens=1))
    assert [own.over(sender) for sender in "abc"] == ["", "tokens_per_day", "tokens_per_day"]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 50)), max_size=30))
def test_what_is_remembered_counts_as_what_was_there_did(turns: list[tuple[int, int]]) -> None:
    now_ms = 50 * HOUR_MS
    hours = [HourUsage("a", hour * HOUR_MS, tokens, 0) for hour, tokens in sorted(turns)]
    own = Spending(Caps(tokens=100), Caps(), FakeClock())
    own.remember([one for one in hours if one.hour_ms >= now_ms - 24 * HOUR_MS], now_ms)
    sum_of_day = sum(one.tokens for one in hours if one.hour_ms > now_ms - 24 * HOUR_MS)
    assert (own.over("a") == "tokens_per_day") == (sum_of_day >= 100)
