"""Silence is no contact: a receive that hangs, a connection that goes mute, messages that do not come."""

import asyncio
from typing import Any

import pytest

from bridge.channel import Batch, ChannelError, CredentialsError, Identity, Ignored, UnreachableError
from bridge.channel.testing.clock import START, FakeClock, settle, until
from bridge.errors import MuteError
from bridge.health import Health, Snapshot, State
from bridge.relay import contact, silence
from bridge.relay.account import Account
from bridge.relay.silence import MUTE_TIMES, SILENT, Expecting
from tests.relay.harness import (
    NAME,
    FakeHealth,
    PollingChannel,
    ProbedChannel,
    PushedChannel,
    desk,
    message,
)

FAILS = "receiving fails; it is tried again"


class HangingChannel(PollingChannel):
    """``batches`` may also hold an event that a poll waits for, as one that is never answered."""

    async def receive(self, checkpoint: str) -> Batch:
        first: Any = self.batches[0] if self.batches else None
        if isinstance(first, asyncio.Event):
            self.polled.append(checkpoint)
            self.batches.pop(0)
            await first.wait()
        return await super().receive(checkpoint)


def hanging(*batches: Any) -> HangingChannel:
    channel = HangingChannel()
    channel.batches = list(batches)
    return channel


# --- receiving ------------------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline by the loop's own clock, which no test waits for."""
    monkeypatch.setattr(silence, "RECEIVE_SECONDS", 0.0)
    monkeypatch.setattr(contact, "PROBE_TIMEOUT_SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
async def test_case_38_a_receive_that_hangs_is_cut_off_and_repeated() -> None:
    async with desk(hanging(asyncio.Event()), run=False) as here:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await until(lambda: here.health.told == [FAILS])
            assert here.channel.polled == [""]
            await here.clock.advance(1)
            await until(lambda: len(here.channel.polled) == 2)
            running.cancel()


@pytest.mark.usefixtures("at_once")
async def test_case_8_a_probe_that_hangs_is_cut_off_and_repeated() -> None:
    class Hanging(ProbedChannel):
        probed = 0

        async def probe(self) -> Identity:
            self.probed += 1
            if self.probed == 1:
                await asyncio.Event().wait()
            return Identity("bot")

    channel = Hanging()
    async with desk(channel, run=False) as here, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(here.account.run(here.health))
        await until(lambda: here.health.told == ["the platform does not answer"])
        assert channel.probed == 1
        running.cancel()


async def test_more_at_once_than_is_taken_is_no_contact_and_is_asked_for_again() -> None:
    channel = hanging(Batch([Ignored("own")] * (silence.BATCH_ITEMS + 1), "c1"), Batch([], "c2"))
    async with desk(channel) as here:
        assert (here.health.told, channel.polled) == ([FAILS], [""])
        await here.clock.advance(1)
        assert (here.health.told[-1], channel.polled) == ("contact", ["", "", "c2"])


async def test_an_empty_batch_is_contact_too() -> None:
    async with desk(hanging(Batch([]))) as here:
        assert here.health.told == ["contact"]


async def test_case_54_a_connection_that_goes_mute_is_repeated_ever_later_and_at_last_given_up() -> None:
    channel = hanging(*[Batch([]), ChannelError("mute")] * MUTE_TIMES)
    async with desk(channel, run=False) as here:
        ended: list[BaseException] = []

        async def run() -> None:
            try:
                await here.account.run(here.health)
            except* MuteError as group:
                ended.append(group)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run())
            await settle()
            began = here.clock.monotonic()
            while not ended:
                await here.clock.advance(min(here.clock.waits()))
        assert here.health.told == ["contact", "again", FAILS] * (MUTE_TIMES - 1) + ["contact", "again"]
        assert here.clock.monotonic() - began > 60


async def test_what_brings_messages_in_between_is_not_mute() -> None:
    rounds = [[Batch([message(f"m{n}")], f"c{n}"), ChannelError("gone")] for n in range(MUTE_TIMES * 2)]
    channel = hanging(*[one for each in rounds for one in each], Batch([]))
    async with desk(channel) as here:
        for _ in rounds:
            await here.clock.advance(3)
        assert here.health.told[-1] == "contact"
        assert len(channel.polled) == len(rounds) * 2 + 2


