"""What is counted, and that accounts which are gone are forgotten."""

import asyncio

import pytest

from bridge.channel.testing.clock import FakeClock, until
from bridge.ids import AccountId
from bridge.meter import LONG, SHORT, AccountMeter, Histogram, Meter, StoreMeter, Try, TurnEnd


def test_seconds_are_sorted_under_the_bound_that_they_do_not_exceed() -> None:
    seen = Histogram((1.0, 5.0))
    for seconds in (0.0, 1.0, 1.1, 5.0, 99.0):
        seen.add(seconds)
    assert seen.counts == [2, 2, 1]
    assert seen.total == pytest.approx(106.1)


@pytest.mark.parametrize("bounds", [SHORT, LONG])
def test_bounds_grow(bounds: tuple[float, ...]) -> None:
    assert list(bounds) == sorted(set(bounds))


def test_requests_are_counted_by_the_class_of_their_answers() -> None:
    meter = AccountMeter()
    for status, size in ((200, 10), (204, 1), (403, 5), (0, 7)):
        meter.requested(status, size)
    assert meter.requests == {"2xx": 2, "4xx": 1, "none": 1}
    assert meter.received_bytes == 23


def test_claims_are_counted_by_what_became_of_each_item() -> None:
    meter = AccountMeter()
    meter.claimed(["accepted", "duplicate", "accepted"], 0.004)
    assert meter.messages == {"accepted": 2, "duplicate": 1}
    assert sum(meter.claims.counts) == 1


def test_a_delivery_is_never_counted_as_before_its_reply() -> None:
    meter = AccountMeter()
    meter.delivered(-3.0, 12)
    assert meter.deliveries.counts[0] == 1
    assert (meter.deliveries.total, meter.sent_bytes) == (0.0, 12)


def test_what_is_given_up_is_counted_by_its_state_and_whether_it_is_held() -> None:
    meter = AccountMeter()
    meter.gave_up("expired", 3, is_held=True)
    meter.gave_up("refused")
    assert meter.given_up == {"expired": 3, "refused": 1}
    assert meter.held == 1


async def test_a_commit_is_measured_also_when_it_fails() -> None:
    clock = FakeClock()
    meter = StoreMeter(clock)
    with pytest.raises(OSError), meter.commit(3):
        await clock.advance(0.02)
        raise OSError
    assert meter.steps == 3
    assert meter.commits.total == pytest.approx(0.02)


def test_an_account_keeps_its_counts_while_the_settings_name_it() -> None:
    meter = Meter(FakeClock())
    here, gone = AccountId("pigeon:main"), AccountId("pigeon:gone")
    meter.of(here).tries[Try.SENT] += 1
    meter.of(gone)
    meter.keep([here, AccountId("pigeon:new")])
    assert list(meter.accounts) == [here]
    assert meter.of(here).tries[Try.SENT] == 1


class LateClock(FakeClock):
    """Everything that waits wakes up 0.3 seconds late."""

    async def sleep(self, seconds: float) -> None:
        await self.advance(seconds + 0.3)


async def test_the_loop_s_lag_is_how_late_a_second_ends() -> None:
    meter = Meter(LateClock())
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(meter.watch_loop())
        await until(lambda: sum(meter.loop_lag.counts) == 2)
        watching.cancel()
    assert meter.loop_lag.total == pytest.approx(0.6)


def test_a_turn_is_counted_under_how_it_ended() -> None:
    meter = AccountMeter()
    for seconds in (1.0, 2.0):
        meter.turned(TurnEnd.COMPLETED, seconds)
    assert {end: seen.total for end, seen in meter.turns.items()} == {TurnEnd.COMPLETED: 3.0}
