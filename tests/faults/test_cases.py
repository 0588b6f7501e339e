"""Faults by name: half-open connections, pings without events, and a clock that jumps."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from random import Random

import pytest

from bridge.channel.testing.kit import KitMessage
from bridge.channel.transport import http_session
from bridge.health import State
from bridge.relay.contact import PROBE_SECONDS, PROBE_TIMEOUT_SECONDS
from bridge.relay.silence import SILENT
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from tests.faults.seat import SEEN_SECONDS, Seat, seat
from tests.faults.wire import Trouble
from tests.relay.harness import homes
from tests.relay.scripted import scripted
from tests.virtual import VirtualLoop, virtually

POLL_SECONDS = 25.0  # until a poll that brings nothing is answered, which is its proof of contact


def seated(channel: str, test: Callable[[Seat], Awaitable[None]], **settings: object) -> None:
    """Run ``test`` with a connected account."""

    async def work(loop: VirtualLoop) -> None:
        async with AsyncExitStack() as stack:
            home = await stack.enter_async_context(homes())
            store = await stack.enter_async_context(open_store(home.db, workers=InlineWorker))
            await stack.enter_async_context(scripted(socket=home.socket))
            http = await stack.enter_async_context(http_session())
            made = seat(channel, home, store, http, loop, Random(1), **settings)
            one = await stack.enter_async_context(made)
            loop.lookup = one.wire.look_up
            assert await becomes(one, State.CONNECTED, 5.0 + POLL_SECONDS)
            await test(one)

    virtually(work)


async def becomes(one: Seat, state: State, within_seconds: float) -> bool:
    until = one.clock.monotonic() + within_seconds
    while one.state is not state and one.clock.monotonic() < until:
        await asyncio.sleep(0.01)
    return one.state is state


@pytest.mark.parametrize(
    ("channel", "before", "proof_seconds"),
    [
        ("feishu", ["before"], 0.0),  # so that what is open does for the sign of typing and for the reply
        ("plainline", [], POLL_SECONDS),
    ],
)
def test_r7_a_half_open_connection_is_seen_and_replaced_within_five_seconds(
    channel: str, before: list[str], proof_seconds: float
) -> None:
    async def test(one: Seat) -> None:
        for text in before:
            await one.say(text)
            await asyncio.sleep(5)
        await one.wire.begin(Trouble.HALF_OPEN)
        await one.say("during")
        assert await becomes(one, State.DISCONNECTED, SEEN_SECONDS[channel])
        assert await becomes(one, State.CONNECTED, 5.0 + proof_seconds)
        await one.say("after")
        await asyncio.sleep(120)
        assert one.unanswered() == []

    seated(channel, test)


def test_r7_a_network_that_falls_silent_is_seen_and_nothing_is_lost() -> None:
    async def test(one: Seat) -> None:
        await one.wire.begin(Trouble.STALLED)
        await one.say("during")
        assert await becomes(one, State.DISCONNECTED, SEEN_SECONDS["feishu"])
        await asyncio.sleep(3000)
        assert one.state is State.DISCONNECTED
        await one.wire.end()
        assert await becomes(one, State.CONNECTED, 95.0)
        await asyncio.sleep(120)
        assert one.unanswered() == []

    seated("feishu", test)


def test_r8_where_a_probe_exists_a_loss_is_flagged_within_five_minutes() -> None:
    assert PROBE_SECONDS + PROBE_TIMEOUT_SECONDS <= 300

    async def test(one: Seat) -> None:
        await asyncio.sleep(1)  # the probe has just succeeded: the next one is as far away as can be
        await one.wire.begin(Trouble.AWAY)
        assert await becomes(one, State.DISCONNECTED, 300.0)

    seated("feishu", test)


def test_r8_an_account_whose_probes_pass_and_whose_events_do_not_come_is_flagged() -> None:
    async def test(one: Seat) -> None:
        await asyncio.sleep(601)
        assert (one.state, one.snapshot.reason) == (State.DISCONNECTED, SILENT)
        await one.say("at last")
        assert one.state is State.CONNECTED

    seated("feishu", test, expect_every_seconds=600)


@pytest.mark.parametrize("jump", [-86_400.0, -3600.0, 3600.0, 86_400.0])
def test_r6_a_clock_that_jumps_ends_no_wait_and_no_contact(jump: float) -> None:
    async def test(one: Seat) -> None:
        one.clock.jump(jump)
        await one.say("during")
        await asyncio.sleep(30)
        assert (one.state, one.unanswered()) == (State.CONNECTED, [])
        assert len([path for path in one.kit.fake.requests if path.endswith("/bot/v3/info")]) == 1
        await asyncio.sleep(PROBE_SECONDS)
        assert one.snapshot.clock_skew_seconds == pytest.approx(-jump, abs=2)

    seated("feishu", test)


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_r6_a_clock_that_jumps_shortens_and_lengthens_no_back_off(jump: float) -> None:
    async def test(one: Seat) -> None:
        await one.wire.begin(Trouble.UNAUTHORIZED)
        assert await becomes(one, State.FAILED, 60.0)
        one.clock.jump(jump)
        await one.wire.end()
        assert not await becomes(one, State.CONNECTED, 50.0)
        assert await becomes(one, State.CONNECTED, 15.0 + POLL_SECONDS)

    seated("plainline", test)


def test_case_3_a_fresh_message_is_answered_on_a_host_whose_clock_runs_fast() -> None:
    async def test(one: Seat) -> None:
        one.clock.jump(600)
        await asyncio.sleep(PROBE_SECONDS + 1)
        message = KitMessage("fresh", one.kit.person(0), one.kit.chat(0))
        assert await one._taken(message)
        await asyncio.sleep(10)
        assert one.answers()["fresh"] == 1

    seated("feishu", test)


@pytest.mark.parametrize(
    "trouble", [Trouble.STALLED, Trouble.HALF_OPEN, Trouble.REFUSED, Trouble.DNS, Trouble.AWAY]
)
def test_r7_a_callback_that_is_lost_is_told_by_the_first_reply_and_back_by_the_next(trouble: Trouble) -> None:
    async def test(one: Seat) -> None:
        await one.say("before")  # so that there is a connection that can fall silent
        await asyncio.sleep(5)
        one.forget_names()
        await one.wire.begin(trouble)
        assert one.state is State.CONNECTED
        await one.say("during")
        assert await becomes(one, State.DISCONNECTED, SEEN_SECONDS["webhook"] + 1.0)
        await one.wire.end()
        await one.say("after")
        assert await becomes(one, State.CONNECTED, 5.0)
        await asyncio.sleep(3600)
        assert one.unanswered() == []

    seated("webhook", test)


def test_a_callback_that_asks_for_a_wait_is_there_and_gets_all_of_it_afterwards() -> None:
    async def test(one: Seat) -> None:
        await one.wire.begin(Trouble.BUSY)
        await one.say("during")
        await asyncio.sleep(120)
        assert (one.state, one.unanswered()) == (State.CONNECTED, ["during"])
        await one.wire.end()
        await asyncio.sleep(3600)
        assert one.unanswered() == []

    seated("webhook", test)


def test_a_callback_that_wants_nothing_any_more_is_failed_and_tried_again_by_itself() -> None:
    async def test(one: Seat) -> None:
        await one.wire.begin(Trouble.GONE)
        await one.say("during")
        assert await becomes(one, State.FAILED, 5.0)
        await one.wire.end()
        assert await becomes(one, State.CONNECTED, 65.0)
        await asyncio.sleep(60)
        assert one.unanswered() == []

    seated("webhook", test)


def test_r6_a_clock_that_jumps_ends_no_callback_for_good() -> None:
    async def test(one: Seat) -> None:
        one.clock.jump(3600)  # what is signed then is too far in the future, on both sides
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(one.say("during"))
            await asyncio.sleep(120)
            assert one.unanswered() == ["during"]
            one.clock.jump(-3600)
        await asyncio.sleep(60)
        assert (one.state, one.unanswered()) == (State.CONNECTED, [])

    seated("webhook", test)
