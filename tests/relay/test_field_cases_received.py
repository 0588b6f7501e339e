"""What broke comparable systems on a message's way in, tried on a running account; numbers name the cases."""

import asyncio

from bridge.channel import Batch, Claimed, Inbound
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.errors import StoreError
from bridge.store.contract import Claim, Step
from tests.relay.harness import (
    STRANGER,
    Desk,
    PollingChannel,
    desk,
    homes,
    message,
    put_under,
)
from tests.relay.scripted import Frame, Peer, answer


def update(number: int) -> Inbound:
    """What a polled platform numbers; the checkpoint is the next number that it is asked for."""
    return message(str(number), f"text {number}")


async def test_case_39_a_restart_polls_on_behind_what_is_durable_and_older_items_run_no_more() -> None:
    async with homes() as home:
        clock, before, after = FakeClock(), PollingChannel(), PollingChannel()
        before.batches = [Batch([update(10), update(11), update(12)], checkpoint="13")]
        async with desk(before, home=home, clock=clock) as here:
            assert sorted(await here.answered(3)) == [f"echo: text {n}" for n in (10, 11, 12)]
        after.batches = [Batch([update(11), update(12), update(13)], checkpoint="14")]
        async with desk(after, home=home, clock=clock) as here:
            assert await here.answered(1) == ["echo: text 13"]
            assert after.polled == ["13", "14"]


class Dying:
    """The account's store; a claim is lost as by a crash right before it is written."""

    def __init__(self, here: Desk) -> None:
        self._real = here.store

    async def do(self, step: Step[object]) -> object:
        if isinstance(step, Claim):
            await asyncio.get_running_loop().create_future()
        return await self._real.do(step)

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


async def test_case_40_no_crash_loses_what_was_received_and_not_yet_claimed() -> None:
    async with homes() as home:
        clock, before, after = FakeClock(), PollingChannel(), PollingChannel()
        async with desk(before, home=home, clock=clock, run=False) as here:
            put_under(here, Dying(here))
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(here.account.run(here.health))
                before.batches = [Batch([update(20), update(21)], checkpoint="22")]
                await until(lambda: not before.batches)
                await settle()
                assert before.polled == [""]  # nothing is confirmed to the platform
                running.cancel()
        after.batches = [Batch([update(20), update(21)], checkpoint="22")]
        async with desk(after, home=home, clock=clock) as here:
            await here.answered(2)
            assert sorted(here.channel.texts()) == ["echo: text 20", "echo: text 21"]
            assert after.polled == ["", "22"]


async def test_case_33_a_push_is_acknowledged_before_its_turn_and_its_repeats_start_no_other() -> None:
    finish = asyncio.Event()

    async def slow(peer: Peer, start: Frame) -> None:
        await finish.wait()
        await answer(peer, start)

    async with desk(script={"turn": slow}) as here:
        told = []
        for seconds in (16, 44, 30):
            told.append((await here.push(message("m1", "build it"))).body.decode())
            await here.clock.advance(seconds)
        assert told == [Claimed.ACCEPTED, Claimed.DUPLICATE, Claimed.DUPLICATE]
        finish.set()
        assert await here.answered(1) == ["echo: build it"]
        assert (await here.push(message("m1", "build it"))).body == b"duplicate"
        await settle()
        assert len(here.server.frames("turn.start")) == 1


async def test_case_27_an_exchange_with_a_machine_that_answers_each_answer_ends_at_its_limit() -> None:
    async with desk(settings={"messages_per_minute": 5}) as here:
        for n in range(20):  # it thanks for whatever it is sent
            await here.say(f"thank you {n}", STRANGER)
            await here.answered(min(n + 1, 6))
        said = [f"echo: thank you {n}" for n in range(5)]
        assert (here.channel.texts()[:5], len(here.channel.texts())) == (said, 6)  # with one notice


async def test_case_15_a_session_that_the_server_does_not_know_any_more_is_replaced_once() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock) as here:
            await here.say("one")
            await here.answered(1)
        async with desk(home=home, clock=clock, script={"refuse_attach": "session_not_found"}) as here:
            here.count = 1
            for count, text in enumerate(("two", "three", "four"), 1):
                await here.say(text)
                assert (await here.answered(count))[-1] == f"echo: {text}"
            assert [len(here.server.frames(f"session.{kind}")) for kind in ("attach", "start")] == [1, 1]


async def test_case_34_a_batch_whose_claim_fails_is_told_of_and_runs_once_it_is_stored() -> None:
    channel = PollingChannel()
    async with desk(channel, run=False) as here:
        put_under(here, Failing(here, 3))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            channel.batches = [Batch([update(1)], checkpoint="2")]
            await until(lambda: not channel.batches)
            for _ in range(4):
                await settle()
                await here.clock.advance(60)
            assert await here.answered(1) == ["echo: text 1"]
            assert channel.polled == ["", "2"]
            assert any(told not in ("contact", "again") for told in here.health.told)
            assert here.health.told[-1] == "contact"
            running.cancel()


class Failing(Dying):
    """Its first claims fail."""

    def __init__(self, here: Desk, times: int) -> None:
        super().__init__(here)
        self._left = times

    async def do(self, step: Step[object]) -> object:
        if isinstance(step, Claim) and self._left:
            self._left -= 1
            raise StoreError("the disk is full")
        return await self._real.do(step)
