"""An account from request to reply: claims, polling, probing, asking, binding, room."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from bridge.channel import (
    Answer,
    Ask,
    Batch,
    ChannelError,
    ConfigError,
    CredentialsError,
    FileKind,
    FileWanted,
    Follow,
    Ignored,
    Item,
    Limit,
    LiveTurn,
    RemoteFile,
    Request,
    Unit,
    UnreachableError,
    Unreadable,
    WaitingPart,
)
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.errors import StoreError
from bridge.meter import StoreMeter
from bridge.relay.account import Account
from bridge.relay.limits import DAY_SECONDS
from bridge.relay.outbox import ReplyFile
from bridge.relay.silence import BATCH_ITEMS, SILENT
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import (
    Claim,
    CountsOf,
    Hold,
    OpenMessages,
    OpenParts,
    PartsOf,
    PartState,
    Query,
    Step,
    Store,
)
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from tests.relay.harness import (
    NAME,
    STRANGER,
    Desk,
    FakeHealth,
    PollingChannel,
    ProbedChannel,
    PushedChannel,
    desk,
    homes,
    message,
    put_under,
    setup_for,
)
from tests.relay.responding import Platform, SilentChannel
from tests.relay.scripted import Frame, Peer
from tests.store.around import Around

R = TypeVar("R")
BUSY = say(Text.BUSY, Language.EN)


async def endless(peer: Peer, start: Frame) -> None:
    await peer.turn("turn.started", start["request_id"])


class Faulty(Around):
    """A store whose next claims fail, or wait."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.errors: list[Exception] = []
        self.waiting: asyncio.Future[None] | None = None
        self.reading: asyncio.Future[None] | None = None
        self.unreadable: set[type[Query[Any]]] = set()
        self.length = 0

    async def do(self, step: Step[R]) -> R:
        if isinstance(step, Claim):
            if self.waiting is not None:
                await self.waiting
            if self.errors:
                raise self.errors.pop(0)
        return await self._store.do(step)

    async def get(self, query: Query[R]) -> R:
        if type(query) in self.unreadable:
            raise StoreError("the disk cannot be read")
        if isinstance(query, PartsOf) and self.reading is not None:
            await self.reading
        return await self._store.get(query)

    def backlog(self) -> int:
        return self.length


def swap_store(here: Desk) -> Faulty:
    """Put a faulty store under a running account."""
    faulty = Faulty(here.store)
    put_under(here, faulty)
    if here.account._run is not None:
        here.account._run.claims.store = faulty
    return faulty


async def test_the_answer_comes_after_the_claim_is_durable_and_waits_for_nothing_else() -> None:
    async with desk(script={"turn": endless}) as here:
        assert (await here.say("hi")).body == b"accepted"
        (waiting,) = await here.store.get(OpenMessages(NAME))
        assert waiting.message_id == "m1"


async def test_case_34_what_could_not_be_stored_is_not_acknowledged_and_its_repeat_runs_once() -> None:
    async with desk() as here:
        faulty = swap_store(here)
        faulty.errors = [StoreError("the disk is full")]
        with pytest.raises(StoreError):
            await here.push(message("m1"))
        assert (await here.push(message("m1"))).body == b"accepted"
        assert (await here.push(message("m1"))).body == b"duplicate"
        assert await here.answered(1) == ["echo: hello"]


async def test_a_notice_that_cannot_be_read_strands_no_message_of_its_batch() -> None:
    voice = message("v1", "", files=(RemoteFile("k", FileKind.AUDIO),))
    async with homes() as home:
        async with desk(home=home, run=False) as before:
            faulty = swap_store(before)
            faulty.unreadable.add(PartsOf)
            running = asyncio.ensure_future(before.account.run(before.health))  # noqa: TID251 - awaited below
            await settle()
            assert (await before.push(voice, message("m1"))).body == b"accepted,accepted"
            with pytest.raises(ExceptionGroup) as ended:
                await running
            assert ended.group_contains(StoreError)
        async with desk(home=home) as after:
            await until(lambda: len(after.channel.texts()) == 2)


