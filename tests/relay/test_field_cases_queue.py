"""What broke comparable systems in the field, of queues and restarts; the numbers name the cases."""

import pytest

from bridge.channel.testing.clock import FakeClock, until
from bridge.relay import working
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import CountsOf, OpenMessages
from tests.relay.harness import NAME, desk, homes, message
from tests.relay.scripted import Frame, Peer, answer, cancellable
from tests.relay.test_changes import prompts, recall


async def endless(peer: Peer, start: Frame) -> None:
    await peer.turn("turn.started", start["request_id"])


async def test_case_16_a_turn_that_ends_at_once_is_answered_once() -> None:
    """One step stores a reply and one lane sends it: there is no second owner of the answer."""
    async with desk() as here:
        said: list[str] = []
        for number in range(20):
            await here.say(f"quick {number}")
            said = await here.answered(number + 1)
        assert said == [f"echo: quick {number}" for number in range(20)]
        assert len({one.client_id for one in here.channel.sent}) == 20


async def test_case_56_a_message_that_many_restarts_keep_from_its_turn_is_not_given_up() -> None:
    """No count of tries is kept for what was never given to an agent, so none can run out."""
    clock = FakeClock()
    async with homes() as home:
        async with desk(home=home, clock=clock, script={"turn": endless}) as here:
            await here.push(message("m0", "first"), message("m1", "second"))
            await until(lambda: prompts(here) == ["first"])
        told = say(Text.INTERRUPTED, Language.EN)
        for restart in range(10):
            async with desk(
                home=home, clock=clock, script={"refuse_start": "internal_error"}, run=False
            ) as here:
                waiting = await here.store.get(OpenMessages(NAME))
                assert [one.message_id for one in waiting] == ["m0", "m1"], f"lost at restart {restart}"
        async with desk(home=home, clock=clock) as here:
            assert await here.answered(2) == [told, "echo: second"]
            assert prompts(here) == ["second"]
            counts = await here.store.get(CountsOf(NAME))
            assert (counts.waiting, counts.dead) == (0, 0)


async def test_case_67_after_a_stop_the_next_messages_share_one_session() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.push(message("m0", "long"))
        await until(lambda: prompts(here) == ["long"])
        await recall(here, "m0")
        for number in range(3):
            await here.push(message(f"n{number}", f"after {number}"))
        assert await here.answered(3) == [f"echo: after {number}" for number in range(3)]
        assert (here.server.opened, here.server.closed) == (1, 0)


async def test_case_67_a_turn_that_does_not_stop_costs_its_session_once_and_the_next_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that ignores the cancel: its session is given up, and what follows shares a new one."""

    async def deaf(peer: Peer, start: Frame) -> None:
        await (endless if "long" in start["prompt"] else answer)(peer, start)

    monkeypatch.setattr(working, "CANCEL_SECONDS", 0.01)
    async with desk(script={"turn": deaf}) as here:
        await here.push(message("m0", "long"))
        await until(lambda: prompts(here) == ["long"])
        await recall(here, "m0")
        for number in range(3):
            await here.push(message(f"n{number}", f"after {number}"))
        assert await here.answered(3) == [f"echo: after {number}" for number in range(3)]
        assert here.server.opened <= 2
