"""One message about a long turn: edited as it goes on, and never left saying that somebody works."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridge.channel import (
    ChannelError,
    Delivered,
    OutboundPart,
    OutcomeUnknownError,
    Refused,
    UnreachableError,
)
from bridge.channel.testing.clock import settle, until
from bridge.errors import StoreError
from bridge.ids import MessageId
from bridge.relay import progress
from bridge.store.contract import (
    PutSign,
)
from bridge.store.sign_steps import PROGRESS, TYPING, Sign, SignsOf
from tests.relay.harness import NAME, OWNER, STRANGER, Desk, PushedChannel, desk, homes
from tests.relay.scripted import Frame, Peer

SETTINGS = {"progress_message": "edit", "remote_tools": "owner"}


class Editing(PushedChannel):
    """Remembers client ids, as Feishu does, and what each message says now."""

    def __init__(self) -> None:
        super().__init__()
        self.says: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.edits = 0
        self.lost: list[Exception | Refused] = []  # of the next sends of progress: whether or not they arrive
        self.edit_errors: list[Exception] = []

    async def send(self, part: OutboundPart) -> Any:
        if part.notice != PROGRESS:
            return await super().send(part)
        fate = self.lost.pop(0) if self.lost else None
        if isinstance(fate, Refused):
            return fate
        if isinstance(fate, UnreachableError):
            raise fate
        platform_id = self.ids.setdefault(part.client_id, f"p{len(self.ids)}")
        self.says.setdefault(platform_id, part.text)
        if fate is not None:
            raise fate
        return Delivered(platform_id)

    async def edit(self, to: str, platform_id: str, text: str) -> None:
        if self.edit_errors:
            raise self.edit_errors.pop(0)
        self.edits += 1
        self.says[platform_id] = text


async def tool(peer: Peer, start: Frame) -> None:
    """A turn that has called a tool, and runs until it is cancelled or its client writes anything."""
    request = start["request_id"]
    await peer.turn("turn.started", request)
    await peer.turn("tool.started", request, call_id="c", name="run_tests")
    await peer.server.go.wait()  # type: ignore[attr-defined]  # the test's
    await peer.turn("assistant.completed", request, content="done")
    await peer.turn("turn.completed", request, steps=1, usage={})


async def begun(here: Desk, sender: str = OWNER) -> asyncio.Event:
    """A message whose turn runs until the event is set."""
    go = here.server.go = asyncio.Event()  # type: ignore[attr-defined]  # the script's
    await here.say("build", sender)
    await until(lambda: bool(here.server.frames("turn.start")))
    await settle()
    return go


async def passes(here: Desk, seconds: float) -> None:
    await here.clock.advance(seconds)
    await settle()


async def left(here: Desk) -> tuple[Sign, ...]:
    return await here.store.get(SignsOf(NAME))


def stage(channel: Editing | None = None, **setup: Any) -> Any:
    return desk(channel or Editing(), script={"turn": tool}, settings=SETTINGS, **setup)


async def test_a_long_turn_is_told_of_and_in_the_end_that_it_is_over() -> None:
    async with stage() as here:
        go = await begun(here)
        await passes(here, 14)
        assert here.channel.says == {}
        await passes(here, 1)
        assert here.channel.says == {"p0": "Working: run tests, 15 s …"}
        await passes(here, 5)
        assert here.channel.says == {"p0": "Working: run tests, 20 s …"}
        go.set()
        assert await here.answered(1) == ["done"]
        await until(lambda: here.channel.says == {"p0": "Worked on this for 20 s."})
        await settle()
        assert await left(here) == ()


async def test_it_is_edited_ever_less_often_and_at_most_18_times_but_for_its_end() -> None:
    async with stage(limits={"owner_turn_seconds": 86_400}) as here:
        go = await begun(here)
        for _ in range(600):
            await passes(here, 5)
        assert here.channel.edits == progress.MOST_EDITS
        assert here.channel.says["p0"].startswith("Working: run tests, ")
        go.set()
        await until(lambda: here.channel.edits == progress.MOST_EDITS + 1)
        assert here.channel.says["p0"] == "Worked on this for 50 min."


async def test_a_short_turn_is_not_told_of() -> None:
    async with stage() as here:
        go = await begun(here)
        await passes(here, 10)
        go.set()
        assert await here.answered(1) == ["done"]
        await passes(here, 100)
        assert (here.channel.says, await left(here)) == ({}, ())


@pytest.mark.parametrize(
    ("settings", "sender"),
    [(SETTINGS, STRANGER), ({"remote_tools": "owner"}, OWNER), ({"progress_message": "edit"}, OWNER)],
    ids=["stranger", "off", "no tools"],
)
async def test_it_is_the_owner_s_with_tools_alone_and_only_where_it_is_wanted(
    settings: dict[str, Any], sender: str
) -> None:
    async with desk(Editing(), script={"turn": tool}, settings=settings) as here:
        go = await begun(here, sender)
        await passes(here, 100)
        assert here.channel.says == {}
        go.set()
        await here.answered(1)


async def test_a_channel_that_edits_nothing_is_never_asked() -> None:
    async with desk(PushedChannel(), script={"turn": tool}, settings=SETTINGS) as here:
        go = await begun(here)
        await passes(here, 100)
        go.set()
        assert await here.answered(1) == ["done"]


async def test_one_whose_answer_was_lost_is_still_one_message_that_ends() -> None:
    channel = Editing()
    channel.lost = [UnreachableError("no"), OutcomeUnknownError("?")]
    async with stage(channel) as here:
        go = await begun(here)
        await passes(here, 15)
        assert channel.says == {}
        await passes(here, 5)
        assert list(channel.says) == ["p0"]
        go.set()
        assert await here.answered(1) == ["done"]
        await until(lambda: channel.says == {"p0": "Worked on this for 20 s."})


@pytest.mark.parametrize("refusal", [Refused("not here"), KeyError("a bug")])
async def test_one_that_is_refused_is_given_up(refusal: Any) -> None:
    class Refusing(Editing):
        async def send(self, part: OutboundPart) -> Any:
            if part.notice == PROGRESS and isinstance(refusal, Exception):
                raise refusal
            return refusal if part.notice == PROGRESS else await super().send(part)

    async with stage(Refusing()) as here:
        go = await begun(here)
        await passes(here, 15)
        go.set()
        assert await here.answered(1) == ["done"]
        await settle()
        assert (here.channel.says, await left(here)) == ({}, ())


async def test_edits_that_fail_are_tried_again_and_what_cannot_be_edited_any_more_is_left() -> None:
    channel = Editing()
    async with stage(channel) as here:
        go = await begun(here)
        await passes(here, 15)
        channel.edit_errors = [UnreachableError("no"), UnreachableError("no"), ChannelError("too often")]
        await passes(here, 5)
        go.set()
        assert await here.answered(1) == ["done"]
        await settle()
        assert len(await left(here)) == 1
        await passes(here, 2)
        assert (await left(here), channel.edits) == ((), 0)


async def test_without_a_place_to_remember_it_nothing_is_told() -> None:
    async with stage() as here:
        store, do = here.store, here.store.do

        async def refuse(step: Any) -> Any:
            if isinstance(step, PutSign):
                raise StoreError("full")
            return await do(step)

        store.do = refuse
        go = await begun(here)
        await passes(here, 100)
        go.set()
        assert await here.answered(1) == ["done"]
        assert here.channel.says == {}


async def test_a_run_that_ends_says_so_or_leaves_it_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LEAVE_SECONDS", 0.05)
    for fails in (False, True):
        channel = Editing()
        async with homes() as home:
            async with stage(channel, home=home) as here:
                await begun(here)
                await passes(here, 15)
                clock = here.clock
                if fails:
                    channel.edit_errors = [UnreachableError("no")]
            assert ("Worked" in channel.says["p0"]) is not fails
            async with stage(channel, home=home, clock=clock) as here:
                await settle()
                assert await left(here) == ()
            assert channel.says["p0"] == (
                "Not working on this any more." if fails else "Worked on this for 15 s."
            )


@pytest.mark.parametrize("was_sent", [False, True])
async def test_a_crash_before_its_id_was_known_leaves_one_message_that_ends(was_sent: bool) -> None:
    channel, sign = Editing(), Sign(PROGRESS, MessageId("m1"), "to-u-owner", "m1")
    async with homes() as home:
        async with stage(channel, home=home, run=False) as here:
            await here.store.do(PutSign(NAME, sign))
            if was_sent:
                signs = type("Signs", (), {"account": NAME})()
                channel.ids[progress._client_id(signs, sign)] = "p0"
                channel.says["p0"] = "Working, 15 s …"
            clock = here.clock
        async with stage(channel, home=home, clock=clock) as here:
            await until(lambda: channel.says == {"p0": "Not working on this any more."})
            await settle()
            assert await left(here) == ()


async def test_one_that_never_gets_through_is_left_to_the_next_run() -> None:
    channel, sign = Editing(), Sign(PROGRESS, MessageId("m1"), "to-u-owner", "m1")
    channel.lost = [UnreachableError("no")] * 10
    async with homes() as home:
        async with stage(channel, home=home, run=False) as here:
            await here.store.do(PutSign(NAME, sign))
            clock = here.clock
        async with stage(channel, home=home, clock=clock) as here:
            await passes(here, 120)
            assert channel.says == {}
            assert await left(here) == (sign,)


async def test_signs_of_another_kind_are_not_told_of() -> None:
    channel, sign = Editing(), Sign(TYPING, MessageId("m1"), "to-u-owner", "m1")
    async with homes() as home:
        async with stage(channel, home=home, run=False) as here:
            await here.store.do(PutSign(NAME, sign))
            clock = here.clock
        async with stage(channel, home=home, clock=clock):
            await settle()
            assert channel.says == {}


async def test_a_run_that_ends_before_a_turn_is_long_tells_nothing() -> None:
    channel = Editing()
    async with stage(channel) as here:
        await begun(here)
    assert channel.says == {}