async def test_messages_of_a_batch_run_before_those_that_come_while_its_notices_are_read() -> None:
    voice = message("v1", "", files=(RemoteFile("k", FileKind.AUDIO),))
    async with desk() as here, asyncio.TaskGroup() as tasks:
        faulty = swap_store(here)
        faulty.reading = asyncio.get_running_loop().create_future()
        tasks.create_task(here.push(voice, message("m1", "first")))
        tasks.create_task(here.push(message("m2", "second")))
        await settle()
        faulty.reading.set_result(None)
        await until(lambda: len(here.server.frames("turn.start")) == 2)
        assert [frame["prompt"] for frame in here.server.frames("turn.start")] == ["first", "second"]


async def test_conversations_without_a_session_make_room_as_well() -> None:
    async with desk(limits={"sessions": 3, "owner_sessions": 0}) as here:
        await here.say("hi")
        await here.answered(1)
        nothing = RemoteFile("k", FileKind.FILE, "a.bin", fetchable=False)
        for n in range(5):
            await here.push(message(f"x{n}", "", f"other{n}", files=(nothing,)))
            await here.answered(2 + n)
            await here.say("still there")
            assert (await here.answered(2 + n))[0] == "echo: hi"
        run = here.account._run
        assert run is not None
        assert len(run.conversations.by_key) == 3
        assert here.server.opened == 1


async def hang_up(here: Desk, *items: Item) -> None:
    """Push and hang up while the claim waits for the store, which takes it all the same."""
    async with asyncio.TaskGroup() as tasks:
        pushing = tasks.create_task(here.push(*items))
        await asyncio.sleep(0)
        pushing.cancel()
    assert pushing.cancelled()


async def test_a_request_that_hung_up_during_its_claim_is_answered_all_the_same() -> None:
    async with desk(limits={"conversation_claims": 2}) as here:
        await hang_up(here, Ignored("own"), message("m1"))
        assert await here.answered(1) == ["echo: hello"]
        await hang_up(here, message("m1"))
        await settle()
        assert [(await here.push(message(f"n{n}"))).body for n in range(2)] == [b"accepted"] * 2
        assert len(await here.answered(3)) == 3


async def test_a_notice_to_a_request_that_hung_up_is_sent_all_the_same() -> None:
    async with desk() as here:
        await hang_up(here, message("m1", "", files=(RemoteFile("k", FileKind.AUDIO),)))
        assert await here.answered(1) == [say(Text.VOICE, Language.EN)]


async def test_a_claim_stored_while_the_account_stops_is_acknowledged_and_run_by_the_next_run() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, run=False) as before, asyncio.TaskGroup() as tasks:
            faulty = swap_store(before)
            running = tasks.create_task(before.account.run(before.health))
            await settle()
            faulty.waiting = asyncio.get_running_loop().create_future()
            pushing = tasks.create_task(before.push(message("m1")))
            await settle()
            running.cancel()
            await settle()
            faulty.waiting.set_result(None)
            assert (await pushing).body == b"accepted"
        async with desk(home=home, clock=clock) as after:
            assert await after.answered(1) == ["echo: hello"]


async def test_a_claim_that_was_not_stored_holds_no_room() -> None:
    async with desk(limits={"conversation_claims": 1}) as here:
        faulty = swap_store(here)
        faulty.errors = [StoreError("full")]
        with pytest.raises(StoreError):
            await here.push(message("m1"))
        assert (await here.push(message("m2"))).body == b"accepted"


async def test_case_4_the_same_message_twice_at_once_is_one_turn() -> None:
    async with desk() as here:
        async with asyncio.TaskGroup() as tasks:
            pushes = [tasks.create_task(here.push(message("m1"))) for _ in range(2)]
        assert sorted(push.result().body for push in pushes) == [b"accepted", b"duplicate"]
        assert await here.answered(1) == ["echo: hello"]
        assert len(here.server.frames("turn.start")) == 1


