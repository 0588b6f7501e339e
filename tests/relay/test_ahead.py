"""What is answered ahead of the queue: decided when it is claimed, done once that is durable."""

from dataclasses import replace

import pytest

from bridge.channel import Inbound
from bridge.clock import unix_ms
from bridge.ids import ConversationKey
from bridge.relay.ahead import NOBODY, Ahead, Said, first
from bridge.relay.intake import Fate, Policy, classify
from bridge.relay.limits import Excess
from bridge.relay.payload import conversation_of
from bridge.store.contract import Effect, OpenMessages
from tests.relay.harness import NAME, STRANGER, Desk, desk, message
from tests.relay.scripted import cancellable
from tests.relay.test_claims import claims_of

MESSAGE = Inbound("m1", "u1", "c1", "c1", text="hello")
ANYONE = Policy("", "anyone", tools=False)
OWNER = Policy("u9", "owner", tools=False)


class NoRoom:
    """It is not asked for what is answered ahead, but for whether its sender has said enough."""

    def has_said_enough(self, conversation: ConversationKey) -> bool:
        return False

    def over(self, conversation: ConversationKey) -> Excess | None:
        raise AssertionError

    def admits(self, conversation: ConversationKey, owner: bool) -> bool:
        raise AssertionError

    def notice_due(self, conversation: ConversationKey) -> bool:
        raise AssertionError


def says(text: str) -> Said | None:
    return Said(text)


def fate(policy: Policy, ahead: Ahead) -> Fate:
    return classify(MESSAGE, conversation_of(MESSAGE), policy, NoRoom(), ahead=ahead).fate


def test_the_first_that_answers_is_the_one() -> None:
    answerers = [lambda _: None, lambda _: Said("a"), lambda _: Said("b")]
    assert first(answerers, MESSAGE) == Said("a")
    assert first(NOBODY.for_anybody, MESSAGE) is None


def test_to_say_something_and_do_nothing_is_the_rule() -> None:
    Said("a").act()


@pytest.mark.parametrize(("policy", "expected"), [(ANYONE, Fate.SAID), (OWNER, Fate.SEEN)])
def test_what_is_for_those_that_are_answered_is_for_nobody_else(policy: Policy, expected: Fate) -> None:
    assert fate(policy, Ahead(for_answered=[lambda _: Said("a")])) is expected


def test_what_is_for_anybody_is_said_to_those_that_are_not_answered_too() -> None:
    assert fate(OWNER, Ahead(for_anybody=[lambda _: Said("a")])) is Fate.SAID


def answering(here: Desk, acted: list[str]) -> None:
    def answer(item: Inbound) -> Said | None:
        return Said("at once", lambda: acted.append(item.message_id)) if item.text == "now" else None

    claims_of(here)._ahead = Ahead(for_answered=[answer])


async def test_it_is_answered_once_no_turn_runs_and_what_it_asks_is_done_once() -> None:
    acted: list[str] = []
    async with desk() as here:
        answering(here, acted)
        now_ms = unix_ms(here.clock.now())
        await claims_of(here).take([message("m1", "now", STRANGER)], now_ms)
        await claims_of(here).take([message("m1", "now", STRANGER)], now_ms)
        assert await here.answered(1) == ["at once"]
        assert acted == ["m1"]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_what_an_answer_does_to_its_conversation_is_durable_together_with_it() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.push(message("m1", "long"), message("m2", "waits"))
        claims_of(here)._ahead = Ahead(for_answered=[lambda _: Said("stopped", effect=Effect.STOP)])
        await here.push(message("m3", "now"))
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_an_answer_can_be_in_any_language_and_goes_to_the_message_it_answers() -> None:
    async with desk() as here:
        answering(here, [])
        one = replace(message("m1", "now", STRANGER), reply_to="handle")
        await claims_of(here).take([one], unix_ms(here.clock.now()))
        assert await here.answered(1) == ["at once"]
