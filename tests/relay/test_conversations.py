"""The conversations of a run, with a running account around them."""

from dataclasses import replace

import pytest

from bridge.channel.testing.clock import settle, until
from bridge.ids import ConversationKey, MessageId
from bridge.relay.conversation import Now
from bridge.relay.conversations import Conversations
from bridge.store.contract import UnbindSession
from tests.relay.harness import NAME, STRANGER, Desk, desk, message
from tests.relay.scripted import cancellable
from tests.relay.test_changes import prompts
from tests.relay.test_conversation import Held, key_of


def of(here: Desk) -> Conversations:
    assert here.account._run is not None
    return here.account._run.conversations


async def test_a_conversation_is_made_for_its_first_message_and_kept_for_the_next() -> None:
    async with desk() as here:
        await here.say("one")
        await here.answered(1)
        first = of(here).by_key[key_of()]
        assert of(here).is_busy(key_of()) is False
        await here.say("two")
        await here.answered(2)
        assert of(here).by_key == {key_of(): first}
        assert here.server.opened == 1


async def test_one_with_something_to_do_is_busy() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.say("one")
        assert of(here).is_busy(key_of())
        assert not of(here).is_busy(key_of(STRANGER))
        held.let_go("one")
        await here.answered(1)
        assert not of(here).is_busy(key_of())


async def test_the_one_that_was_idle_longest_makes_room() -> None:
    async with desk(limits={"sessions": 2, "owner_sessions": 0}) as here:
        for n in range(3):
            await here.say("x", f"s{n}")
            await here.answered(n + 1)
            await here.clock.advance(1)
        await until(lambda: len(of(here).by_key) == 2)
        assert list(of(here).by_key) == [key_of("s1"), key_of("s2")]


async def test_a_conversation_that_is_needed_as_it_retires_stays() -> None:
    async with desk() as here:
        await here.say("one")
        await here.answered(1)
        of(here).retire(key_of())
        await here.say("two")
        assert await here.answered(2) == ["echo: one", "echo: two"]
        await until(lambda: not of(here).is_busy(key_of()))
        await settle()
        assert key_of() in of(here).by_key


async def test_a_recalled_message_of_no_conversation_is_nobody_s() -> None:
    async with desk() as here:
        of(here).take_back(ConversationKey("nowhere"), MessageId("m1"))
        await settle()
        assert of(here).by_key == {}


async def test_a_recalled_turn_is_cancelled_beside_everything_else() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.say("long")
        await until(lambda: prompts(here) == ["long"])
        await settle()
        of(here).take_back(key_of(), MessageId("m1"))
        await until(lambda: len(here.server.frames("turn.cancel")) == 1)


async def test_an_edited_message_takes_its_place_or_is_taken_in() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.say("zero")
        await here.say("one")
        run = here.account._run
        assert run is not None
        one = run.work.claimed(MessageId("m2"), message("m2", "uno"), 0, 0, 1)
        of(here).edit(key_of(), one)
        assert run.room._total == 2
        of(here).edit(key_of("new"), replace(one, message_id=MessageId("m9")))
        assert run.room._total == 3
        assert [len(each._queue) for each in of(here).by_key.values()] == [2, 1]
        await settle()


async def test_in_the_end_every_session_is_hung_up_on() -> None:
    async with desk() as here:
        await here.say("x", "s1")
        await here.say("x", "s2")
        await here.answered(2)
        await of(here).close()
        await until(lambda: here.server.closed == 2)


async def test_taking_back_what_is_not_worked_on_cancels_nothing() -> None:
    async with desk() as here:
        await here.say("one")
        await here.answered(1)
        of(here).take_back(key_of(), MessageId("gone"))
        of(here).take_back(ConversationKey("nobody"), MessageId("gone"))
        assert here.server.frames("turn.cancel") == []


async def test_one_that_has_a_session_again_once_it_retired_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with desk() as here:
        await here.say("one")
        await here.answered(1)
        conversation = of(here).by_key[key_of()]

        async def needed_meanwhile() -> None:
            conversation.leaving = False

        monkeypatch.setattr(conversation, "retire", needed_meanwhile)
        of(here).retire(key_of())
        await settle()
        assert of(here).by_key[key_of()] is conversation


async def test_stop_ends_all_of_one_conversation_and_of_none_nothing() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.say("long one")
        await here.say("two")
        await until(lambda: prompts(here) == ["long one"])
        of(here).stop(key_of(STRANGER))
        of(here).stop(key_of())
        assert of(here).now(key_of()).ending == 2
        assert of(here).now(key_of()).running == []
        await until(lambda: not of(here).is_busy(key_of()))
        assert here.channel.texts() == []


async def test_what_a_conversation_has_to_do_is_told_from_memory() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        assert of(here).now(key_of()) == Now()
        await here.say("one")
        await here.say("two")
        await until(lambda: held.started == ["one"])
        await here.clock.advance(7)
        now = of(here).now(key_of())
        assert ([m.message_id for m in now.running], now.seconds) == (["m1"], 7)
        assert [m.message_id for m in now.waiting] == ["m2"]
        held.let_go("one")
        held.let_go("two")
        await here.answered(2)


async def test_a_session_is_renewed_at_once_or_once_nothing_runs_on_it() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        of(here).renew(key_of())
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.store.do(UnbindSession(NAME, key_of()))
        of(here).renew(key_of())
        held.let_go("one")
        held.let_go("two")
        held.let_go("three")
        await here.say("two")
        await here.answered(2)
        assert here.server.opened == 2
        await here.store.do(UnbindSession(NAME, key_of()))
        of(here).renew(key_of())
        await until(lambda: key_of() not in of(here).by_key)
        await here.say("three")
        await here.answered(3)
        assert here.server.opened == 3


async def test_what_has_just_come_may_take_the_place_of_what_runs() -> None:
    async with desk(script={"turn": cancellable}, settings={"when_busy": "interrupt"}) as here:
        await here.say("long one")
        await until(lambda: prompts(here) == ["long one"])
        await here.say("two")
        assert (await here.answered(2))[1] == "echo: two"
