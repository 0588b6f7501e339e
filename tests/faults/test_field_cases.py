"""What broke comparable systems' connections in the field, on a real adapter; the numbers name the cases."""

import asyncio
from collections import Counter

import pytest

from bridge.health import Health, Snapshot, State
from bridge.ids import AccountId
from bridge.supervisor import STOP_SECONDS, Plan
from tests.faults.seat import SEEN_SECONDS, Seat
from tests.faults.test_cases import POLL_SECONDS, becomes, seated
from tests.faults.wire import Trouble

CONNECTIONS = 2  # to poll on, and to send on


def test_case_5_a_hint_when_to_come_again_is_a_wait_and_never_the_last_try() -> None:
    async def test(one: Seat) -> None:
        await one.wire.begin(Trouble.BUSY)  # it names a time to come again at, once
        assert await becomes(one, State.DISCONNECTED, 60.0)
        await one.wire.end()
        await one.wire.begin(Trouble.REFUSED)  # and then is not there
        await asyncio.sleep(600)
        assert one.state is State.DISCONNECTED
        await one.wire.end()
        assert await becomes(one, State.CONNECTED, 65.0 + POLL_SECONDS)
        await one.say("after")
        await asyncio.sleep(60)
        assert one.unanswered() == []

    seated("plainline", test)


def test_cases_6_and_38_a_connection_that_falls_silent_is_told_and_what_was_missed_is_caught_up() -> None:
    async def test(one: Seat) -> None:
        await one.wire.begin(Trouble.STALLED)  # no end of a connection is told, for three hours
        lost_at = one.clock.monotonic()
        assert await becomes(one, State.DISCONNECTED, SEEN_SECONDS["plainline"])
        for n in range(3):
            await one.say(f"missed {n}")
            await asyncio.sleep(3600 - (one.clock.monotonic() - lost_at) % 3600)
            assert one.state is State.DISCONNECTED
        await one.wire.end()
        assert await becomes(one, State.CONNECTED, 65.0 + SEEN_SECONDS["plainline"] + POLL_SECONDS)
        await asyncio.sleep(60)
        answers = Counter(one.answers())
        assert [answers[f"missed {n}"] for n in range(3)] == [1, 1, 1]

    seated("plainline", test)


def test_case_49_no_number_of_reconnects_leaves_a_connection_behind() -> None:
    async def test(one: Seat) -> None:
        most = 0

        async def count() -> None:
            nonlocal most
            while True:
                most = max(most, len(one.wire._open))
                await asyncio.sleep(0.5)

        async with asyncio.TaskGroup() as tasks:
            counting = tasks.create_task(count())
            for trouble in [Trouble.AWAY] * 20 + [Trouble.HALF_OPEN, Trouble.STALLED] * 3:
                await one.wire.begin(trouble)
                await asyncio.sleep(40)
                await one.wire.end()
                await asyncio.sleep(200)
            counting.cancel()
        assert most <= CONNECTIONS
        assert await becomes(one, State.CONNECTED, 120.0)
        assert len(one.wire._open) <= CONNECTIONS

    seated("plainline", test)


@pytest.mark.parametrize("channel", ["plainline", "feishu"])
def test_case_8_a_request_that_is_never_answered_fails_is_repeated_and_holds_up_no_stop(channel: str) -> None:
    async def test(one: Seat) -> None:
        await one.wire.begin(Trouble.STALLED)
        assert await becomes(one, State.DISCONNECTED, SEEN_SECONDS[channel])
        await asyncio.sleep(300)
        assert len(one.wire._dead) <= CONNECTIONS  # it hung up on each before it tried the next
        asked_at = one.clock.monotonic()
        await one.supervisor.reconcile([])
        assert one.clock.monotonic() - asked_at <= STOP_SECONDS
        assert one.supervisor.snapshots() == []

    seated(channel, test)


def test_case_53_an_account_that_falls_silent_is_no_other_s_trouble() -> None:
    async def test(one: Seat) -> None:
        turn = Turning()
        first = Snapshot(AccountId("other:b"), "other", "b", State.STARTING, one.clock.now())
        plans = [Plan(one.snapshot, 1, lambda: one.served), Plan(first, 1, lambda: turn)]
        await one.supervisor.reconcile(plans)
        await one.wire.begin(Trouble.HALF_OPEN)
        await asyncio.sleep(3600)
        assert turn.runs == 1
        states = {snapshot.id: snapshot.state for snapshot in one.supervisor.snapshots()}
        assert states == {"plainline:main": State.CONNECTED, "other:b": State.CONNECTED}

    seated("plainline", test)


class Turning:
    """An account in the midst of a long turn."""

    name = "other:b"

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, health: Health) -> None:
        self.runs += 1
        health.contact()
        await asyncio.Event().wait()
