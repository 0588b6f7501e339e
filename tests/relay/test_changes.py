"""Messages that are taken back or changed while they are on their way."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from bridge.channel import (
    Batch,
    Edited,
    FileKind,
    Incoming,
    Recalled,
    RemoteFile,
    UnreachableError,
)
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.errors import StoreError
from bridge.relay import working
from bridge.relay.texts import Language, Text, say
from bridge.store.change_steps import RECALLED
from bridge.store.contract import (
    Answer,
    Claim,
    CountsOf,
    Edit,
    HeldTexts,
    MessageOf,
    MessageState,
    OpenMessages,
    Query,
    Recall,
    Start,
    Step,
    Store,
)
from tests.relay.harness import (
    HOUR,
    NAME,
    OWNER,
    STRANGER,
    Desk,
    PollingChannel,
    PushedChannel,
    after_starts,
    desk,
    homes,
    message,
    put_under,
)
from tests.relay.scripted import Frame, Peer, answer, attach, cancellable
from tests.relay.test_conversation import Held, key_of
from tests.store.around import Around

R = TypeVar("R")


class Slow(PushedChannel):
    """Its downloads and its typing wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    def fetch(self, file: RemoteFile, max_bytes: int) -> Any:
        return self._slowly(file)

    @asynccontextmanager
    async def _slowly(self, file: RemoteFile) -> Any:
        self.fetched.append(file.key)
        await self.gate.wait()

        async def chunks() -> Any:
            yield b"data"

        yield Incoming(chunks())


class Watched(Around):
    """A store that delays what it tells of some steps, as a busy loop may."""

    def __init__(self, store: Store, late: type[Step[Any]]) -> None:
        super().__init__(store)
        self._late = late
        self.gate, self.taken = asyncio.Event(), False
        self.error: Exception | None = None

    async def do(self, step: Step[R]) -> R:
        if isinstance(step, self._late) and self.error is not None:
            raise self.error
        done = await self._store.do(step)
        if isinstance(step, self._late):
            self.taken = True
            await self.gate.wait()
        return done


def watch(here: Desk, late: type[Step[Any]]) -> Watched:
    """Put a watched store under the changes of a running account."""
    watched = Watched(here.store, late)
    run = here.account._run
    assert run is not None
    run.claims._changes._work = replace(run.work, store=watched)
    return watched


async def recall(here: Desk, message_id: str, **whose: str) -> bytes:
    return (await here.push(Recalled(message_id, **whose))).body


async def edit(here: Desk, message_id: str, text: str, revision: int = 1, **changes: Any) -> bytes:
    return (await here.push(Edited(message(message_id, text, **changes), revision))).body


async def state(here: Desk, message_id: str) -> tuple[MessageState, str]:
    stored = await here.store.get(MessageOf(NAME, message_id))  # type: ignore[arg-type] # an id
    assert stored is not None
    return stored.state, stored.reason


def prompts(here: Desk) -> list[str]:
    return [frame["prompt"] for frame in here.server.frames("turn.start")]


TAKEN_BACK = (MessageState.DONE, RECALLED)
FILE = (RemoteFile("k", FileKind.IMAGE, "a.png"),)


# --- recalls --------------------


async def test_case_14_what_is_recalled_never_runs_or_is_cancelled_and_the_next_message_runs() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.push(message("m0", "long"), message("m1", "one"), message("m2", "two"))
        await until(lambda: prompts(here) == ["long"])
        assert await recall(here, "m1") == b"accepted"
        assert await recall(here, "m0") == b"accepted"
        assert await here.answered(1) == ["echo: two"]
        assert prompts(here) == ["long", "two"]
        assert [frame["turn_id"] for frame in here.server.frames("turn.cancel")] == ["t1"]
        assert (await state(here, "m0"), await state(here, "m1")) == (TAKEN_BACK, TAKEN_BACK)
        assert (await here.store.get(CountsOf(NAME))).waiting == 0
        assert here.server.opened == 1, "the session goes on"
        assert await recall(here, "m1") == b"duplicate"
        assert await recall(here, "m2") == b"ignored"