async def test_case_1_nothing_is_answered_again_after_a_restart() -> None:
    async with homes() as home:
        clock = FakeClock()
        first = [message(f"m{n}", f"text {n}", stamp=str(n)) for n in range(3)]
        async with desk(home=home, clock=clock) as before:
            await before.push(*first)
            await before.answered(3)
        async with desk(home=home, clock=clock) as after:
            same, again = first[0], replace(first[1], message_id="other", reply_to="other")
            new = message("new", "text 9", stamp="9")
            assert (await after.push(same, again, new)).body == b"duplicate,duplicate,accepted"
            assert await after.answered(1) == ["echo: text 9"]


async def test_case_2_a_redelivery_under_a_new_id_is_dropped_and_an_unseen_older_message_runs() -> None:
    async with desk() as here:
        at = here.clock.now()
        one = message("m1", "one", stamp="1000", sent_at=at)
        two = message("m2", "two", stamp="6000", sent_at=at + timedelta(seconds=5))
        await here.push(one)
        await here.push(two)
        await here.answered(2)
        again = replace(one, message_id="m1b")
        older = message("m0", "zero", stamp="500", sent_at=at - timedelta(seconds=1))
        elsewhere = replace(one, message_id="m1c", chat="other chat")
        assert (await here.push(again, older, elsewhere)).body == b"duplicate,accepted,accepted"
        assert sorted(await here.answered(4)) == ["echo: one", "echo: one", "echo: two", "echo: zero"]


async def test_an_id_with_another_body_is_a_conflict_and_nothing_runs() -> None:
    async with desk() as here:
        await here.push(message("m1", "one", body_digest="a"))
        assert (await here.push(message("m1", "two", body_digest="b"))).body == b"conflict"
        assert await here.answered(1) == ["echo: one"]


async def test_case_17_other_events_are_acknowledged_and_the_next_message_is_answered() -> None:
    async with desk() as here:
        assert (await here.push(Ignored("event"))).body == b"ignored"
        assert (await here.push(Ignored("own", "e1"), Unreadable("broken"))).body == b"ignored,ignored"
        assert (await here.push(Ignored("own", "e1"))).body == b"duplicate"
        await here.say("hi")
        assert await here.answered(1) == ["echo: hi"]


async def test_strangers_of_an_owner_s_account_get_nothing_at_all() -> None:
    async with desk(settings={"senders": "owner"}) as here:
        files = (RemoteFile("k", FileKind.IMAGE),)
        assert (await here.say("hi", STRANGER, files=files)).body == b"ignored"
        await settle()
        assert (here.channel.sent, here.channel.fetched, here.server.peers) == ([], [], [])
        assert (await here.push(message("m1", sender=STRANGER))).body == b"duplicate"


async def test_voice_alone_is_answered_at_once_without_a_turn() -> None:
    async with desk() as here:
        assert (await here.say("", files=(RemoteFile("k", FileKind.AUDIO),))).body == b"accepted"
        assert await here.answered(1) == [say(Text.VOICE, Language.EN)]
        assert here.server.peers == []


async def test_the_ninth_message_of_a_chat_gets_one_busy_notice_and_another_a_minute_later() -> None:
    async with desk(script={"turn": endless}) as here:
        results = [(await here.say(f"t{n}")).body for n in range(10)]
        assert results == [b"accepted"] * 8 + [b"busy"] * 2
        assert await here.answered(1) == [BUSY]
        assert here.channel.sent[0].reply_to == "m9"
        await here.clock.advance(61)
        await here.say("t10")
        assert await here.answered(2) == [BUSY, BUSY]
        assert (await here.store.get(CountsOf(NAME))).waiting == 8


async def test_strangers_cannot_lock_the_owner_out() -> None:
    limits = {"account_claims": 3, "owner_claims": 1, "turns": 2, "owner_turns": 1}
    async with desk(script={"turn": endless}, limits=limits) as here:
        assert [(await here.say("x", f"s{n}")).body for n in range(3)] == [b"accepted", b"accepted", b"busy"]
        assert (await here.say("mine")).body == b"accepted"
        await until(lambda: len(here.server.frames("turn.start")) == 2)
        assert here.server.frames("turn.start")[1]["prompt"] == "mine"


