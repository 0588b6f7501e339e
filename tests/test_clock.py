"""The system's time, and instants as numbers."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.clock import Clock, SystemClock, from_unix_ms, unix_ms, unix_seconds

INSTANT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def test_now_is_aware_and_in_utc() -> None:
    clock: Clock = SystemClock()
    assert clock.now().utcoffset() == timedelta(0)
    assert abs(clock.now().timestamp() - time.time()) < 5  # noqa: TID251 - what is compared with


def test_waits_are_measured_by_what_never_goes_back() -> None:
    clock = SystemClock()
    first = clock.monotonic()
    assert first <= clock.monotonic() <= time.monotonic()


@pytest.mark.parametrize("seconds", [0.0, -5.0, 0.001])
async def test_a_sleep_yields_and_one_of_no_length_ends_at_once(seconds: float) -> None:
    others: list[str] = []
    asyncio.get_running_loop().call_soon(others.append, "ran")
    await SystemClock().sleep(seconds)
    assert others == ["ran"]


def test_an_instant_is_counted_in_whole_seconds_and_milliseconds() -> None:
    assert unix_seconds(INSTANT) == 1_767_323_045
    assert unix_ms(INSTANT) == 1_767_323_045_678


@given(st.integers(0, 253_402_300_799_000))
def test_milliseconds_become_the_instant_they_came_from(ms: int) -> None:
    assert abs(unix_ms(from_unix_ms(ms)) - ms) <= 1
    assert from_unix_ms(ms).utcoffset() == timedelta(0)


@pytest.mark.parametrize("ms", [10**15, -(10**15), 10**30])
def test_a_time_outside_the_calendar_is_told_as_one(ms: int) -> None:
    with pytest.raises(ValueError):
        from_unix_ms(ms)