async def test_a_recall_frees_its_room() -> None:
    async with desk(script={"turn": cancellable}, limits={"conversation_claims": 2}) as here:
        await here.push(message("m0", "long"), message("m1", "one"))
        assert await recall(here, "m1") == b"accepted"
        assert (await here.push(message("m2", "two"))).body == b"accepted"
        await recall(here, "m0")
        assert await here.answered(1) == ["echo: two"]


async def test_a_message_recalled_while_its_files_come_never_starts_and_leaves_none() -> None:
    async with desk(Slow(), settings={"remote_tools": "owner"}) as here:
        await here.push(message("m1", "see", files=FILE), message("m2", "two"))
        await until(lambda: here.channel.fetched == ["k"])
        assert await recall(here, "m1") == b"accepted"
        assert await here.answered(1) == ["echo: two"]
        assert list(here.home.root.rglob("*a.png")) == []


async def test_a_message_recalled_while_it_waits_for_a_slot_never_starts() -> None:
    held = Held()
    async with desk(script={"turn": held}, limits={"turns": 1, "owner_turns": 0}) as here:
        await here.push(message("m0", "other", STRANGER))
        await until(lambda: held.started == ["other"])
        await here.push(message("m1", "one"), message("m2", "two"))
        await settle()
        assert await recall(here, "m1") == b"accepted"
        held.let_go("other")
        held.let_go("two")
        assert await here.answered(2) == ["echo: other", "echo: two"]


async def test_a_message_recalled_between_its_start_and_its_turn_has_no_turn() -> None:
    gate, started = asyncio.Event(), list[str]()

    async def hold(step: Start) -> None:
        started.append(step.message_id)
        await gate.wait()

    async with desk() as here:
        after_starts(here, hold)
        await here.push(message("m1", "one"))
        await until(lambda: started == ["m1"])
        assert (await here.store.get(OpenMessages(NAME)))[0].state is MessageState.RUNNING
        assert await recall(here, "m1") == b"accepted"
        gate.set()
        await here.push(message("m2", "two"))
        assert await here.answered(1) == ["echo: two"]
        assert prompts(here) == ["two"]


async def test_a_turn_that_the_server_does_not_end_is_left_by_hanging_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def deaf(peer: Peer, start: Frame) -> None:
        if start["prompt"] == "two":
            await answer(peer, start)

    monkeypatch.setattr(working, "CANCEL_SECONDS", 0.01)
    async with desk(script={"turn": deaf}) as here:
        await here.push(message("m1", "one"), message("m2", "two"))
        await until(lambda: prompts(here) == ["one"])
        assert await recall(here, "m1") == b"accepted"
        assert await here.answered(1) == ["echo: two"]
        assert here.server.closed == 1


async def test_an_answer_that_comes_all_the_same_is_dropped_with_its_files() -> None:
    async with desk() as here:
        (copy := here.home.outbox / "0-a.txt").write_text("abc")

        async def stubborn(peer: Peer, start: Frame) -> None:
            await peer.turn("turn.started", start["request_id"])
            await peer.next()
            await attach(peer, start, copy, "a.txt", caption="")
            await peer.turn("assistant.completed", start["request_id"], content="too late")
            await peer.turn("turn.completed", start["request_id"], steps=1, usage={})

        here.server.turn = stubborn
        await here.push(message("m1", "one"))
        await until(lambda: prompts(here) == ["one"])
        assert await recall(here, "m1") == b"accepted"
        await until(lambda: not copy.exists())
        await settle()
        assert here.channel.texts() == []


async def test_case_14_an_unsent_reply_to_a_recalled_message_is_dropped_and_the_next_one_goes_out() -> None:
    channel = PushedChannel()
    channel.outcomes = [UnreachableError("down")]
    async with desk(channel) as here:
        await here.push(message("m1", "one"))
        await here.answered(1)
        await here.push(message("m2", "two"))
        await until(lambda: prompts(here) == ["one", "two"])
        await settle()
        assert channel.texts() == ["echo: one"]
        assert await recall(here, "m1") == b"accepted"
        assert await here.answered(2) == ["echo: one", "echo: two"], "nobody waits for the first any more"
        counts = await here.store.get(CountsOf(NAME))
        assert (counts.open_parts, counts.dead, counts.held) == (0, 0, 0)
        assert await here.store.get(HeldTexts(NAME, key_of())) == ()