async def test_at_most_so_many_conversations_run_turns_at_once() -> None:
    async with desk(script={"turn": endless}, limits={"owner_turns": 0}) as here:
        for n in range(5):
            await here.say("x", f"s{n}")
        await until(lambda: len(here.server.frames("turn.start")) == 4)
        await settle()
        assert len(here.server.frames("turn.start")) == 4


async def test_the_conversation_idle_longest_makes_room_for_a_new_one() -> None:
    async with desk(limits={"sessions": 2, "owner_sessions": 0}) as here:
        for n in range(3):
            await here.say("x", f"s{n}")
            await here.answered(n + 1)
            await here.clock.advance(1)
        await until(lambda: here.server.closed == 1)
        closed = [peer.session_id for peer in here.server.peers if peer.writer.is_closing()]
        assert closed == ["s1"]


async def test_a_request_while_the_account_does_not_run_is_told_to_come_back() -> None:
    async with desk(run=False) as here:
        answer = await here.push(message("m1"))
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")


async def test_a_backlog_of_the_store_refuses_before_the_claim() -> None:
    async with desk() as here:
        swap_store(here).length = 5001
        assert (await here.push(message("m1"))).status == 503
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_an_adapter_s_own_answer_ends_the_request() -> None:
    async with desk() as here:
        refusal = Answer(401, b"no")
        assert await here.push(refusal) == refusal


@pytest.mark.parametrize("path", ["/x", "/replies", "/files/abc"])
async def test_other_paths_are_not_found_where_the_channel_has_no_use_for_them(path: str) -> None:
    async with desk() as here:
        assert (await here.push(message("m1"), path=path)).status == 404


async def test_an_id_too_long_to_store_is_skipped_and_the_rest_is_claimed() -> None:
    async with desk() as here:
        assert (await here.push(message("m" * 300), message("m2"))).body == b"ignored,accepted"
        assert await here.answered(1) == ["echo: hello"]


# --- polling --------------------


async def test_a_batch_is_durable_before_the_next_is_asked_for() -> None:
    channel = PollingChannel()
    channel.batches = [Batch([message("m1"), message("m1")], "c1"), Batch([], None)]
    async with homes() as home:
        clock = FakeClock()
        async with desk(channel, home=home, clock=clock) as here:
            await here.answered(1)
            assert channel.polled == ["", "c1", "c1"]
            assert here.health.told[0] == "contact"
        again = PollingChannel()
        async with desk(again, home=home, clock=clock):
            assert again.polled == ["c1"]


async def test_trouble_in_receiving_leaves_turns_alone_and_is_tried_again() -> None:
    channel = PollingChannel()
    channel.batches = [
        Batch([message("m1")], "c1"),
        ChannelError("503"),
        ChannelError("503"),
        Batch([message("m2")], "c2"),
    ]
    async with desk(channel) as here:
        await here.answered(1)
        assert here.health.told[-1] == "receiving fails; it is tried again"
        await here.clock.advance(5)
        await here.answered(2)
        assert channel.polled == ["", "c1", "c1", "c1", "c2"]


async def test_a_batch_that_is_too_large_is_refused_whole() -> None:
    channel = PollingChannel()
    channel.batches = [Batch([message(f"m{n}") for n in range(BATCH_ITEMS + 1)], "c1")]
    async with desk(channel) as here:
        assert here.health.told[-1] == "receiving fails; it is tried again"
        assert await here.store.get(OpenMessages(NAME)) == ()
        await here.clock.advance(5)
        assert channel.polled == ["", ""]


async def test_a_batch_that_could_not_be_stored_is_stored_before_the_next_poll_acknowledges_it() -> None:
    channel = PollingChannel()
    async with desk(channel, run=False) as here:
        faulty = swap_store(here)
        faulty.errors = [StoreError("full")]
        channel.batches = [Batch([message("m1")], "c1")]
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await settle()
            assert channel.polled == [""]
            await here.clock.advance(5)
            await here.answered(1)
            assert channel.polled == ["", "c1"]
            running.cancel()


