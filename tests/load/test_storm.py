"""R9 in small, and that a breach is noticed. ``make load`` has a thousand accounts."""

import random
from dataclasses import replace

import pytest

from bridge.channel.testing.clock import FakeClock
from tests.load.storm import Platform, Sender, Stormed, receiving, sending, storm

GOOD = Stormed(1, 1000, 0, 70.0, 20.0, 60, 50, 0, 12_000)


async def test_after_an_outage_accounts_that_receive_are_all_back_in_time() -> None:
    seen = await storm(receiving, 1, accounts=60, capacity=3)
    assert (seen.left, seen.undercut) == (0, 0)
    assert seen.seconds <= 3.5 * seen.least_seconds


async def test_after_an_outage_all_that_waited_is_sent_and_no_retry_after_undercut() -> None:
    async with sending() as run:
        seen = await storm(run, 2, accounts=20, capacity=1)
    assert (seen.left, seen.undercut) == (0, 0)
    assert seen.seconds <= 4.5 * seen.least_seconds  # so few come by chance, not at their mean


async def hurried(platform: Platform, clock: FakeClock, rng: random.Random, name: str) -> None:
    """A client that comes back after half of what it was told, as all others of its kind do."""
    sender = Sender(name, platform)
    while True:
        try:
            await sender.send(None)  # type: ignore[arg-type]  # it is not looked at
            return
        except Exception as error:  # noqa: BLE001 - the platform's, whichever
            await clock.sleep(getattr(error, "retry_after_seconds", 0.0) / 2 or 10.0)


async def test_a_client_that_hurries_is_caught() -> None:
    seen = await storm(hurried, 3, accounts=40, capacity=2)
    assert seen.undercut > 0
    assert any("before the time" in breach for breach in seen.breaches)


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (GOOD, []),
        (replace(GOOD, left=3), ["3 accounts never came through"]),
        (replace(GOOD, seconds=71.0), ["it took 71 s, over 3.5 times 20 s"]),
        (replace(GOOD, peak=61), ["61 came in one second, over 1.2 times 50"]),
        (replace(GOOD, undercut=1), ["1 came before the time that they were told"]),
    ],
)
def test_each_breach_is_told(seen: Stormed, told: list[str]) -> None:
    assert seen.breaches == told
    assert "seed 1" in str(seen)