async def test_a_recall_that_comes_first_makes_its_message_a_duplicate_over_a_restart_too() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock) as before:
            assert await recall(before, "m1") == b"accepted"
            assert (await before.push(message("m1", "one"))).body == b"duplicate"
        async with desk(home=home, clock=clock) as after:
            assert (
                await after.push(message("m1", "one"), message("m2", "two"))
            ).body == b"duplicate,accepted"
            assert await after.answered(1) == ["echo: two"]


@pytest.mark.parametrize("whose", [{"sender": STRANGER}, {"chat": "another"}, {"sender": OWNER, "chat": "x"}])
async def test_nobody_takes_back_what_another_wrote(whose: dict[str, str]) -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.push(message("m1", "one"))
        assert await recall(here, "m1", **whose) == b"ignored"
        held.let_go("one")
        assert await here.answered(1) == ["echo: one"]


async def test_the_sender_in_its_chat_takes_it_back() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.push(message("m1", "long"))
        assert await recall(here, "m1", sender=OWNER, chat=f"chat-{OWNER}") == b"accepted"
        await here.push(message("m2", "two"))
        assert await here.answered(1) == ["echo: two"]


@pytest.mark.parametrize("message_id", ["", "m" * 300, "a\ud800"])
async def test_a_recall_without_a_usable_id_changes_nothing(message_id: str) -> None:
    async with desk() as here:
        assert await recall(here, message_id) == b"ignored"


async def test_a_message_and_its_recall_in_one_batch_start_nothing() -> None:
    channel = PollingChannel()
    one, two, three, four = (message(f"m{n}", f"text {n}") for n in range(4))
    mine = Recalled("m0", OWNER, f"chat-{OWNER}")
    channel.batches = [
        Batch([one, two, mine, Recalled("m1", STRANGER), three], "c1"),
        Batch([Recalled("m3"), four], "c2"),
    ]
    async with desk(channel) as here:
        assert await here.answered(2) == ["echo: text 1", "echo: text 2"]
        assert prompts(here) == ["text 1", "text 2"]
        await until(lambda: channel.polled == ["", "c1", "c2"])


async def test_what_was_recalled_before_a_crash_does_not_run_after_it() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, script={"turn": cancellable}) as before:
            await before.push(message("m0", "long"), message("m1", "one"), message("m2", "two"))
            await until(lambda: prompts(before) == ["long"])
            assert await recall(before, "m1") == b"accepted"
        async with desk(home=home, clock=clock) as after:
            texts = await after.answered(2)
            assert texts == [say(Text.INTERRUPTED, Language.EN), "echo: two"]


async def test_what_a_crash_left_running_can_be_recalled_while_its_answer_is_looked_up() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, script={"turn": cancellable}) as before:
            await before.push(message("m0", "long"), message("m1", "one"))
            await until(lambda: prompts(before) == ["long"])
        async with desk(home=home, clock=clock, run=False) as after, asyncio.TaskGroup() as tasks:
            running = tasks.create_task(after.account.run(after.health))
            await until(lambda: after.account._run is not None)
            assert await recall(after, "m0") == b"accepted"
            assert await after.answered(1) == ["echo: one"]
            running.cancel()


async def test_one_of_several_missed_messages_that_is_recalled_leaves_the_others_reported() -> None:
    async with desk(script={"turn": cancellable}) as here:
        old = here.clock.now() - 6 * HOUR
        await here.push(message("m0", "long"))
        await until(lambda: prompts(here) == ["long"])
        await here.push(message("m1", "deploy", sent_at=old), message("m2", "status", sent_at=old))
        assert await recall(here, "m1") == b"accepted"
        await recall(here, "m0")
        (told,) = await here.answered(1)
        assert "status" in told
        assert "deploy" not in told