async def test_refused_credentials_end_the_run() -> None:
    channel = PollingChannel()
    channel.batches = [CredentialsError("revoked")]
    async with desk(channel, run=False) as here:
        with pytest.raises(ExceptionGroup) as ended:
            await here.account.run(here.health)
        assert ended.group_contains(CredentialsError)
        assert (await here.push(message("m1"))).status == 503


# --- binding, posting, counting -


async def test_other_credentials_on_stored_messages_are_refused_before_any_contact() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, script={"turn": endless}) as before:
            await before.say("hi")
        channel = PollingChannel()
        async with desk(home=home, clock=clock, run=False) as after:
            spec = {"identity": lambda settings, credentials: ("another",)}
            setup = setup_for(home, after.store, clock, channel, spec=spec)
            with pytest.raises(ConfigError, match="another bot"):
                await Account(setup).run(FakeHealth())
            assert channel.polled == []


async def test_an_operator_s_message_goes_out_in_parts_with_its_files() -> None:
    async with desk() as here:
        (copy := here.home.outbox / "0-a.txt").write_text("abc")
        count = await here.account.post("to-x", "x" * 5000, [ReplyFile(str(copy), "a.txt", "text/plain", 3)])
        assert count == 3
        await until(lambda: len(here.channel.sent) == 3)
        assert {part.to for part in here.channel.sent} == {"to-x"}
        assert (here.account.name, here.account.body_limit_bytes) == (NAME, 1_048_576)


async def test_a_message_posted_while_the_account_is_down_goes_out_with_the_next_run() -> None:
    async with desk(run=False) as here:
        await here.account.post("to-x", "hello", ())
        assert (await here.store.get(CountsOf(NAME))).open_parts == 1
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            assert await here.answered(1) == ["hello"]
            running.cancel()


async def test_case_57_finished_replies_go_out_after_a_restart_once_each() -> None:
    async with homes() as home:
        clock, down = FakeClock(), PushedChannel()
        down.outcomes = [ChannelError("down")] * 99
        async with desk(down, home=home, clock=clock) as before:
            for n in range(12):
                await before.say(f"t{n}", f"s{n}")
            await until(lambda: len(down.sent) >= 12)
        async with desk(home=home, clock=clock) as after:
            await after.clock.advance(60)
            texts = await after.answered(12)
            assert sorted(texts) == sorted(f"echo: t{n}" for n in range(12))
        async with desk(home=home, clock=clock) as last:
            await settle()
            assert last.channel.sent == []


class AskedChannel(PushedChannel):
    """Its replies are asked for, and it gives files out."""

    send: Any = None
    send_file: Any = None

    def ask(self, request: Request) -> Ask | Answer:
        return Ask(0, 0)

    async def told(self, ask: Ask, waiting: Sequence[WaitingPart]) -> Answer:
        return Answer(200, str(len(waiting)).encode())

    def file(self, request: Request) -> FileWanted | Answer:
        return Answer(410)


async def test_an_account_that_is_asked_keeps_its_replies_until_then() -> None:
    async with desk(AskedChannel()) as here:
        await here.say("hi")
        while (await here.push(path="/replies")).body != b"1":
            await settle()
        assert (await here.push(path="/files/x")).status == 410


async def test_a_reply_s_copies_are_removed_once_they_are_delivered() -> None:
    async with desk() as here:
        (copy := here.home.outbox / "0-a.txt").write_text("abc")
        await here.account.post("to", "", [ReplyFile(str(copy), "a.txt", "text/plain", 3)])
        await until(lambda: not copy.exists())


async def test_a_polled_account_is_never_healthy_by_its_sends_alone() -> None:
    channel = PollingChannel()
    channel.outcomes = [ChannelError("down")]
    async with desk(channel) as here:
        await here.account.post("to", "hello", ())
        await settle()
        await here.clock.advance(5)
        assert channel.texts() == ["hello", "hello"]
        assert here.health.told == ["sending fails; it is tried again"]


