"""An account's contact with its platform: probes, identity and the platform's clock."""

import asyncio
from datetime import timedelta

import pytest

from bridge.channel import (
    Answer,
    ChannelError,
    CredentialsError,
    Delivered,
    Identity,
    Refused,
    Request,
    Withdrawn,
)
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.relay.contact import PROBE_SECONDS, OnlyTrouble, PlatformClock, proves_contact
from bridge.store.contract import IdentityOf
from tests.relay.harness import NAME, FakeHealth, Logs, ProbedChannel, desk, homes, message


async def test_a_probed_account_has_contact_only_when_the_platform_answered() -> None:
    channel = ProbedChannel()
    channel.identities = [ChannelError("down"), Identity("bot", "Bot")]
    async with desk(channel) as here:
        assert here.health.told == ["the platform does not answer"]
        await here.clock.advance(5)
        assert here.health.told[-1] == "contact"
        stored = await here.store.get(IdentityOf(NAME))
        assert stored is not None
        assert (stored.bot_id, here.health.bot_id) == ("bot", "bot")
        channel.identities = [ChannelError("down")] * 9
        await here.clock.advance(PROBE_SECONDS)
        assert here.health.told[-1] == "the platform does not answer"


async def test_an_identity_is_remembered_over_a_restart() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(ProbedChannel(), home=home, clock=clock):
            pass
        channel = ProbedChannel()
        channel.identities = [ChannelError("down")] * 9
        seen: list[Identity] = []

        def read(request: Request, identity: Identity) -> Answer:
            seen.append(identity)
            return Answer(200)

        channel.read = read  # type: ignore[method-assign]  # one channel of its own kind
        async with desk(channel, home=home, clock=clock) as after:
            await after.push(message("m1"))
            assert seen == [Identity("bot", "Bot")]
            assert after.health.bot_id == "bot"


async def test_a_probe_that_is_refused_parks_the_account() -> None:
    channel = ProbedChannel()
    channel.identities = [CredentialsError("wrong secret")]
    async with desk(channel, run=False) as here:
        with pytest.raises(ExceptionGroup) as ended:
            await here.account.run(here.health)
        assert ended.group_contains(CredentialsError)


async def test_case_3_a_large_skew_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    channel = ProbedChannel()
    async with desk(channel, run=False) as here:
        channel.identities = [Identity("b", "B", here.clock.now() - timedelta(hours=1))] * 3
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await settle()
            await here.clock.advance(PROBE_SECONDS * 2)
            assert capsys.readouterr().err.count("clock.skew") == 1
            running.cancel()


def test_a_polled_account_learns_of_failed_sends_only() -> None:
    health = FakeHealth()
    only = OnlyTrouble(health)
    only.contact()
    only.lost("sending fails")
    assert health.told == ["sending fails"]


def test_the_platform_s_time_is_ours_until_it_says_otherwise() -> None:
    clock = FakeClock()
    platform = PlatformClock(clock, Logs())
    assert platform.ahead_seconds == 0
    platform.learn(clock.now() + timedelta(seconds=5))
    platform.learn(None)
    assert platform.ahead_seconds == 5


async def test_a_jump_of_our_clock_changes_no_age_before_the_platform_has_told_its_time_again() -> None:
    clock = FakeClock()
    platform = PlatformClock(clock, Logs())
    platform.learn(clock.now() + timedelta(seconds=5))
    await clock.advance(100)
    assert platform.ahead_seconds == 5
    clock.jump(86_400)
    assert platform.ahead_seconds == 5 - 86_400
    await clock.advance(100)
    assert platform.ahead_seconds == 5 - 86_400


def test_a_skew_is_shown_and_again_when_it_changes_by_a_second() -> None:
    clock, health = FakeClock(), FakeHealth()
    platform = PlatformClock(clock, Logs())
    platform.health = health
    for seconds in (5, 5.9, 6, 4.2, 4.9):
        platform.learn(clock.now() + timedelta(seconds=seconds))
    assert health.skews == [5, 6, 4.2]


async def test_case_3_the_skew_that_a_probe_finds_is_in_the_health() -> None:
    channel = ProbedChannel()
    async with desk(channel, run=False) as here:
        channel.identities = [Identity("b", "B", here.clock.now() - timedelta(minutes=10))]
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await until(lambda: bool(here.health.skews))
            running.cancel()
        assert here.health.skews == [-600]


def test_an_outcome_without_a_code_of_the_platform_s_proves_nothing() -> None:
    assert proves_contact(Delivered("p1"))
    assert proves_contact(Refused("no such chat", "230002"))
    assert proves_contact(Withdrawn("230011"))
    assert not proves_contact(Refused("the file is gone"))
    assert not proves_contact(Withdrawn())