async def test_a_notice_that_lists_others_messages_outlives_the_recall_of_one() -> None:
    channel = PushedChannel()
    channel.outcomes = [UnreachableError("down")]
    async with desk(channel) as here:
        old = here.clock.now() - 6 * HOUR
        await here.push(message("m1", "deploy", sent_at=old), message("m2", "status", sent_at=old))
        await here.answered(1)
        assert await recall(here, "m1") == b"ignored"
        await here.clock.advance(5)
        assert len(await here.answered(2)) == 2


async def test_missed_messages_are_reported_although_the_first_is_recalled_just_then() -> None:
    async with desk(run=False) as here:
        old = here.clock.now() - 6 * HOUR
        recalled = asyncio.Event()

        class Racing(Watched):
            async def do(self, step: Step[R]) -> R:
                if type(step).__name__ == "Answer" and not recalled.is_set():
                    recalled.set()
                    await here.store.do(Recall(NAME, step.message_id, key_of(), 0))  # type: ignore[attr-defined] # an Answer
                return await self._store.do(step)

        put_under(here, Racing(here.store, Recall))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await settle()
            await here.push(message("m1", "deploy", sent_at=old), message("m2", "status", sent_at=old))
            (told,) = await here.answered(1)
            assert "status" in told
            assert "deploy" not in told
            running.cancel()


# --- edits --------------------


async def test_case_13_an_edited_message_runs_in_its_own_place_as_it_is_now() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.push(message("m0", "zero"), message("m1", "one"), message("m2", "two"))
        await until(lambda: held.started == ["zero"])
        assert await edit(here, "m1", "one, better", 5) == b"accepted"
        assert await edit(here, "m1", "one, older", 4) == b"duplicate"
        assert await edit(here, "m0", "too late", 6) == b"ignored"
        for prompt in ("zero", "one, better", "two"):
            held.let_go(prompt)
        assert await here.answered(3) == ["echo: zero", "echo: one, better", "echo: two"]
        assert await edit(here, "m1", "much too late", 7) == b"ignored"


async def test_a_message_edited_while_its_files_come_begins_anew() -> None:
    async with desk(Slow(), settings={"remote_tools": "owner"}) as here:
        await here.push(message("m1", "see", files=FILE), message("m2", "two"))
        await until(lambda: here.channel.fetched == ["k"])
        assert await edit(here, "m1", "no picture") == b"accepted"
        assert await here.answered(2) == ["echo: no picture", "echo: two"]
        assert (await here.store.get(CountsOf(NAME))).waiting == 0


async def test_a_message_edited_while_it_waits_for_a_slot_runs_as_it_is_now() -> None:
    held = Held()
    async with desk(script={"turn": held}, limits={"turns": 1, "owner_turns": 0}) as here:
        await here.push(message("m0", "other", STRANGER))
        await until(lambda: held.started == ["other"])
        await here.push(message("m1", "one"))
        await settle()
        assert await edit(here, "m1", "uno") == b"accepted"
        for prompt in ("other", "uno"):
            held.let_go(prompt)
        assert await here.answered(2) == ["echo: other", "echo: uno"]


async def test_a_message_that_is_edited_and_then_recalled_never_runs() -> None:
    async with desk(Slow(), settings={"remote_tools": "owner"}) as here:
        await here.push(message("m1", "see", files=FILE), message("m2", "two"))
        await until(lambda: here.channel.fetched == ["k"])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(edit(here, "m1", "no picture"))
            tasks.create_task(recall(here, "m1"))
        assert "echo: two" in await here.answered(1)
        await settle()
        assert "echo: no picture" not in here.channel.texts()


async def test_an_edit_that_we_hear_of_after_its_message_came_to_its_start_runs_all_the_same() -> None:
    channel = Slow()
    async with desk(channel, settings={"remote_tools": "owner"}) as here, asyncio.TaskGroup() as tasks:
        await here.push(message("m1", "see", files=FILE))
        await until(lambda: channel.fetched == ["k"])
        watched = watch(here, Edit)
        editing = tasks.create_task(edit(here, "m1", "look"))
        await until(lambda: watched.taken)
        channel.gate.set()
        run = here.account._run
        assert run is not None
        await until(
            lambda: not run.conversations.is_busy(key_of())
        )  # its start was refused: it is another now
        assert (await here.store.get(OpenMessages(NAME)))[0].state is MessageState.CLAIMED
        watched.gate.set()
        assert await here.answered(1) == ["echo: look"]
        assert editing.result() == b"accepted"
        assert (await here.store.get(CountsOf(NAME))).waiting == 0
        assert [(await here.push(message(f"n{n}", "x"))).body for n in range(8)] == [b"accepted"] * 8