@pytest.mark.parametrize("field", ["message_id", "sender", "chat", "to", "reply_to", "thread", "body_digest"])
async def test_an_item_whose_ids_cannot_be_stored_is_left_out_and_harms_no_other(field: str) -> None:
    bad = replace(message("m1"), **{field: "a\ud800"})  # type: ignore[arg-type] # a name of the field
    async with desk() as here:
        assert (await here.push(bad, message("m2"))).body == b"ignored,accepted"
        assert await here.answered(1) == ["echo: hello"]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_a_redelivery_to_a_full_conversation_takes_nobody_s_busy_notice_away() -> None:
    async with desk(script={"turn": endless}, limits={"conversation_claims": 1}) as here:
        await here.push(message("m1"))
        assert (await here.push(message("m1"))).body == b"duplicate"
        assert (await here.push(message("m2"))).body == b"busy"
        assert await here.answered(1) == [BUSY]


async def test_a_busy_notice_that_could_not_be_stored_is_due_again() -> None:
    async with desk(script={"turn": endless}, limits={"conversation_claims": 1}) as here:
        await here.push(message("m1"))
        faulty = swap_store(here)
        faulty.errors = [StoreError("full")]
        with pytest.raises(StoreError):
            await here.push(message("m2"))
        assert (await here.push(message("m2"))).body == b"busy"
        assert await here.answered(1) == [BUSY]


async def test_a_probed_account_knows_its_bot_and_is_healthy_by_its_answers() -> None:
    async with desk(ProbedChannel()) as here:
        await until(lambda: "contact" in here.health.told)
        assert here.health.bot_id == "bot"


class HearingChannel(PushedChannel):
    """It hears and has no way to answer."""

    send: Any = None
    send_file: Any = None


async def test_a_channel_that_can_answer_in_no_way_still_runs_its_turns_and_keeps_the_replies() -> None:
    async with desk(HearingChannel()) as here:
        await here.say("hi")
        await until(lambda: len(here.server.frames("turn.start")) == 1)
        await until_stored(here)


async def until_stored(here: Desk) -> None:
    for _ in range(10_000):
        if (await here.store.get(CountsOf(NAME))).open_parts == 1:
            return
        await asyncio.sleep(0)
    raise AssertionError("the reply was not stored")


async def test_what_waits_from_a_sender_who_is_not_answered_any_more_is_dropped_at_the_start() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, script={"turn": endless}) as before:
            await before.say("one", STRANGER)
            await before.say("two", STRANGER)
            await until(lambda: len(before.server.frames("turn.start")) == 1)
        async with desk(home=home, clock=clock, settings={"senders": "owner"}) as after:
            assert len(await after.answered(1)) == 1  # what ran is told of; what waited is dropped
            assert (await after.store.get(CountsOf(NAME))).waiting == 0


class Followed(PushedChannel):
    """Its turns can be watched."""

    def follow(self, request: Request) -> Follow | Answer:
        return Answer(200, b"followed")

    def shown(self, follow: Follow, turn: LiveTurn) -> Answer:
        return Answer(200)


async def test_turns_are_followed_where_the_channel_lets_them() -> None:
    async with desk(Followed()) as here:
        assert (await here.push(path="/live")).body == b"followed"


async def test_where_responses_carry_replies_a_push_is_answered_by_its_reply_or_let_go_at_the_end() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(SilentChannel(), home=home, clock=clock, run=False) as here:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(here.account.run(here.health))
                await until(lambda: here.account._run is not None)
                platform = Platform(here)
                assert await platform.attempt(message("m1", "hi")) == "echo: hi"
                await settle()
                here.server.turn = endless
                waiting = tasks.create_task(platform.attempt(message("m2", "ho")))
                await platform.held()
                running.cancel()
                assert await waiting == "-"
            (waits,) = await here.store.get(OpenMessages(NAME))
            assert waits.message_id == "m2"


