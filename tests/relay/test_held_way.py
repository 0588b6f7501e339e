"""What could not be delivered, on its whole way: given up, counted, held, and carried by the next reply."""

import pytest

from bridge.channel import Delivered, Limit, OutcomeUnknownError, Refused, UnreachableError
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.ids import ConversationKey
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import CountsOf, HeldTexts, OpenParts, Prune
from tests.relay.harness import NAME, OWNER, STRANGER, Desk, desk, homes

EARLIER, LATEST = say(Text.EARLIER, Language.EN), say(Text.LATEST, Language.EN)
CHAT = ConversationKey(f"direct\0chat-{OWNER}\0{OWNER}\0")
NO = Refused("no", "7")


async def held(here: Desk) -> list[str]:
    return [one.text for one in await here.store.get(HeldTexts(NAME, CHAT))]


async def counted(here: Desk) -> tuple[int, int, int]:
    """Open parts, dead letters, held texts."""
    counts = await here.store.get(CountsOf(NAME))
    return counts.open_parts, counts.dead, counts.held


def carried(latest: str, *earlier: str) -> str:
    return "\n\n".join([*(f"{EARLIER}\n{text}" for text in earlier), f"{LATEST}\n{latest}"])


async def refused(here: Desk, *texts: str) -> None:
    """The replies to these messages are refused."""
    for text in texts:
        here.channel.outcomes.append(NO)
        count = len(here.channel.texts())
        await here.say(text)
        await here.answered(count + 1)


@pytest.mark.parametrize("trouble", [UnreachableError("down"), OutcomeUnknownError("cut off")])
async def test_what_is_not_delivered_in_its_time_is_counted_held_and_carried_by_the_next_reply(
    trouble: Exception,
) -> None:
    async with desk(limits={"deliver_seconds": 600}) as here:
        here.channel.outcomes = [trouble] * 200
        await here.say("one")
        await here.answered(1)
        await here.clock.advance(500)
        assert (await counted(here))[0] == 1
        await here.clock.advance(300)
        assert await counted(here) == (0, 1, 1)
        tries = len(here.channel.texts())
        here.channel.outcomes = []
        await here.say("two")
        assert (await here.answered(tries + 1))[-1] == carried("echo: two", "echo: one")
        assert await counted(here) == (0, 0, 0)


async def test_the_newest_four_are_carried_oldest_first() -> None:
    async with desk() as here:
        await refused(here, *(f"text {n}" for n in range(6)))  # what a carrier carried comes back ahead of it
        assert await held(here) == [f"echo: text {n}" for n in range(2, 6)]
        await here.say("last")
        assert (await here.answered(7))[-1] == carried(
            "echo: last", *(f"echo: text {n}" for n in range(2, 6))
        )
        assert await held(here) == []


async def test_no_other_conversation_carries_them() -> None:
    async with desk() as here:
        await refused(here, "one")
        await here.say("hello", STRANGER)
        assert (await here.answered(2))[-1] == "echo: hello"
        assert await held(here) == ["echo: one"]


async def test_a_reply_too_long_to_carry_anything_has_it_sent_ahead() -> None:
    async with desk(spec={"text_limit": Limit(200)}) as here:
        await refused(here, "one")
        await here.say("x" * 150)
        ahead, latest = (await here.answered(3))[1:]
        assert ahead == f"{EARLIER}\necho: one"
        assert latest == f"{LATEST}\necho: {'x' * 150}"
        assert await counted(here) == (0, 0, 0)


LONG = " ".join(f"word{n}" for n in range(60))


async def test_a_held_text_longer_than_a_part_is_read_before_the_next_reply() -> None:
    async with desk(spec={"text_limit": Limit(200)}) as here:
        await refused(here, LONG)
        await here.say("two")
        *ahead, latest = (await here.answered(5))[1:]
        assert " ".join(ahead).split() == f"{EARLIER} echo: {LONG}".split()
        assert latest == f"{LATEST}\necho: two"
        assert await counted(here) == (0, 0, 0)


async def test_a_held_text_whose_reply_is_refused_before_any_of_it_arrived_waits_as_before() -> None:
    async with desk(spec={"text_limit": Limit(200)}) as here:
        await refused(here, LONG)
        before = await here.store.get(HeldTexts(NAME, CHAT))
        here.channel.outcomes = [NO, NO]
        await here.say("two")
        await here.answered(3)
        await settle()
        assert (await here.store.get(HeldTexts(NAME, CHAT)))[:1] == before
        assert [text.split() for text in await held(here)] == [["echo:", *LONG.split()], ["echo:", "two"]]
        assert await counted(here) == (0, 2, 2)


async def test_what_is_left_of_a_held_text_waits_in_its_place() -> None:
    async with desk(spec={"text_limit": Limit(200)}) as here:
        await refused(here, LONG)
        first = await here.store.get(HeldTexts(NAME, CHAT))
        here.channel.outcomes = [Delivered("1"), NO, NO]
        await here.say("two")
        arrived = (await here.answered(4))[1]
        await settle()
        left, own = await here.store.get(HeldTexts(NAME, CHAT))
        assert (left.held_id, left.created_ms) == (first[0].held_id, first[0].created_ms)
        assert f"{arrived} {left.text}".split() == f"{EARLIER} echo: {LONG}".split()
        assert own.text == "echo: two"
        assert await counted(here) == (0, 2, 2)
        await here.say("three")
        await here.answered(8)
        await settle()
        assert await counted(here) == (0, 0, 0)


async def test_a_notice_that_is_refused_is_not_held() -> None:
    async with desk(limits={"account_claims": 1, "owner_claims": 0}) as here:
        here.channel.outcomes = [NO]
        here.server.turn = lambda peer, start: settle()
        await here.say("one")
        await until(lambda: len(here.server.frames("turn.start")) == 1)
        await here.say("two", STRANGER)
        await here.answered(1)
        assert await counted(here) == (0, 0, 0)


async def test_after_seven_days_they_are_gone() -> None:
    async with desk() as here:
        await refused(here, "one")
        created_ms = (await here.store.get(HeldTexts(NAME, CHAT)))[0].created_ms
        await here.store.do(Prune(0, created_ms))
        assert await held(here) == ["echo: one"]
        await here.store.do(Prune(0, created_ms + 1))
        assert await held(here) == []


async def test_case_46_a_restart_does_not_undercut_the_wait_that_was_asked_for_nor_uses_up_a_try() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock) as before:
            before.channel.outcomes = [UnreachableError("too many requests", 3600)]
            await before.say("one")
            await before.answered(1)
        for _ in range(3):
            async with desk(home=home, clock=clock) as again:
                await settle()
                await clock.advance(1000)
                assert again.channel.texts() == []
                assert [part.attempts for part in await again.store.get(OpenParts(NAME))] == [0]
        async with desk(home=home, clock=clock) as last:
            await clock.advance(700)
            assert await last.answered(1) == ["echo: one"]