async def test_an_edit_that_comes_as_its_message_is_being_refused_runs_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with desk() as here, asyncio.TaskGroup() as tasks:
        do, gate, waiting = here.store.do, asyncio.Event(), asyncio.Event()

        async def take_late(step: Answer) -> Any:
            await gate.wait()
            return await do(step)

        async def late(step: Any) -> Any:
            if not isinstance(step, Answer) or waiting.is_set():
                return await do(step)
            waiting.set()  # it is with the writer, who takes it even if nobody waits for that any more
            return await asyncio.shield(tasks.create_task(take_late(step)))

        monkeypatch.setattr(here.store, "do", late)
        await here.push(message("m1", "", files=(RemoteFile("k", FileKind.IMAGE, "a.png", fetchable=False),)))
        await waiting.wait()
        assert await edit(here, "m1", "look") == b"accepted"
        gate.set()
        assert await here.answered(1) == ["echo: look"]


async def test_an_edit_outlives_a_restart() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, script={"turn": cancellable}) as before:
            await before.push(message("m0", "long"), message("m1", "one"))
            await until(lambda: prompts(before) == ["long"])
            assert await edit(before, "m1", "uno", 3) == b"accepted"
        held = Held()
        async with desk(home=home, clock=clock, script={"turn": held}) as after:
            await here_waits(after, held)
            assert await edit(after, "m1", "eins", 2) in (b"duplicate", b"ignored")
            held.let_go("uno")
            assert (await after.answered(2))[1] == "echo: uno"


async def here_waits(here: Desk, held: Held) -> None:
    await until(lambda: held.started == ["uno"])


@pytest.mark.parametrize(
    "changes",
    [
        {"sender": STRANGER},
        {"chat": "another"},
        {"thread": "t"},
        {"to": "a\ud800"},
        {"message_id": "m" * 300},
    ],
)
async def test_an_edit_of_another_s_message_changes_nothing(changes: dict[str, Any]) -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.push(message("m0", "zero"), message("m1", "one"))
        for text in ("mine", "/stop"):
            edited = Edited(message(**{"message_id": "m1", "text": text, **changes}), 1)
            assert (await here.push(edited)).body == b"ignored"
        for prompt in ("zero", "one"):
            held.let_go(prompt)
        assert await here.answered(2) == ["echo: zero", "echo: one"]


async def test_an_edit_by_somebody_who_is_not_answered_changes_nothing() -> None:
    async with desk(settings={"senders": "owner"}) as here:
        assert await edit(here, "m1", "hello", sender=STRANGER) == b"ignored"


@pytest.mark.parametrize(
    ("command", "shown", "language"),
    [("/stop", "/stop", Language.EN), ("／Status.", "/status", Language.EN), ("/停止", "/停止", Language.ZH)],
)
async def test_a_message_edited_into_a_command_is_taken_back_and_its_sender_told(
    command: str, shown: str, language: Language
) -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.push(message("m0", "zero"), message("m1", "one"), message("m2", "two"))
        await until(lambda: held.started == ["zero"])
        assert await edit(here, "m1", command, 5) == b"accepted"
        assert await edit(here, "m1", command, 5) == b"duplicate"
        assert await edit(here, "m1", "one again", 6) == b"ignored"
        assert await edit(here, "m0", "/stop", 7) == b"ignored"
        assert await state(here, "m1") == TAKEN_BACK
        for prompt in ("zero", "two"):
            held.let_go(prompt)
        told = say(Text.EDIT_NO_COMMAND, language, command=shown)
        assert await here.answered(3) == [told, "echo: zero", "echo: two"]
        assert held.started == ["zero", "two"]
        assert (await here.store.get(CountsOf(NAME))).waiting == 0


