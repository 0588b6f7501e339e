"""What one person may ask of an account, in any minute and in any 24 hours."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from bridge.channel import Inbound
from bridge.channel.testing.clock import FakeClock
from bridge.ids import ConversationKey
from bridge.relay import limits
from bridge.relay.limits import COMMANDS_PER_MINUTE, DAY_SECONDS, Excess, Limit, SenderLimits
from bridge.relay.payload import conversation_of
from bridge.relay.spending import Caps, Spending
from bridge.store.contract import (
    SenderTurns,
    Store,
    Used,
)
from bridge.store.sender_turns import SenderTurn
from bridge.store.usage_steps import HourUsage
from tests.relay.harness import NAME, OWNER, STRANGER, PushedChannel, desk, homes, message

DIRECT = Inbound("m1", "u1", "u1", "to")
KEY = conversation_of(DIRECT)
DAY = Excess(Limit.DAY, tell=True)
MINUTE = Excess(Limit.MINUTE, tell=True)


def key(**changes: object) -> ConversationKey:
    return conversation_of(replace(DIRECT, **changes))  # type: ignore[arg-type]  # any of its fields


def use(of: SenderLimits, times: int, conversation: ConversationKey = KEY) -> None:
    for _ in range(times):
        assert of.over(conversation) is None
        of.take(conversation, turn=True)


def test_a_minute_slides() -> None:
    clock = FakeClock()
    own = SenderLimits(2, 0, "", clock)
    use(own, 1)
    asyncio.run(clock.advance(40))
    use(own, 1)
    assert own.over(KEY) == MINUTE
    asyncio.run(clock.advance(20))
    use(own, 1)
    assert own.over(KEY) == MINUTE


def test_a_day_has_24_hours_and_counts_turns_alone() -> None:
    clock = FakeClock()
    own = SenderLimits(0, 2, "", clock)
    own.take(KEY, turn=False)
    use(own, 2)
    assert own.over(KEY) == DAY
    asyncio.run(clock.advance(DAY_SECONDS))
    assert own.over(KEY) is None


def test_of_two_limits_the_longer_one_is_told() -> None:
    own = SenderLimits(1, 1, "", FakeClock())
    use(own, 1)
    assert own.over(KEY) == DAY


def test_without_limits_nothing_is_counted() -> None:
    own = SenderLimits(0, 0, "", FakeClock())
    use(own, 100, ConversationKey("no key at all"))
    own.give_back(ConversationKey("no key at all"), turn=True)
    assert own.over(ConversationKey("no key at all")) is None


def test_one_person_is_one_wherever_they_write_and_no_one_else() -> None:
    own = SenderLimits(0, 1, "", FakeClock())
    use(own, 1, key(sender="u1\0x"))
    for place in ({}, {"chat": "c", "group": True}, {"chat": "c", "group": True, "thread": "t"}):
        assert own.over(key(sender="u1\0x", **place)) == DAY
    for other in ("u1", "u1\\0x", "U1\0x", "u1\0xy"):
        assert own.over(key(sender=other, chat="u1\0x")) is None


@pytest.mark.parametrize("place", [{}, {"chat": "c", "group": True}])
def test_the_owner_has_no_limit_wherever_they_write(place: dict[str, object]) -> None:
    own = SenderLimits(1, 1, "u\0wner", FakeClock())
    use(own, 10, key(sender="u\0wner", **place))


def test_a_notice_is_due_once_in_a_window_and_again_when_it_did_not_come_about() -> None:
    clock = FakeClock()
    own = SenderLimits(1, 0, "", clock)
    use(own, 1)
    own.told(KEY, Limit.MINUTE)
    assert own.over(KEY) == Excess(Limit.MINUTE, tell=False)
    own.not_told(KEY, Limit.MINUTE)
    assert own.over(KEY) == MINUTE
    own.told(KEY, Limit.MINUTE)
    asyncio.run(clock.advance(60))
    use(own, 1)
    assert own.over(KEY) == MINUTE


def test_what_did_not_come_about_does_not_count() -> None:
    own = SenderLimits(1, 1, "", FakeClock())
    own.give_back(KEY, turn=True)
    use(own, 1)
    own.give_back(KEY, turn=True)
    use(own, 1)


HOUR_MS = 3_600_000


class Remembers:
    """A store that remembers these turns and hours."""

    def __init__(self, *turns: SenderTurn, hours: Sequence[HourUsage] = ()) -> None:
        self._turns, self._hours = turns, hours

    async def get(self, query: object) -> object:
        return self._turns if isinstance(query, SenderTurns) else self._hours


async def test_what_the_store_remembers_counts_for_the_rest_of_its_day() -> None:
    clock = FakeClock()
    own = SenderLimits(1, 2, "", clock)
    turns = [SenderTurn(KEY, 0), SenderTurn(KEY, HOUR_MS), SenderTurn(KEY, 2 * HOUR_MS, Limit.DAY)]
    await own.remember(NAME, cast(Store, Remembers(*turns)), 3 * HOUR_MS)
    assert own.over(KEY) == Excess(Limit.DAY, tell=False)
    await clock.advance(DAY_SECONDS - 3 * 3600)
    use(own, 1)
    assert own.over(KEY) == Excess(Limit.DAY, tell=False)


def spending(clock: FakeClock, tokens: int = 0, account_micros: int = 0) -> Spending:
    return Spending(Caps(tokens), Caps(micros=account_micros), clock)


async def test_tokens_that_are_used_up_are_told_once_in_24_hours() -> None:
    clock = FakeClock()
    own = SenderLimits(0, 0, "boss", clock, spending(clock, tokens=10))
    assert own.spent(KEY, Used(input_tokens=9)) == ""
    assert own.over(KEY) is None
    own.spent(KEY, Used(output_tokens=1))
    assert own.over(KEY) == Excess(Limit.TOKENS, tell=True)
    own.told(KEY, "tokens_per_day")
    assert own.over(KEY) == Excess(Limit.TOKENS, tell=False)
    assert own.over(key(sender="u2")) is None
    own.not_told(KEY, Limit.TOKENS)
    assert own.over(KEY) == Excess(Limit.TOKENS, tell=True)
    await clock.advance(DAY_SECONDS)
    assert own.over(KEY) is None


def test_the_owner_goes_on_when_the_account_has_used_up_what_it_may() -> None:
    clock = FakeClock()
    own = SenderLimits(0, 0, "boss", clock, spending(clock, tokens=1, account_micros=5))
    assert own.spent(key(sender="boss"), Used(input_tokens=9, cost_micros=5)) == "account_cost_per_day"
    assert own.over(key(sender="boss")) is None
    assert own.over(KEY) == Excess(Limit.ACCOUNT_COST, tell=True)


async def test_what_was_used_and_told_before_a_restart_counts() -> None:
    clock = FakeClock()
    own = SenderLimits(0, 0, "bo\\ss", clock, spending(clock, tokens=10, account_micros=7))
    refused = SenderTurn(KEY, 2 * HOUR_MS, Limit.ACCOUNT_COST)
    hours = [HourUsage("u1", HOUR_MS, 9, 2), HourUsage("u1", 2 * HOUR_MS, 1, 0)]
    await own.remember(NAME, cast(Store, Remembers(refused, hours=hours)), 3 * HOUR_MS)
    assert own.over(KEY) == Excess(Limit.TOKENS, tell=True)
    await own.remember(NAME, cast(Store, Remembers(hours=[HourUsage("bo\\ss", 0, 99, 5)])), 3 * HOUR_MS)
    assert own.over(KEY) == Excess(Limit.ACCOUNT_COST, tell=False)
    assert own.over(key(sender="u2")) == Excess(Limit.ACCOUNT_COST, tell=True)


def test_senders_that_never_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SENDERS_KEPT", 2)
    own = SenderLimits(0, 1, "", FakeClock())
    for sender in ("a", "b", "c"):
        use(own, 1, key(sender=sender))
    assert own.over(key(sender="c")) == DAY
    assert own.over(key(sender="a")) is None


# --- on a whole account


async def test_a_stranger_over_the_limit_is_told_once_and_the_owner_goes_on() -> None:
    async with desk(settings={"messages_per_minute": 2}) as here:
        for n in range(5):
            await here.say(f"text {n}", STRANGER)
        assert (await here.say("text 9", STRANGER)).body == b"busy"
        texts = await here.answered(3)
        assert sorted(texts[:2] + texts[2:])[:1] == [
            "You are writing faster than I may take it in. Please wait a minute and send this again."
        ]
        assert len(texts) == 3
        for n in range(5):
            await here.say(f"owner {n}", OWNER)
        assert len(await here.answered(8)) == 8
        await here.clock.advance(60)
        assert (await here.say("later", STRANGER)).body == b"accepted"


async def test_a_restart_gives_nobody_another_day_and_tells_nobody_again() -> None:
    settings = {"turns_per_day": 2}
    async with homes() as home:
        async with desk(home=home, settings=settings) as here:
            for n in range(3):
                await here.say(f"text {n}", STRANGER)
            assert len(await here.answered(3)) == 3
            clock = here.clock
        channel = PushedChannel()
        async with desk(channel, home=home, clock=clock, settings=settings) as here:
            assert (await here.push(message("n1", sender=STRANGER))).body == b"busy"
            assert (await here.push(message("n2", sender=OWNER))).body == b"accepted"
            assert await here.answered(1) == ["echo: hello"]
            assert len(await here.store.get(SenderTurns(NAME, 0, (Limit.DAY,)))) == 4


async def test_a_message_that_comes_again_counts_once() -> None:
    async with desk(settings={"messages_per_minute": 2}) as here:
        for _ in range(3):
            await here.push(message("m1", sender=STRANGER))
        assert (await here.push(message("m2", sender=STRANGER))).body == b"accepted"


async def test_a_stranger_s_flood_of_commands_is_answered_so_often_and_the_owner_s_always() -> None:
    async with desk() as here:
        for _ in range(COMMANDS_PER_MINUTE + 5):
            await here.say("/help", STRANGER)
        assert (await here.say("/help", STRANGER)).body == b"ignored"
        for _ in range(COMMANDS_PER_MINUTE + 5):
            await here.say("/help", OWNER)
        assert len(await here.answered(2 * COMMANDS_PER_MINUTE + 5)) == 2 * COMMANDS_PER_MINUTE + 5
        assert (await here.say("a message", STRANGER)).body == b"accepted"
