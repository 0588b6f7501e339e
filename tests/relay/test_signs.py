"""Signs of work: beside the turn, ended whatever happens, and found again after a crash."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bridge.channel import ChannelError, CredentialsError, OutcomeUnknownError, UnreachableError
from bridge.channel.testing.clock import settle, until
from bridge.errors import StoreError
from bridge.ids import MessageId
from bridge.relay import signs
from bridge.store.contract import (
    DropSign,
    PutSign,
)
from bridge.store.sign_steps import PROGRESS, TYPING, Sign, SignsOf
from tests.relay.harness import NAME, OWNER, Desk, PushedChannel, after_starts, desk, homes, message
from tests.relay.scripted import cancellable

LEFT = Sign(TYPING, MessageId("m9"), "to-u-owner", "m9")
LONG = {"turn": cancellable}


class Fading(PushedChannel):
    """Its sign is seen for ten seconds."""

    typing_seconds = 10.0


class Lasting(PushedChannel):
    """Its sign stays until it is taken away; ``errors`` are what the next tries of that end with."""

    def __init__(self) -> None:
        super().__init__()
        self.over: list[str] = []
        self.errors: list[Exception] = []
        self.gate: asyncio.Event | None = None

    async def typing_over(self, to: str, reply_to: str) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.over.append(reply_to)


async def left(here: Desk) -> tuple[Sign, ...]:
    return await here.store.get(SignsOf(NAME))


async def test_a_sign_that_fades_is_shown_again_as_long_as_the_turn_runs() -> None:
    async with desk(Fading(), script=LONG) as here:
        await here.say("long")
        await until(lambda: len(here.channel.typed) == 1)
        for _ in range(2):
            await settle()
            await here.clock.advance(8)
            await settle()
        assert len(here.channel.typed) == 3
        await here.say("/stop")
        await here.answered(1)
        await here.clock.advance(100)
        assert len(here.channel.typed) == 3
        assert await left(here) == ()


async def test_a_sign_that_stays_is_shown_once_and_taken_away_behind_the_answer() -> None:
    async with desk(Lasting()) as here:
        await here.say("one")
        assert await here.answered(1) == ["echo: one"]
        await until(lambda: here.channel.over == ["m1"])
        await settle()
        assert (here.channel.typed, await left(here)) == (["to-u-owner"], ())


class Slow(Lasting):
    """Takes its time to show the sign; ``shown`` are those that it has come to the end of."""

    def __init__(self) -> None:
        super().__init__()
        self.shows, self.shown = asyncio.Event(), 0

    async def typing(self, to: str, reply_to: str) -> None:
        await super().typing(to, reply_to)
        await self.shows.wait()
        self.shown += 1


@pytest.mark.parametrize("answers", [True, False])
async def test_a_sign_that_has_begun_is_answered_or_given_up_though_its_turn_is_over(
    answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not answers:
        monkeypatch.setattr(signs, "CALL_SECONDS", 0.05)
    channel = Slow()
    async with desk(channel) as here:
        await here.say("one")
        assert await here.answered(1) == ["echo: one"]
        if answers:
            await settle()
            assert (channel.typed, channel.over) == (["to-u-owner"], [])
            channel.shows.set()
        await until(lambda: channel.over == ["m1"])
        assert channel.shown == (1 if answers else 0)


async def test_what_is_over_before_its_sign_has_begun_is_not_shown() -> None:
    channel = Lasting()
    async with desk(channel) as here:
        run = here.account._run
        assert run is not None
        shown = signs.Signs(NAME, channel, here.store, here.clock, here.account._setup.log, run.tasks)
        shown.typing(MessageId("m1"), message("m1", "hi")).set()
        await until(lambda: bool(channel.over))
        assert channel.typed == []


@pytest.mark.parametrize("how", ["fail", "stop", "stall"])
async def test_it_ends_with_a_turn_that_fails_is_stopped_or_takes_too_long(how: str) -> None:
    async def turn(peer: Any, start: Any) -> None:
        await peer.turn("turn.started", start["request_id"])
        if how == "fail":
            await peer.turn("turn.failed", start["request_id"], code="provider_error", message="no")
        while how == "stop" and (await peer.next())["type"] != "turn.cancel":
            pass
        if how == "stop":
            await peer.turn("turn.cancelled", start["request_id"])

    async with desk(Lasting(), script={"turn": turn}, limits={"turn_seconds": 0.3}) as here:
        await here.say("one")
        await until(lambda: len(here.channel.typed) == 1)
        if how == "stop":
            await here.say("/stop")
        await until(lambda: here.channel.over == ["m1"])


async def test_a_sign_is_remembered_before_it_is_shown_and_not_shown_where_that_fails() -> None:
    async with desk(Lasting()) as here:
        store, do = here.store, here.store.do

        async def refuse(step: Any) -> Any:
            if isinstance(step, PutSign):
                raise StoreError("full")
            return await do(step)

        store.do = refuse  # type: ignore[method-assign]  # a full disk
        await here.say("one")
        assert await here.answered(1) == ["echo: one"]
        assert (here.channel.typed, here.channel.over) == ([], [])


@pytest.mark.parametrize("error", [UnreachableError("no"), OutcomeUnknownError("?"), CredentialsError("no")])
async def test_a_sign_that_cannot_be_taken_away_now_is_tried_again(error: Exception) -> None:
    channel = Lasting()
    channel.errors = [error, error]
    async with desk(channel) as here:
        await here.say("one")
        assert await here.answered(1) == ["echo: one"]
        for seconds in signs.AGAIN_SECONDS[:2]:
            await until(lambda: bool(here.clock.waits()))
            assert [one.message_id for one in await left(here)] == ["m1"]
            await here.clock.advance(seconds)
        await until(lambda: channel.over == ["m1"])
        await settle()
        assert await left(here) == ()


async def test_one_that_never_can_be_taken_away_is_forgotten_and_so_is_one_of_a_bug() -> None:
    channel = Lasting()
    async with desk(channel) as here:
        for at, error in enumerate((ChannelError("gone"), KeyError("a bug"))):
            channel.errors = [error]
            await here.say("one")
            await here.answered(at + 1)
            await until(lambda: not channel.errors)
            await settle()
            assert await left(here) == ()


async def test_one_that_outlasts_all_tries_is_left_to_the_next_run() -> None:
    channel = Lasting()
    channel.errors = [UnreachableError("no")] * (len(signs.AGAIN_SECONDS) + 1)
    async with homes() as home:
        async with desk(channel, home=home) as here:
            await here.say("one")
            await here.answered(1)
            await until(lambda: bool(here.clock.waits()))
            await here.clock.advance(sum(signs.AGAIN_SECONDS))
            await until(lambda: not channel.errors)
            assert [one.message_id for one in await left(here)] == ["m1"]
            clock = here.clock
        async with desk(channel, home=home, clock=clock) as here:
            await until(lambda: channel.over == ["m1"])
            await settle()
            assert await left(here) == ()


async def test_what_a_crash_left_standing_is_taken_away_at_the_next_start() -> None:
    async with homes() as home:
        async with desk(home=home, run=False) as here:
            await here.store.do(PutSign(NAME, LEFT))
            clock = here.clock
        channel = Lasting()
        async with desk(channel, home=home, clock=clock) as here:
            await until(lambda: channel.over == ["m9"])
            await settle()
            assert await left(here) == ()


async def test_a_run_that_ends_takes_its_sign_away_or_leaves_it_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signs, "LEAVE_SECONDS", 0.01)
    for stalls in (False, True):
        async with homes() as home:
            channel = Lasting()
            channel.gate = asyncio.Event() if stalls else None
            async with desk(channel, home=home, script=LONG) as here:
                await here.push(message("m1", "long", OWNER))
                await until(lambda: len(channel.typed) == 1)  # noqa: B023 - awaited here
                clock = here.clock
            assert channel.over == ([] if stalls else ["m1"])
            async with desk(home=home, clock=clock, run=False) as here:
                assert [one.message_id for one in await left(here)] == (["m1"] if stalls else [])


async def test_a_message_that_gets_no_turn_has_no_sign() -> None:
    async with desk(Lasting()) as here:

        async def stop(step: object) -> None:
            (conversation,) = here.run.conversations.by_key.values()
            conversation.stop()

        after_starts(here, stop)
        await here.say("one")
        await settle()
        assert (here.channel.typed, here.channel.over) == ([], [])


async def test_a_store_that_cannot_forget_a_sign_leaves_it_to_be_taken_away_again() -> None:
    async with desk(Lasting()) as here:
        store, do = here.store, here.store.do

        async def refuse(step: Any) -> Any:
            if isinstance(step, DropSign):
                raise StoreError("full")
            return await do(step)

        store.do = refuse  # type: ignore[method-assign]  # a full disk
        await here.say("one")
        await until(lambda: here.channel.over == ["m1"])
        assert [one.message_id for one in await left(here)] == ["m1"]


async def test_a_sign_of_another_kind_is_left_alone() -> None:
    async with homes() as home:
        async with desk(home=home, run=False) as here:
            await here.store.do(PutSign(NAME, replace(LEFT, kind=PROGRESS)))
            clock = here.clock
        channel = Lasting()
        async with desk(channel, home=home, clock=clock) as here:
            await settle()
            assert channel.over == []


@pytest.mark.parametrize("error", [UnreachableError("no"), KeyError("a bug")])
async def test_one_that_the_platform_does_not_take_is_shown_no_more(error: Exception) -> None:
    class Refusing(Fading):
        async def typing(self, to: str, reply_to: str) -> None:
            await super().typing(to, reply_to)
            raise error

    async with desk(Refusing(), script=LONG) as here:
        await here.say("long")
        await until(lambda: len(here.channel.typed) == 1)
        await settle()
        await here.clock.advance(30)
        await settle()
        assert len(here.channel.typed) == 1


async def test_a_channel_without_signs_shows_none() -> None:
    async with desk() as here:
        run = here.account._run
        assert run is not None
        shown = signs.Signs(NAME, object(), here.store, here.clock, here.account._setup.log, run.tasks)
        assert not shown.typing(MessageId("m1"), message("m1", "hi")).is_set()
        await settle()
        assert await left(here) == ()
