"""What a run of an account is made of: each part only once something needs it."""

import asyncio

from bridge.channel import Batch, Identity, Inbound
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.relay.ahead import Ahead, Said
from bridge.relay.payload import conversation_of
from bridge.relay.run import Run
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import Bind, OpenParts
from tests.relay.harness import (
    NAME,
    OWNER,
    STRANGER,
    Desk,
    PollingChannel,
    ProbedChannel,
    PushedChannel,
    desk,
    homes,
    message,
)
from tests.relay.responding import Platform, RespondingChannel, SilentChannel
from tests.relay.test_asked import AskedChannel, ask
from tests.relay.test_field_cases import endless

PARTS = {"claims", "conversations", "delivery", "new_parts", "responses", "room", "work"}


def run_of(here: Desk) -> Run:
    assert here.account._run is not None
    return here.account._run


def made(here: Desk) -> set[str]:
    return PARTS & vars(run_of(here)).keys()


async def test_a_run_that_nothing_comes_to_makes_none_of_its_parts() -> None:
    channel = PollingChannel()
    channel.batches = [Batch([], "c1"), Batch([], "c2")]
    async with desk(channel) as here:
        await until(lambda: channel.polled == ["", "c1", "c2"])
        await settle()
        assert made(here) == set()
        assert here.clock.waits() == []
        assert await here.store.do(Bind(NAME, here.account._setup.fingerprint)) == "c2"


async def test_the_first_message_makes_what_it_needs_and_idle_sessions_are_looked_at_from_then_on() -> None:
    async with desk() as here:
        assert made(here) == set()
        await here.say("hi")
        assert await here.answered(1) == ["echo: hi"]
        assert made(here) == {"claims", "conversations", "delivery", "responses", "room", "work"}
        await here.clock.advance(1900)
        await until(lambda: here.server.closed == 1)


async def test_a_message_of_the_operator_s_needs_delivery_alone() -> None:
    async with desk() as here:
        await here.account.post("to", "hello", ())
        assert await here.answered(1) == ["hello"]
        assert made(here) == {"delivery"}


async def test_what_the_last_run_left_is_taken_up_at_once() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, script={"turn": endless}) as before:
            await before.say("one")
            await until(lambda: len(before.server.frames("turn.start")) == 1)
        async with desk(home=home, clock=clock) as after:
            assert len(await after.answered(1)) == 1
            assert "claims" not in made(after)


async def test_a_channel_that_is_asked_for_its_parts_is_told_of_them_and_never_sends() -> None:
    async with desk(AskedChannel()) as here, asyncio.TaskGroup() as tasks:
        run = run_of(here)
        run.drop_reply("none")
        waiting = tasks.create_task(ask(here, 0, 10))
        await settle()
        await here.account.post("to", "hello", ())
        assert [text for _, text in await waiting] == ["hello"]
        assert made(here) == {"new_parts"}
        run.add([])
        run.release([])


async def test_a_reply_that_the_store_has_ended_leaves_its_lane() -> None:
    async with desk() as here:
        here.channel.outcomes = [OSError()]
        await here.account.post("to", "hello", ())
        await settle()
        (part,) = await here.store.get(OpenParts(NAME))
        run_of(here).drop_reply(part.reply_id)
        await here.clock.advance(100)
        assert len(here.channel.sent) == 1


async def test_requests_that_are_held_end_with_the_run() -> None:
    for channel in (RespondingChannel(), SilentChannel()):
        async with desk(channel, run=False, script={"turn": endless}) as here, asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await until(lambda here=here: here.account._run is not None)  # type: ignore[misc]  # a default
            platform = Platform(here)
            waiting = tasks.create_task(platform.attempt(message("m1", "hi")))
            await platform.held()
            running.cancel()
            assert await waiting in ("-", "accepted")


async def test_who_the_bot_is_is_known_to_what_comes_after_the_probe() -> None:
    async with desk(ProbedChannel()) as here:
        await until(lambda: run_of(here).identity == Identity("bot", "Bot"))


async def test_a_session_of_an_account_that_asks_its_owner_says_so() -> None:
    for approvals in ("ask", "auto"):
        async with desk(PushedChannel(), settings={"approvals": approvals}) as here:
            work = run_of(here).work
            assert (work.authority.asks, work.approvals is not None) == (approvals == "ask",) * 2
            assert work.policy.owner == OWNER


async def test_a_plain_word_answers_no_question_of_the_daemon_s_while_an_approval_waits_beside_it() -> None:
    acted: list[str] = []

    def answer(item: Inbound) -> Said | None:
        return Said("noted", lambda: acted.append(item.text)) if item.text == "yes" else None

    async with desk(ahead=Ahead(for_answered=[answer])) as here:
        approvals = here.account._lasting.approvals
        approvals.open("a1", conversation_of(message("m", "yes")), 60)
        await here.say("yes")
        assert await here.answered(1) == [say(Text.QUESTION_WHICH, Language.EN)]
        assert acted == []
        approvals.close("a1")
        await here.say("yes")
        assert (await here.answered(2))[1] == "noted"
        assert acted == ["yes"]


async def test_what_senders_used_of_their_day_is_remembered_at_the_start() -> None:
    async with homes() as home:
        async with desk(home=home, settings={"senders": "anyone", "turns_per_day": 1}) as here:
            await here.say("hi", sender=STRANGER)
            await here.answered(1)
            clock = here.clock
        async with desk(home=home, clock=clock, settings={"senders": "anyone", "turns_per_day": 1}) as here:
            assert "room" in made(here)
            assert run_of(here).room.senders.over(conversation_of(message("m9", "hi", sender=STRANGER)))


async def test_copies_that_no_part_needs_are_removed() -> None:
    async with desk() as here:
        folder = here.account._setup.home.private_dir(here.account._setup.home.outbox)
        copy = folder / "0123456789ab-a.txt"
        copy.write_text("x")
        run_of(here).release([str(copy)])
        await until(lambda: not copy.exists())


async def test_a_channel_that_is_asked_for_its_parts_has_a_delivery_that_sends_none() -> None:
    async with desk(AskedChannel()) as here:
        assert run_of(here).delivery.waits("to") is False
        await settle()
        assert here.channel.sent == []