async def test_a_command_by_an_edit_whose_notice_was_not_stored_is_told_when_it_comes_again() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.push(message("m0", "zero"), message("m1", "one"))
        await until(lambda: held.started == ["zero"])
        watched = watch(here, Claim)
        watched.error = StoreError("the disk is full")
        with pytest.raises(StoreError):
            await edit(here, "m1", "/stop", 5)
        assert await state(here, "m1") == TAKEN_BACK
        watched.error = None
        watched.gate.set()
        assert await edit(here, "m1", "/stop", 5) == b"duplicate"
        held.let_go("zero")
        told = say(Text.EDIT_NO_COMMAND, Language.EN, command="/stop")
        assert await here.answered(2) == [told, "echo: zero"]


async def test_an_edit_of_what_was_never_seen_changes_nothing() -> None:
    async with desk() as here:
        assert await edit(here, "m1", "hello") == b"ignored"
        assert await edit(here, "m1", "/stop") == b"ignored"
        assert (await here.push(message("m1", "one"))).body == b"accepted"
        assert await here.answered(1) == ["echo: one"]


# --- what can go wrong --------------------


async def test_a_change_is_carried_out_even_if_whoever_brought_it_hangs_up() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.push(message("m0", "long"), message("m1", "one"))
        await until(lambda: prompts(here) == ["long"])
        watched = watch(here, Recall)
        async with asyncio.TaskGroup() as tasks:
            pushing = tasks.create_task(recall(here, "m0"))
            await until(lambda: watched.taken)
            pushing.cancel()
        assert pushing.cancelled()
        watched.gate.set()
        assert await here.answered(1) == ["echo: one"]


async def test_a_change_that_could_not_be_stored_is_not_acknowledged() -> None:
    async with desk(script={"turn": cancellable}) as here:
        watch(here, Recall).error = StoreError("full")
        with pytest.raises(StoreError, match="full"):
            await recall(here, "m0")


async def test_a_bug_in_a_change_harms_nothing_else() -> None:
    async with desk() as here:
        watch(here, Recall).error = RuntimeError("a bug")
        with pytest.raises(RuntimeError):
            await recall(here, "m0")
        await here.push(message("m1", "one"))
        assert await here.answered(1) == ["echo: one"]


async def test_a_change_that_comes_as_the_account_stops_has_to_come_again() -> None:
    async with desk(run=False) as here, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(here.account.run(here.health))
        await until(lambda: here.account._run is not None)
        run, watched = here.account._run, watch(here, Recall)
        pushing = tasks.create_task(settled_error(recall(here, "m0")))
        await until(lambda: watched.taken)
        running.cancel()
        assert "stops" in await pushing
        assert run is not None
        assert "stops" in await settled_error(run.claims.take([Recalled("m1")], 0))


async def settled_error(work: Any) -> str:
    with pytest.raises(StoreError) as failed:
        await work
    return str(failed.value)


async def test_a_message_that_comes_while_its_recall_is_looked_up_is_recalled() -> None:
    async with desk(script={"turn": cancellable}) as here:
        run = here.account._run
        assert run is not None

        class Late(Watched):
            async def get(self, query: Query[R]) -> R:
                found = await self._store.get(query)
                if isinstance(query, MessageOf) and found is None:
                    await here.push(message("m1", "long"))
                return found

        run.claims._changes._work = replace(run.work, store=Late(here.store, Edit))
        assert await recall(here, "m1") == b"accepted"
        assert await state(here, "m1") == TAKEN_BACK


async def test_a_change_that_comes_in_the_moment_of_the_stop_is_not_waited_for() -> None:
    async with desk(run=False) as here, asyncio.TaskGroup() as tasks, asyncio.timeout(5):
        running = tasks.create_task(here.account.run(here.health))
        await until(lambda: here.account._run is not None)
        run = here.account._run
        assert run is not None
        take = run.claims.take
        await until(lambda: here.clock.waits() != [])
        running.cancel()  # what is spawned right now is cancelled before it has begun
        assert "stops" in await settled_error(take([Recalled("m0")], 0))
