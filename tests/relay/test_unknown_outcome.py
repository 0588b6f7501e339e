"""What may have arrived, on a platform that shows what comes twice twice: once more with a mark, or held."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from bridge.channel import OutcomeUnknownError
from bridge.channel.contract import SentAnswer
from bridge.channel.http import Http, http_session
from bridge.channel.testing.checks.stage import create
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.channel.testing.kit import KitMessage, Trouble
from bridge.channel.testing.kits.plainline import SPEC, PlainlineKit
from bridge.ids import ConversationKey
from bridge.paths import Home
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import CountsOf, HeldTexts
from tests.relay.harness import NAME, OWNER, Desk, desk, homes, message
from tests.relay.responding import Platform, RespondingChannel

MARK = say(Text.REPEAT, Language.EN)
PLAIN, MARKED = "echo: hello", f"{MARK}\necho: hello"
LONG_SECONDS = 600.0
CHAT = ConversationKey(f"direct\0chat0\0{OWNER}\0")


@dataclass
class Stage:
    kit: PlainlineKit
    here: Desk

    def write(self, text: str) -> None:
        self.kit.arrive(KitMessage(text, sender=OWNER, chat="chat0"))

    async def shown(self, count: int) -> list[str]:
        """Wait for so many lines, and let a long time pass: there may be more."""
        for _ in range(20):
            await until(lambda: len(self.kit.fake.shown) >= count or bool(self.here.clock.waits()))
            await self.here.clock.advance(LONG_SECONDS / 20)
        await until(lambda: len(self.kit.fake.shown) >= count)
        await self._quiet()
        return [text for _, text in self.kit.fake.shown]

    async def counts(self) -> tuple[int, int, int]:
        """Open parts, dead letters, held texts."""
        counted = await self.here.store.get(CountsOf(NAME))
        return counted.open_parts, counted.dead, counted.held

    async def _quiet(self) -> None:
        """No send is under way any more."""
        for _ in range(50):
            await settle()


@asynccontextmanager
async def plainline(
    kit: PlainlineKit, home: Home, clock: FakeClock, unknown: str = "resend"
) -> AsyncIterator[Stage]:
    async with http_session() as session:
        channel: Any = create(kit, Http(session))
        spec = {"idempotent_seconds": SPEC.idempotent_seconds}
        settings = {"unknown_outcome": unknown}
        async with desk(channel, home=home, clock=clock, spec=spec, settings=settings) as here:
            yield Stage(kit, here)


@asynccontextmanager
async def stage(unknown: str = "resend") -> AsyncIterator[Stage]:
    async with PlainlineKit() as kit, homes() as home, plainline(kit, home, FakeClock(), unknown) as found:
        yield found


async def test_what_was_answered_is_shown_once() -> None:
    async with stage() as here:
        here.write("hello")
        assert await here.shown(1) == [PLAIN]
        assert await here.counts() == (0, 0, 0)


@pytest.mark.parametrize(
    ("troubles", "shown", "dead"),
    [
        ([Trouble.DROP_AFTER], [PLAIN, MARKED], 0),
        ([Trouble.DROP_AFTER] * 2, [PLAIN, MARKED], 1),
        ([Trouble.DROP_AFTER] * 5, [PLAIN, MARKED], 1),
        ([Trouble.GARBAGE], [MARKED], 0),
        ([Trouble.GARBAGE, Trouble.DROP_AFTER], [MARKED], 1),
        ([Trouble.THROTTLE, Trouble.DROP_AFTER, Trouble.THROTTLE], [PLAIN, MARKED], 0),
        ([Trouble.DROP_AFTER, Trouble.REFUSE], [PLAIN], 1),
    ],
)
async def test_case_32_at_most_one_plain_and_one_marked_copy_are_ever_shown(
    troubles: list[Trouble], shown: list[str], dead: int
) -> None:
    async with stage() as here:
        here.kit.trouble(*troubles)
        here.write("hello")
        assert await here.shown(len(shown)) == shown
        assert (await here.counts())[:2] == (0, dead)


@pytest.mark.parametrize(("trouble", "shown"), [(Trouble.DROP_AFTER, [PLAIN]), (Trouble.GARBAGE, [])])
async def test_where_it_is_held_nothing_is_sent_again_but_with_the_next_reply(
    trouble: Trouble, shown: list[str]
) -> None:
    async with stage("hold") as here:
        here.kit.trouble(trouble)
        here.write("hello")
        await until(lambda: not here.kit.fake.troubles)
        assert await here.shown(len(shown)) == shown
        assert await here.counts() == (0, 1, 1)
        assert [held.text for held in await here.here.store.get(HeldTexts(NAME, CHAT))] == [PLAIN]
        here.write("and now?")
        *_, carrier = await here.shown(len(shown) + 1)
        earlier, latest = (say(text, Language.EN) for text in (Text.EARLIER, Text.LATEST))
        assert carrier == f"{earlier}\n{PLAIN}\n\n{latest}\necho: and now?"
        assert await here.counts() == (0, 0, 0)


@pytest.mark.parametrize(("unknown", "shown"), [("resend", [PLAIN, MARKED]), ("hold", [PLAIN])])
async def test_what_a_crash_cut_off_between_the_send_and_its_answer_may_have_arrived(
    unknown: str, shown: list[str]
) -> None:
    async with PlainlineKit() as kit, homes() as home:
        clock = FakeClock()
        kit.fake.answers.clear()
        async with plainline(kit, home, clock, unknown) as before:
            before.write("hello")
            await until(lambda: kit.sent() != [])
        kit.fake.answers.set()
        async with plainline(kit, home, clock, unknown) as after:
            assert await after.shown(len(shown)) == shown
            assert (await after.counts())[1:] == ((0, 0) if unknown == "resend" else (1, 1))


async def test_an_outcome_that_is_not_known_delays_no_other_chat() -> None:
    async with stage() as here:
        here.kit.fake.answers.clear()
        here.write("hello")
        await until(lambda: len(here.kit.fake.shown) == 1)
        here.kit.arrive(KitMessage("me too", sender=OWNER, chat="chat1"))
        await until(lambda: len(here.kit.fake.shown) == 2)
        here.kit.fake.answers.set()
        assert await here.shown(2) == [PLAIN, "echo: me too"]


@pytest.mark.parametrize("broke_off_first", [True, False])
async def test_no_client_id_tells_a_response_from_a_send(broke_off_first: bool) -> None:
    async with desk(RespondingChannel()) as here:
        platform = Platform(here)
        if broke_off_first:
            served = await platform.serve(message("m1", "hi"))
            assert isinstance(served, SentAnswer)
            served.written(None)
            await here.clock.advance(5)
            assert here.channel.texts() == [f"{MARK}\necho: hi"]
        else:
            here.channel.outcomes = [OutcomeUnknownError("broke off")] * 2
            await here.account.post(f"to-{OWNER}", "hello", ())
            await until(lambda: here.channel.texts() == ["hello"])
            assert await platform.attempt(message("m1", "hi")) == f"{MARK}\nhello"