async def test_a_run_that_cannot_even_begin_ends_with_its_error() -> None:
    async with desk(run=False) as here:
        here.account._recover = None  # type: ignore[method-assign, assignment] # a bug
        with pytest.raises(ExceptionGroup):
            await here.account.run(here.health)


async def test_what_is_posted_while_the_account_starts_is_delivered_by_this_run_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with desk(run=False) as here:
        get, late = here.store.get, ["late"]

        async def read(query: Query[Any]) -> Any:
            if isinstance(query, OpenMessages) and late:  # what is open in the outbox was read before
                assert await here.account.post("to", late.pop(), ()) == 1
            return await get(query)

        monkeypatch.setattr(here.store, "get", read)
        await here.account.post("to", "early", ())
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await until(lambda: here.account._run is not None)
            await settle()
            assert here.channel.texts() == ["early", "late"]
            running.cancel()


async def test_a_poll_that_brings_nothing_new_costs_no_durable_step() -> None:
    channel = PollingChannel()
    channel.batches = [Batch([], "c1"), Batch([], "c1"), Batch([], None), Batch([], "c2")]
    meter = StoreMeter(FakeClock())
    async with homes() as home, open_store(home.db, workers=InlineWorker, meter=meter) as store:
        account = Account(setup_for(home, store, FakeClock(), channel))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(account.run(FakeHealth()))
            await until(lambda: channel.polled == ["", "c1", "c1", "c1", "c2"])
            running.cancel()
    assert meter.steps == 4  # bound, recovered, and the checkpoint moved twice


async def test_a_text_is_one_message_as_long_as_the_platform_takes_it() -> None:
    async with desk(spec={"text_limit": Limit(10, Unit.CODEPOINTS)}) as here:
        assert here.account.takes("是" * 10)
        assert not here.account.takes("是" * 11)


async def test_a_reply_that_was_ended_elsewhere_is_not_sent_any_more() -> None:
    channel = PushedChannel()
    channel.outcomes = [UnreachableError("away")]
    async with desk(channel) as here:
        await here.account.post("u1", "hello", [])
        await settle()
        (part,) = await here.store.get(OpenParts(NAME))
        await here.store.do(Hold(part.part_id, PartState.EXPIRED, "", 1, "not asked any more"))
        here.account.drop_reply(part.reply_id)
        await here.clock.advance(60)
        await settle()
        assert channel.texts() == ["hello"]
    async with desk(run=False) as stopped:
        stopped.account.drop_reply("r")


async def test_pushes_and_batches_with_items_end_the_silence_of_an_account_that_expects_them() -> None:
    settings = {"expect_every_seconds": 60}
    async with desk(settings=settings) as here:
        await here.clock.advance(60)
        assert here.health.told[-1] == SILENT
        await here.push(Ignored("own"))
        assert here.health.told[-1] == "contact"
    channel = PollingChannel()
    channel.batches = [Batch([message("m1")], "c1")]
    async with desk(channel, settings=settings) as here:
        await here.answered(1)
        await here.clock.advance(59)
        assert SILENT not in here.health.told
        await here.clock.advance(1)
        assert here.health.told[-1] == SILENT


async def test_the_turns_of_a_day_are_counted_over_a_restart() -> None:
    settings = {"turns_per_day": 1}
    async with homes() as home:
        async with desk(home=home, settings=settings) as before:
            await before.say("one", STRANGER)
            await before.answered(1)
            clock = before.clock
        async with desk(home=home, clock=clock, settings=settings) as after:
            assert (await after.push(message("n1", sender=STRANGER))).body == b"busy"
            await after.clock.advance(DAY_SECONDS)
            assert (await after.push(message("n2", sender=STRANGER))).body == b"accepted"


async def test_old_received_files_are_swept_where_there_are_any() -> None:
    async with desk() as here:
        await here.account.sweep()  # nothing was ever received
        folder = here.account._setup.inbox / "somebody"
        folder.mkdir(parents=True)
        old = folder / "old.png"
        old.write_bytes(b"x")
        os.utime(old, (0, 0))
        await here.account.sweep()
        assert not old.exists()
