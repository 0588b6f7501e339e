"""R6: our wall clock is set by an hour or a day; no wait notices, and platforms' stamps still hold."""

from datetime import timedelta

import pytest

from bridge.channel import ChannelSettings
from bridge.channel.testing.clock import FakeClock, settle
from bridge.health import Snapshot, State
from bridge.relay.limits import DAY_SECONDS, Excess, Limit, SenderLimits
from bridge.relay.outages import DEAF, DEAF_SECONDS, Outages
from bridge.relay.pairing import CODE_SECONDS, Pairings
from bridge.relay.payload import conversation_of
from bridge.relay.texts import Language, Text, say
from tests.relay.harness import NAME, STRANGER, PushedChannel, desk, message
from tests.relay.test_asking import ASK, ID, asked, asking_desk, resolved

JUMPS = pytest.mark.parametrize("jump", [-86_400.0, -3600.0, 3600.0, 86_400.0])


@JUMPS
async def test_a_code_counts_for_ten_minutes_and_no_longer(jump: float) -> None:
    clock = FakeClock()
    pairings = Pairings(clock)
    hear = pairings.answerer(NAME, ChannelSettings())
    pairings.open(NAME, "48217730", "")
    clock.jump(jump)
    wrong, right = message("m1", "11111111", "u1"), message("m2", "48217730", "u1")
    assert hear(wrong) is not None  # it still waits
    clock.jump(-jump)
    await clock.advance(CODE_SECONDS)
    clock.jump(-jump)
    late = hear(right)
    assert (late is not None and late.text) == say(Text.PAIR_OVER, Language.EN)


@JUMPS
async def test_a_sender_s_minute_and_day_are_as_long_as_ever(jump: float) -> None:
    clock, key = FakeClock(), conversation_of(message("m1", sender=STRANGER))
    own = SenderLimits(1, 2, "", clock)
    own.take(key, turn=True)
    clock.jump(jump)
    assert own.over(key) == Excess(Limit.MINUTE, tell=True)
    await clock.advance(60)
    assert own.over(key) is None
    own.take(key, turn=True)
    clock.jump(jump)
    assert own.over(key) is not None
    await clock.advance(DAY_SECONDS)
    assert own.over(key) is None


@JUMPS
async def test_an_account_is_deaf_after_ten_minutes_and_not_before(jump: float) -> None:
    clock = FakeClock()
    outages, lost = Outages(clock), Snapshot(NAME, "test", "a", State.DISCONNECTED, clock.now())
    assert outages.look([lost]) == {}
    clock.jump(jump)
    assert outages.look([lost]) == {}
    await clock.advance(DEAF_SECONDS)
    assert outages.look([lost]) == {NAME: DEAF}


@JUMPS
async def test_a_turn_is_given_its_time_and_a_busy_notice_its_minute(jump: float) -> None:
    async with desk(limits={"conversation_claims": 1, "turns": 1, "owner_turns": 0}) as here:
        await here.say("one")
        await here.answered(1)
        here.clock.jump(jump)
        await here.say("two")
        assert (await here.answered(2))[1] == "echo: two"


@JUMPS
async def test_a_yes_to_a_question_counts_however_our_clock_was_set_meanwhile(jump: float) -> None:
    channel = PushedChannel()
    async with asking_desk(channel) as here:
        channel.platform_time = here.clock.now()
        await asked(here)
        await here.clock.advance(20)
        channel.platform_time = written = channel.platform_time + timedelta(seconds=20)
        here.clock.jump(jump)
        await here.say("yes", sent_at=written)
        assert f"Approved ({ID}). I go on." in await here.answered(3)
        assert resolved(here) == [True]


@JUMPS
async def test_a_yes_from_before_a_question_never_counts_for_it(jump: float) -> None:
    channel = PushedChannel()
    async with asking_desk(channel, settings=ASK) as here:
        channel.platform_time = here.clock.now()
        written = here.clock.now() - timedelta(minutes=5)
        await asked(here)
        here.clock.jump(jump)
        await here.say("yes", sent_at=written)
        await settle()
        assert resolved(here) == []