async def test_the_wait_that_a_platform_asks_for_after_contact_is_kept() -> None:
    channel = hanging(Batch([]), UnreachableError("busy", retry_after_seconds=90), Batch([]))
    async with desk(channel) as here:
        await here.clock.advance(89)
        assert here.health.told == ["contact", "again", FAILS]
        await here.clock.advance(3)
        assert here.health.told[-1] == "contact"


async def test_refused_credentials_are_never_taken_for_silence() -> None:
    channel = hanging(Batch([]), CredentialsError("revoked"))
    async with desk(channel, run=False) as here:
        with pytest.raises(ExceptionGroup) as ended:
            await here.account.run(here.health)
        assert ended.group_contains(CredentialsError)
        assert here.health.told == ["contact"]


# --- expected messages ----------------------------------------------------------------------------------


def expecting(seconds: int = 60) -> dict[str, Any]:
    return {"settings": {"expect_every_seconds": seconds}}


def health_for(clock: FakeClock) -> Health:
    return Health(Snapshot(NAME, "test", "a", State.STARTING, START), clock)


async def test_silence_beyond_what_is_expected_is_a_fault_until_a_message_comes() -> None:
    async with desk(PushedChannel(), **expecting()) as here:
        await here.clock.advance(59)
        assert here.health.told == ["contact"]
        await here.say("hello")
        await here.clock.advance(59)
        assert here.health.told[-1] == "contact"
        await here.clock.advance(1)
        assert here.health.told[-1] == SILENT
        await here.say("hello")
        assert here.health.told[-1] == "contact"


async def test_a_probe_that_succeeds_ends_no_silence() -> None:
    async with desk(ProbedChannel(), **expecting(300)) as here:
        await here.clock.advance(contact.PROBE_SECONDS)
        assert set(here.health.told) == {"contact"}
        await here.clock.advance(30)
        assert here.health.told[-1] == SILENT
        await here.clock.advance(contact.PROBE_SECONDS - 30)
        assert here.health.told[-2:] == [SILENT, SILENT]
        assert here.health.bot_id == "bot"


async def test_an_empty_batch_ends_no_silence_and_a_message_does() -> None:
    gate = asyncio.Event()
    channel = hanging(gate, Batch([]), Batch([message("m1")], "c1"))
    async with desk(channel, **expecting()) as here:
        await here.clock.advance(60)
        assert here.health.told == [SILENT]
        gate.set()
        await here.answered(1)
        assert here.health.told[:3] == [SILENT, SILENT, "contact"]


async def test_silence_is_counted_over_the_runs_of_an_account() -> None:
    async with desk(PushedChannel(), run=False, **expecting()) as here:
        account: Account = here.account
        for _ in range(2):
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(account.run(here.health))
                await settle()
                await here.clock.advance(40)
                running.cancel()
        assert here.health.told[-1] == SILENT


def test_what_is_not_contact_passes_through() -> None:
    health = FakeHealth()
    over = Expecting(FakeClock(), 60).over(health)
    over.lost("sending fails")
    over.known(bot_id="bot")
    over.skewed(3)
    over.repeated()
    assert (health.told, health.bot_id, health.skews) == (["sending fails", "again"], "bot", [3])


async def test_a_silent_account_is_disconnected_with_its_reason() -> None:
    clock = FakeClock()
    health = health_for(clock)
    over = Expecting(clock, 60).over(health)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(over.watch())
        over.contact()
        await settle()
        await clock.advance(60)
        over.contact()
        assert (health.snapshot.state, health.snapshot.reason) == (State.DISCONNECTED, SILENT)
        await clock.advance(60)
        assert health.snapshot.since == START.replace(minute=START.minute + 1)
        over.heard(clock.monotonic())
        assert health.snapshot.state is State.CONNECTED
        watching.cancel()
