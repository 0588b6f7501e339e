"""What a turn used, from its last event to the store, the limits and the owner."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.channel.testing.clock import settle, until
from bridge.errors import StoreError
from bridge.store.contract import (
    Notify,
)
from bridge.store.usage_steps import Usage, UsageBy, UsageOf
from tests.relay.harness import OWNER, STRANGER, PushedChannel, desk, homes, message, put_under
from tests.relay.scripted import Frame, Peer

DAY_SECONDS = 86_400
TOLD = (
    "test:a has reached account_tokens_per_day: others are told to come back later, until 24 hours have "
    "passed since the first of it. You go on."
)


async def costly(peer: Peer, start: Frame) -> None:
    """A turn of 7 + 3 tokens and 4 millionths of a dollar; it fails where its prompt says so."""
    request, used = start["request_id"], {"usage": {"input_tokens": 7, "output_tokens": 3}, "cost_micros": 4}
    await peer.turn("turn.started", request)
    if "wait" in start["prompt"]:
        while (await peer.next())["type"] != "turn.cancel":
            pass
        await peer.turn("turn.cancelled", request, **used)
    elif "fail" in start["prompt"]:
        await peer.turn("turn.failed", request, code="provider_error", message="no", **used)
    else:
        await peer.turn("assistant.completed", request, content="done")
        await peer.turn("turn.completed", request, steps=1, **used)


COSTLY: dict[str, Any] = {"turn": costly}


async def senders(store: Any) -> list[tuple[str, int, int]]:
    rows = await store.get(UsageOf(UsageBy.SENDER, 0))
    return [(row.name, row.turns, row.cost_micros) for row in rows]


async def test_turns_that_ended_in_any_way_count_for_who_asked() -> None:
    async with desk(script=COSTLY) as here:
        for text in ("one", "fail"):
            await here.say(text, STRANGER)
        await here.say("two", OWNER)
        await here.answered(3)
        assert await senders(here.store) == [(STRANGER, 2, 8), (OWNER, 1, 4)]
        (agent,) = await here.store.get(UsageOf(UsageBy.AGENT, 0))
        assert agent == Usage("", "echo", 3, 21, 9, 12)
        meter = here.account._setup.meter
        assert (dict(meter.tokens), meter.cost_micros) == ({"input": 21, "output": 9}, 12)


async def test_a_turn_that_was_stopped_counts_though_its_message_was_over() -> None:
    async with desk(script=COSTLY) as here:
        await here.say("wait", STRANGER)
        await until(lambda: bool(here.server.frames("turn.start")))
        await settle()
        await here.say("/stop", STRANGER)
        await until(lambda: here.account._setup.meter.cost_micros == 4)
        assert await senders(here.store) == [(STRANGER, 1, 4)]


async def test_a_sender_who_has_used_up_their_day_is_told_once_also_over_a_restart() -> None:
    settings = {"cost_per_day": 0.000004}
    async with homes() as home:
        async with desk(home=home, script=COSTLY, settings=settings) as here:
            for n in range(3):
                await here.say(f"text {n}", STRANGER)
                await here.answered(min(n + 1, 2))
            texts = await here.answered(2)
            said = "You have used as much of me as one person may in 24 hours. Please come back later."
            assert texts == ["done", said]
            await here.say("other", "u-other")
            assert (await here.answered(3))[-1] == "done"
            clock = here.clock
        channel = PushedChannel()
        async with desk(channel, home=home, clock=clock, script=COSTLY, settings=settings) as here:
            assert (await here.push(message("n1", sender=STRANGER))).body == b"busy"
            assert here.channel.sent == []
            await clock.advance(DAY_SECONDS)
            assert (await here.push(message("n2", sender=STRANGER))).body == b"accepted"


async def test_the_owner_goes_on_and_is_told_once_when_the_account_has_reached_its_limit() -> None:
    settings = {"account_tokens_per_day": 20}
    async with homes() as home:
        async with desk(home=home, script=COSTLY, settings=settings) as here:
            await here.say("one", OWNER)
            await here.answered(1)
            await here.say("two", STRANGER)
            texts = await here.answered(3)
            assert sorted(texts[1:]) == sorted(["done", TOLD])
            await here.say("three", STRANGER)
            assert (await here.answered(4))[-1] == (
                "I have used up what I may use in 24 hours. Please come back later."
            )
            await here.say("four", OWNER)
            assert (await here.answered(5))[-1] == "done"
            clock = here.clock
        channel = PushedChannel()
        async with desk(channel, home=home, clock=clock, script=COSTLY, settings=settings) as here:
            await here.push(message("n1", sender=OWNER))
            assert await here.answered(1) == ["done"]  # told before the restart
            await clock.advance(DAY_SECONDS)
            await here.push(message("n2", sender=OWNER))
            await here.push(message("n3", sender=OWNER))
            assert sorted((await here.answered(4))[1:]) == sorted(["done", "done", TOLD])


async def test_an_owner_whose_chat_is_not_known_is_told_by_the_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with desk(script=COSTLY, settings={"account_tokens_per_day": 1}) as here:
        await here.say("one", STRANGER)
        assert await here.answered(1) == ["done"]
        (chat,) = await here.store.get(UsageOf(UsageBy.ACCOUNT, 0))
        assert chat.turns == 1


async def test_a_store_that_takes_nothing_is_asked_again_with_the_next_turn() -> None:
    async with desk(script=COSTLY, settings={"account_tokens_per_day": 1}, run=False) as here:
        store, refused = here.store, 0

        class Full:
            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            async def do(self, step: Any) -> Any:
                nonlocal refused
                if isinstance(step, Notify) and not refused:
                    refused += 1
                    raise StoreError("full")
                return await store.do(step)

        put_under(here, Full())
        await run_with(here)


async def run_with(here: Any) -> None:
    import asyncio

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(here.account.run(here.health))
        await settle()
        await here.say("one", OWNER)
        assert await here.answered(1) == ["done"]
        await here.say("two", OWNER)
        assert sorted(await here.answered(3)) == sorted(["done", "done", TOLD])
        running.cancel()
