import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.testing.clock import FakeClock
from bridge.errors import (
    BridgeError,
    ChannelError,
    ConfigError,
    CredentialsError,
    OutcomeUnknownError,
    StoreError,
    UnreachableError,
)
from bridge.retry import (
    DAY_SECONDS,
    DOUBLING,
    RECEIVING,
    STORING,
    Backoff,
    Breaker,
    Policy,
    full_jitter,
    retrying,
)


class Waits:
    """A clock on which every wait is over at once, and noted."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.waits)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


class Upper:
    """Randomness at its upper bound."""

    def uniform(self, a: float, b: float, /) -> float:
        return b


class Lower:
    def uniform(self, a: float, b: float, /) -> float:
        return a


class Script:
    """A call that raises each error in turn, then returns how often it was called."""

    def __init__(self, *errors: Exception) -> None:
        self.calls = 0
        self._errors: Iterator[Exception] = iter(errors)

    async def __call__(self) -> int:
        self.calls += 1
        await asyncio.sleep(0)
        for error in self._errors:
            raise error
        return self.calls


@given(st.integers(1, 50), st.lists(st.floats(0.001, 1e6), min_size=1, max_size=9), st.integers())
def test_a_wait_is_between_nothing_and_the_bound_of_its_attempt(
    attempt: int, bounds: list[float], seed: int
) -> None:
    bound = bounds[attempt - 1] if attempt <= len(bounds) else bounds[-1]
    assert 0.0 <= full_jitter(attempt, bounds, random.Random(seed)) <= bound


def test_waits_use_the_whole_span_below_the_bound() -> None:
    rng = random.Random(1)
    waits = [full_jitter(3, DOUBLING, rng) for _ in range(4000)]
    assert abs(sum(waits) / len(waits) - 2.0) < 0.1
    assert min(waits) < 0.1
    assert max(waits) > 3.9


@pytest.mark.parametrize(("attempt", "bounds"), [(0, DOUBLING), (1, ())])
def test_no_attempt_or_no_bound_is_a_bug(attempt: int, bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="from 1"):
        full_jitter(attempt, bounds, Upper())


async def test_failures_wait_up_to_1_2_4_and_so_on_to_60_seconds_until_a_reset() -> None:
    clock = Waits()
    backoff = Backoff(clock, Upper(), floor_seconds=1.0)
    for _ in range(8):
        await backoff.wait()
    assert list(accumulate(clock.waits)) == [1, 3, 7, 15, 31, 63, 123, 183]
    assert backoff.failures == 8
    backoff.reset()
    assert (backoff.failures, backoff.next_seconds()) == (0, 1.0)


def test_no_wait_is_under_the_floor_nor_under_what_the_platform_asked_for() -> None:
    assert Backoff(Waits(), Lower()).next_seconds() == 0.0
    assert Backoff(Waits(), Lower(), floor_seconds=1.0).next_seconds() == 1.0
    assert Backoff(Waits(), Lower()).next_seconds(30.0) == 30.0
    assert Backoff(Waits(), Upper()).next_seconds(30.0) == 31.0
    assert Backoff(Waits(), Lower()).next_seconds(10 * DAY_SECONDS) == DAY_SECONDS
    assert Backoff(Waits(), Lower()).next_seconds(-5.0) == 0.0


def ignored(error: BridgeError) -> None:
    """For tests that look at something else."""


async def test_what_works_is_called_once_and_without_a_wait() -> None:
    clock = Waits()
    assert await retrying(Script(), RECEIVING, clock, Upper(), ignored) == 1
    assert clock.waits == []


async def test_each_failure_is_heard_before_its_wait() -> None:
    heard: list[str] = []
    call = Script(UnreachableError("first"), ChannelError("second"))
    assert await retrying(call, RECEIVING, Waits(), Upper(), lambda error: heard.append(str(error))) == 3
    assert heard == ["first", "second"]


async def test_a_store_that_takes_nothing_is_asked_again_and_a_platform_then_is_not() -> None:
    clock = Waits()
    assert (
        await retrying(Script(StoreError("full"), StoreError("full")), STORING, clock, Upper(), ignored) == 3
    )
    assert clock.waits == [1.0, 2.0]
    with pytest.raises(ChannelError):
        await retrying(Script(ChannelError("odd")), STORING, clock, Upper(), ignored)


async def test_receiving_goes_on_for_as_long_as_the_platform_gives_no_usable_answer() -> None:
    clock = Waits()
    errors = [UnreachableError("busy", 30.0), OutcomeUnknownError("cut off"), *[ChannelError("odd")] * 20]
    assert await retrying(Script(*errors), RECEIVING, clock, Upper(), ignored) == 23
    assert clock.waits[:3] == [31.0, 2.0, 4.0]
    assert clock.waits[-1] == 60.0


@pytest.mark.parametrize("error", [CredentialsError("no"), ConfigError("no"), ValueError("a bug")])
@pytest.mark.parametrize("policy", [RECEIVING, STORING, Policy(repeats=CredentialsError)])
async def test_what_a_person_must_mend_is_never_repeated(error: Exception, policy: Policy) -> None:
    call = Script(error)
    with pytest.raises(type(error)):
        await retrying(call, policy, Waits(), Upper(), ignored)
    assert call.calls == 1


async def test_cancelling_ends_a_wait_at_once() -> None:
    class Forever(Waits):
        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    call = Script(UnreachableError("down"))
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(retrying(call, RECEIVING, Forever(), Upper(), ignored))
        for _ in range(5):
            await asyncio.sleep(0)
        waiting.cancel()
    assert waiting.cancelled()
    assert call.calls == 1


async def test_a_breaker_trips_at_its_limit_within_its_time_and_begins_anew() -> None:
    clock = FakeClock()
    breaker = Breaker(clock, limit=3, seconds=10)
    assert [breaker.trips() for _ in range(3)] == [False, False, True]
    assert [breaker.trips() for _ in range(3)] == [False, False, True]
    breaker.trips()
    await clock.advance(11)
    assert [breaker.trips() for _ in range(3)] == [False, False, True]
    breaker.trips()
    breaker.trips()
    breaker.reset()
    assert not breaker.trips()
