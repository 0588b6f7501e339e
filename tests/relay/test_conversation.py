"""A conversation as part of a running account: order, sessions, failures, recovery."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bridge.channel import (
    Answer as HttpAnswer,
)
from bridge.channel import (
    ChannelError,
    Context,
    Edited,
    FileKind,
    Follow,
    Inbound,
    LiveTurn,
    Recalled,
    Refused,
    RemoteFile,
    Request,
)
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.clock import unix_ms
from bridge.errors import SessionError
from bridge.ids import ConversationKey, MessageId, SessionId
from bridge.meter import TurnEnd
from bridge.protocol.limits import PROMPT_BYTES
from bridge.relay import conversation, payload, received, turn
from bridge.relay.payload import conversation_of
from bridge.relay.queue import together
from bridge.relay.session import Session
from bridge.relay.settle import settled
from bridge.relay.texts import Language, Text, say
from bridge.store.change_steps import ALONG
from bridge.store.contract import (
    Answer,
    BindSession,
    BoundSession,
    Choose,
    Chosen,
    Claim,
    CountsOf,
    HeldTexts,
    MessageOf,
    MessageState,
    NewMessage,
    OpenMessages,
    OpenSession,
    Recall,
    SessionOf,
    SessionRecord,
    Start,
    Step,
    Store,
)
from tests.relay.harness import (
    HOUR,
    MINUTE,
    NAME,
    OWNER,
    STRANGER,
    Desk,
    PushedChannel,
    after_starts,
    desk,
    homes,
    message,
    put_under,
)
from tests.relay.scripted import Frame, HangupError, Peer, ScriptedServer, answer, attach, cancellable
from tests.relay.test_asking import ASK, ID, resolved
from tests.store.around import Around

R = TypeVar("R")
FAILURE, INTERRUPTED = say(Text.FAILURE, Language.EN), say(Text.INTERRUPTED, Language.EN)
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63000100000500010d0a2db4"
    "0000000049454e44ae426082"
)


class Held:
    """Turns that wait until they are let go, by prompt."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def __call__(self, peer: Peer, start: Frame) -> None:
        self.started.append(start["prompt"])
        await self.gates.setdefault(start["prompt"], asyncio.Event()).wait()
        await answer(peer, start)

    def let_go(self, prompt: str) -> None:
        self.gates.setdefault(prompt, asyncio.Event()).set()


async def broken(peer: Peer, start: Frame) -> None:
    raise HangupError


async def failing(peer: Peer, start: Frame) -> None:
    await peer.turn("turn.failed", start["request_id"], code="provider_error", message="key sk-123 refused")


def unready(code: str) -> Any:
    """A turn that fails until its agent is set up."""

    async def turn(peer: Peer, start: Frame) -> None:
        text = "X is not signed in: run x login"
        await peer.turn("turn.failed", start["request_id"], code=code, message=text)

    return turn


def first_broken() -> Any:
    """A turn whose connection breaks, and usual ones after it."""
    turns = [broken]

    async def turn(peer: Peer, start: Frame) -> None:
        await (turns.pop() if turns else answer)(peer, start)

    return turn


class Silent(ScriptedServer):
    """Does not answer an attach."""

    async def _attach(self, peer: Peer, frame: Frame) -> None:
        return


def slow_to_clear(clearing: asyncio.Event) -> type[ScriptedServer]:
    """A server that clears a session only once it is let."""

    class SlowToClear(ScriptedServer):
        async def _handle(self, peer: Peer, frame: Frame) -> None:
            if frame["type"] == "session.clear":
                await clearing.wait()
            await super()._handle(peer, frame)

    return SlowToClear


class SlowAnswers(Around):
    """A store that takes an answer, and tells so only once ``gate`` is open."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.gate, self.asked = asyncio.Event(), False

    async def do(self, step: Step[R]) -> R:
        done = await self._store.do(step)
        if isinstance(step, Answer):
            self.asked = True
            await self.gate.wait()
        return done


def under(here: Desk, store: Any) -> None:
    """Put another store under the conversations to come of a running account."""
    conversations = here.run.conversations
    conversations._work = replace(conversations._work, store=store)


def key_of(sender: str = OWNER) -> ConversationKey:
    return conversation_of(message("x", sender=sender))


async def test_a_message_becomes_a_turn_and_its_answer_goes_back() -> None:
    async with desk() as here:
        assert (await here.say("hi")).body == b"accepted"
        assert await here.answered(1) == ["echo: hi"]
        (part,) = here.channel.sent
        assert (part.to, part.reply_to) == (f"to-{OWNER}", "m1")
        (turn,) = here.server.frames("turn.start")
        assert (turn["request_id"], turn["prompt"]) == ("m1", "hi")
        assert here.channel.typed == [f"to-{OWNER}"]
        counts = await here.store.get(CountsOf(NAME))
        assert (counts.waiting, counts.open_parts, counts.dead) == (0, 0, 0)


async def test_case_11_messages_of_a_chat_run_in_order_and_another_chat_meanwhile() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        for text in ("a1", "a2", "a3"):
            await here.say(text)
        await here.say("b1", STRANGER)
        await until(lambda: len(held.started) == 2)
        assert held.started == ["a1", "b1"]
        for text in ("a2", "a3", "b1", "a1"):
            held.let_go(text)
        assert await here.answered(4) == ["echo: b1", "echo: a1", "echo: a2", "echo: a3"]
        assert here.server.opened == 2


async def test_a_failed_turn_is_said_and_the_next_one_runs_on_the_same_session() -> None:
    async def turn(peer: Peer, start: Frame) -> None:
        await (failing if start["prompt"] == "bad" else answer)(peer, start)

    async with desk(script={"turn": turn}) as here:
        await here.say("bad")
        await here.say("good")
        assert await here.answered(2) == [FAILURE, "echo: good"]
        assert here.server.opened == 1


@pytest.mark.parametrize("code", ["sign_in_required", "setup_required", "context_limit"])
async def test_the_owner_alone_is_told_what_an_agent_lacks(code: str) -> None:
    async with desk(script={"turn": unready(code)}, settings={"senders": "anyone"}) as here:
        await here.say("hello")
        await here.say("hello", sender=STRANGER)
        cure, said = "X is not signed in: run x login", sorted(await here.answered(2))
        assert said == [say(Text.SETUP, Language.EN, cure=cure), FAILURE]
        await here.say("你好")
        assert (await here.answered(3))[2] == say(Text.SETUP, Language.ZH, cure=cure)


async def test_what_an_agent_lacks_is_told_to_nobody_in_a_group() -> None:
    async with desk(script={"turn": unready("setup_required")}) as here:
        await here.say("hello", group=True)
        assert await here.answered(1) == [FAILURE]


async def test_after_a_broken_session_the_next_message_takes_it_up_again() -> None:
    async with desk(script={"turn": first_broken()}) as here:
        await here.say("one")
        assert await here.answered(1) == [FAILURE]
        await here.say("two")
        assert await here.answered(2) == [FAILURE, "echo: two"]
        assert len(here.server.frames("session.attach")) == 2  # the second is the mark


async def test_a_stored_session_that_is_gone_is_replaced_once() -> None:
    async with desk(script={"turn": first_broken()}) as here:
        await here.say("one")
        await here.answered(1)
        here.server.stored.clear()
        await here.say("two")
        assert await here.answered(2) == [FAILURE, "echo: two"]
        assert here.server.opened == 2


async def test_a_session_that_may_not_be_taken_up_fails_the_message_only() -> None:
    async with desk(script={"turn": first_broken()}) as here:
        await here.say("one")
        await here.answered(1)
        here.server.refuse_attach = "invalid_request"
        await here.say("two")
        assert await here.answered(2) == [FAILURE, FAILURE]


async def test_a_server_that_takes_up_no_session_opens_a_new_one() -> None:
    async with desk(script={"turn": first_broken()}) as here:
        await here.say("one")
        await here.answered(1)
        here.server.refuse_attach = "unsupported"
        await here.say("two")
        assert await here.answered(2) == [FAILURE, "echo: two"]


async def test_a_message_that_comes_while_its_session_is_being_closed_waits_for_that() -> None:
    clearing = asyncio.Event()
    async with desk(script={"kind": slow_to_clear(clearing)}) as here:
        await here.say("one", STRANGER)
        await here.answered(1)
        await here.clock.advance(1900)
        await until(lambda: bool(here.server.frames("session.clear")))
        await here.say("two", STRANGER)
        await settle()
        assert here.server.frames("session.attach") == []
        clearing.set()
        assert await here.answered(2) == ["echo: one", "echo: two"]


async def test_a_reply_that_is_stored_as_the_turn_runs_out_of_time_is_delivered() -> None:
    file = RemoteFile("k", FileKind.IMAGE, "a.png", fetchable=False)
    async with desk(limits={"turn_seconds": 0.05}) as here:
        slow = SlowAnswers(here.store)
        under(here, slow)
        await here.push(message("m1", "", files=(file,)))
        await until(lambda: slow.asked)
        await asyncio.sleep(0.1)  # its time runs out, which is the loop's own
        slow.gate.set()
        assert await here.answered(1) == [say(Text.UNREADABLE_TYPE, Language.EN)]


async def test_case_85_a_turn_that_the_server_refuses_keeps_no_files() -> None:
    async def refuse(peer: Peer, start: Frame) -> None:
        await peer.say("error", start["request_id"], code="invalid_request", message="no", fatal=False)

    async with desk(script={"turn": refuse}, settings={"remote_tools": "owner"}) as here:
        here.channel.files["k"] = PNG
        await here.say("see", files=(RemoteFile("k", FileKind.IMAGE, "a.png"),))
        assert await here.answered(1) == [FAILURE]
        assert list((here.home.state / "media").rglob("*.png")) == []


async def test_a_turn_without_an_end_runs_out_of_time_and_its_session_is_dropped() -> None:
    async def endless(peer: Peer, start: Frame) -> None:
        await peer.turn("turn.started", start["request_id"])

    async with desk(script={"turn": endless}, limits={"turn_seconds": 0.05}) as here:
        await here.say("hi")
        assert await here.answered(1) == [FAILURE]
        await until(lambda: here.server.closed == 1)


async def test_a_bug_of_ours_fails_one_message_and_the_next_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompt_of = turn.prompt_of

    def broken(message: Inbound, got: received.Received, age_seconds: float) -> str:
        if message.text == "one":
            raise KeyError("body")
        return prompt_of(message, got, age_seconds)

    monkeypatch.setattr(turn, "prompt_of", broken)
    async with desk() as here:
        await here.say("one")
        await here.say("two")
        assert await here.answered(2) == [FAILURE, "echo: two"]
        assert (await here.store.get(CountsOf(NAME))).waiting == 0


async def test_an_adapter_s_bug_costs_what_it_was_asked_for_and_no_message() -> None:
    async with desk() as here:
        here.channel.context = KeyError("body")
        await here.say("one", reference="m0")
        await here.say("two")
        lost = "[The message that this one refers to could not be fetched.]"
        assert await here.answered(2) == [f"echo: {lost}\n\none", "echo: two"]
        assert (await here.store.get(CountsOf(NAME))).waiting == 0


@pytest.mark.parametrize("error", [ChannelError("no"), ValueError("a bug")])
async def test_typing_that_fails_harms_nothing(error: Exception) -> None:
    async with desk() as here:
        here.channel.typing_error = error
        await here.say("hi")
        assert await here.answered(1) == ["echo: hi"]


async def test_typing_that_hangs_delays_no_turn_and_no_answer() -> None:
    class Hanging(PushedChannel):
        async def typing(self, to: str, reply_to: str) -> None:
            await asyncio.get_running_loop().create_future()

    async with desk(Hanging(), limits={"turn_seconds": 0.5}) as here:
        await here.say("hi")
        assert await here.answered(1) == ["echo: hi"]


async def test_case_18_old_messages_are_listed_as_missed_and_newer_ones_bring_their_time() -> None:
    async with desk() as here:
        now = here.clock.now()
        old = [message(f"o{n}", f"deploy {n}", sent_at=now - (2 + n) * HOUR) for n in range(3)]
        newer = message("n1", "still there?", sent_at=now - 10 * MINUTE)
        assert (await here.push(*old, newer)).body == b"accepted,accepted,accepted,accepted"
        missed, answered = await here.answered(2)
        assert missed.startswith(say(Text.MISSED, Language.EN))
        assert [f"deploy {n}" in missed for n in range(3)] == [True, True, True]
        assert len(here.server.frames("turn.start")) == 1
        assert answered.endswith("]\nstill there?")
        assert "[Sent 2026-01-02 02:54 UTC]" in answered


async def test_a_missed_file_is_listed_too() -> None:
    async with desk() as here:
        files = (RemoteFile("k", FileKind.FILE),)
        await here.say("", files=files, sent_at=here.clock.now() - 2 * HOUR)
        assert "(1 file)" in (await here.answered(1))[0]


async def test_case_3_age_is_judged_by_the_platform_s_clock() -> None:
    async with desk() as here:
        platform_now = here.clock.now() - 2 * HOUR  # our own clock is two hours fast
        here.channel.platform_time = platform_now
        await here.say("fresh", sent_at=platform_now)
        assert await here.answered(1) == ["echo: fresh"]


async def test_context_text_and_notes_reach_the_agent_in_this_order() -> None:
    async with desk() as here:
        here.channel.context = Context("> quoted", (RemoteFile("k", FileKind.FILE, "a.txt"),))
        await here.say("what is this?", sender=STRANGER, reference="m0")
        await here.answered(1)
        (turn,) = here.server.frames("turn.start")
        assert turn["prompt"] == "> quoted\n\nwhat is this?\n\n[file a.txt: not opened for this sender.]"


async def test_files_reach_the_agent_with_what_their_bytes_say() -> None:
    async with desk() as here:
        here.channel.files["k"] = PNG
        await here.say("", files=(RemoteFile("k", FileKind.IMAGE, "图.png", "text/html"),))
        await here.answered(1)
        (attachment,) = here.server.frames("turn.start")[0]["attachments"]
        assert (attachment["kind"], attachment["name"], attachment["mime"]) == (
            "image",
            "图.png",
            "image/png",
        )
        assert attachment["size"] == len(PNG)


async def test_a_message_that_says_nothing_at_all_is_asked_for_words() -> None:
    async with desk() as here:
        await here.say("  ")  # as a bare mention in a group
        assert await here.answered(1) == [say(Text.BLANK, Language.EN)]
        assert here.server.peers == []


async def test_a_message_with_nothing_readable_gets_a_reply_and_no_turn() -> None:
    async with desk() as here:
        await here.say("", sender=STRANGER, files=(RemoteFile("k", FileKind.FILE, "a.exe"),))
        assert await here.answered(1) == [say(Text.UNREADABLE_TYPE, Language.EN)]
        assert here.server.peers == []
        assert here.channel.fetched == []


async def test_a_huge_message_is_cut_to_what_a_turn_takes() -> None:
    async with desk() as here:
        await here.say("字" * 100_000)
        await here.answered(1)
        assert len(here.server.frames("turn.start")[0]["prompt"].encode()) <= PROMPT_BYTES


async def test_only_the_owner_s_direct_chat_gets_tools() -> None:
    async with desk(settings={"remote_tools": "owner"}) as here:
        await here.say("a")
        await here.say("b", STRANGER)
        await here.say("c", group=True)
        await here.answered(3)
        assert [frame["no_tools"] for frame in here.server.frames("session.start")] == [False, True, True]


async def test_a_session_whose_authority_changed_is_replaced_and_never_widened() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock) as before:
            await before.say("a")
            await before.answered(1)
            stored = before.server.stored
        async with desk(
            home=home, clock=clock, settings={"remote_tools": "owner"}, script={"stored": stored}
        ) as after:
            after.count = 10
            await after.say("b")
            await after.answered(1)
            assert after.server.frames("session.attach") == []
            assert [frame["no_tools"] for frame in after.server.frames("session.start")] == [False]


async def test_the_same_authority_takes_the_session_up_after_a_restart() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock) as before:
            await before.say("a")
            await before.answered(1)
            stored = before.server.stored
        async with desk(home=home, clock=clock, script={"stored": stored}) as after:
            after.count = 10
            await after.say("b")
            assert await after.answered(1) == ["echo: b"]
            assert after.server.opened == 0


async def restarted_after(
    seconds: float, sender: str, *, used: bool = False, turn: Any = None, **setup: Any
) -> tuple[list[str], int, int, BoundSession]:
    """A chat goes on after so long a pause without a daemon: texts, sessions opened, taken up, and bound."""
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, **setup) as before:
            await before.say("a", sender)
            await before.answered(1)
            stored = before.server.stored
        clock.jump(seconds)
        async with desk(home=home, clock=clock, script={"stored": stored}, **setup) as after:
            if used:  # as our own server notes it
                now_ms = unix_ms(clock.now())
                await after.store.do(OpenSession(SessionRecord(SessionId("s1"), "/", "{}", 1), now_ms))
            after.server.opened, after.count = 1, 10
            await after.say("b", sender)
            texts = await after.answered(1)
            bound = await after.store.get(SessionOf(NAME, key_of(sender)))
            assert bound is not None
            assert unix_ms(clock.now()) - bound.used_ms < 1_800_000
            return texts, after.server.opened - 1, len(after.server.frames("session.attach")) // 2, bound


async def test_after_a_restart_a_stranger_s_session_that_was_idle_for_too_long_is_replaced() -> None:
    texts, opened, taken_up, bound = await restarted_after(1800, STRANGER)
    assert (texts, opened, taken_up, bound.session_id) == (["echo: b"], 1, 0, "s2")


async def test_after_a_restart_a_stranger_s_session_that_was_used_lately_is_taken_up() -> None:
    for seconds, used in ((1799, False), (90_000, True)):
        texts, opened, taken_up, bound = await restarted_after(seconds, STRANGER, used=used)
        assert (texts, opened, taken_up, bound.session_id) == (["echo: b"], 0, 1, "s1")


async def test_after_a_restart_the_owner_s_session_is_taken_up_and_its_use_is_noted() -> None:
    texts, opened, taken_up, bound = await restarted_after(90_000, OWNER)
    assert (texts, opened, taken_up, bound.session_id) == (["echo: b"], 0, 1, "s1")


async def test_a_stranger_s_answer_from_an_idle_session_is_the_last_of_it() -> None:
    async with homes() as home:
        clock, held = FakeClock(), Held()
        async with desk(home=home, clock=clock, script={"turn": held}) as before:
            await before.say("one", STRANGER)
            await until(lambda: held.started == ["one"])
        clock.jump(1900)
        async with desk(home=home, clock=clock, script={"stored": {"s1": ENDED}}) as after:
            assert await after.answered(1) == ["the answer"]
            # looking for the answer was a use of the session, as our own server notes it
            record = SessionRecord(SessionId("s1"), "/", "{}", 1)
            await after.store.do(OpenSession(record, unix_ms(clock.now())))
            assert await after.store.get(SessionOf(NAME, key_of(STRANGER))) is None
            after.server.opened, after.count = 1, 10
            await after.say("two", STRANGER)
            assert await after.answered(2) == ["the answer", "echo: two"]
            assert after.server.opened == 2


ENDED = [
    ("assistant.completed", "m1", {"content": "the answer"}),
    ("turn.completed", "m1", {"steps": 1, "usage": {}}),
]


async def stop_in_turn(home: Any, clock: FakeClock, *texts: str, **setup: Any) -> None:
    """Leave the first of ``texts`` running and the others claimed, as a kill does."""
    held = Held()
    async with desk(home=home, clock=clock, script={"turn": held}, **setup) as here:
        for text in texts:
            await here.say(text)
        await until(lambda: held.started == [texts[0]])
        bound = await here.store.get(SessionOf(NAME, key_of()))
        assert bound is not None
        assert bound.session_id == "s1"


async def test_case_55_after_a_crash_the_ended_turn_is_answered_and_the_waiting_ones_run() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one", "two", "three")
        async with desk(home=home, clock=clock, script={"stored": {"s1": ENDED}}) as after:
            assert await after.answered(3) == ["the answer", "echo: two", "echo: three"]
            assert [frame["request_id"] for frame in after.server.frames("turn.start")] == ["m2", "m3"]


async def test_case_82_after_a_crash_a_turn_without_an_end_is_reported_and_never_run_again() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one")
        async with desk(home=home, clock=clock, script={"stored": {"s1": []}}) as after:
            assert await after.answered(1) == [INTERRUPTED]
            after.count = 10
            await after.say("again")
            assert await after.answered(2) == [INTERRUPTED, "echo: again"]
            assert [frame["prompt"] for frame in after.server.frames("turn.start")] == ["again"]
        async with desk(home=home, clock=clock) as later:
            assert (later.server.peers, later.channel.sent) == ([], [])


async def test_after_a_crash_no_session_keeps_tools_that_are_not_granted_any_more() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one", settings={"remote_tools": "owner"})
        async with desk(home=home, clock=clock, script={"stored": {"s1": ENDED}}) as after:
            assert await after.answered(1) == ["the answer"]
            after.count = 10
            await after.say("next")
            assert await after.answered(2) == ["the answer", "echo: next"]
            (start,) = after.server.frames("session.start")
            assert start["no_tools"] is True


async def test_after_a_crash_the_answer_is_looked_for_in_the_workspace_of_its_session() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one")
        other = home.private_dir(home.root / "other")
        script = {"stored": {"s1": ENDED}}
        async with desk(home=home, clock=clock, script=script, workspace=other) as after:
            assert await after.answered(1) == ["the answer"]
            assert after.server.frames("session.attach")[0]["cwd"] == str(home.root)


async def test_after_a_crash_the_owner_s_history_outlives_the_idle_time_all_the_same() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one")
        async with desk(home=home, clock=clock, script={"stored": {"s1": ENDED}}) as after:
            assert await after.answered(1) == ["the answer"]
            await after.clock.advance(1900)
            await until(lambda: after.server.closed == 1)
            assert after.server.frames("session.clear") == []


async def test_a_record_that_does_not_come_in_time_is_not_waited_for_any_longer() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one")
        script: dict[str, Any] = {"kind": Silent, "stored": {"s1": ENDED}}
        async with desk(home=home, clock=clock, script=script, limits={"turn_seconds": 0.01}) as after:
            assert await after.answered(1) == [INTERRUPTED]


async def test_a_running_message_whose_session_is_gone_is_reported() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one")
        async with desk(home=home, clock=clock) as after:
            assert await after.answered(1) == [INTERRUPTED]


async def test_a_turn_that_failed_while_we_were_away_is_reported() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one")
        failed = [("turn.failed", "m1", {"code": "internal_error", "message": "m"})]
        async with desk(home=home, clock=clock, script={"stored": {"s1": failed}}) as after:
            assert await after.answered(1) == [INTERRUPTED]


async def test_a_claimed_message_older_than_the_limit_is_missed_after_a_restart() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one", "two")
        clock.jump(timedelta(hours=2).total_seconds())
        async with desk(home=home, clock=clock, script={"stored": {"s1": ENDED}}) as after:
            first, second = await after.answered(2)
            assert first == "the answer"
            assert second.startswith(say(Text.MISSED, Language.EN))
            assert after.server.frames("turn.start") == []


async def test_after_a_restart_nothing_runs_for_a_sender_who_is_not_answered_any_more() -> None:
    async with homes() as home:
        clock, held = FakeClock(), Held()
        async with desk(home=home, clock=clock, script={"turn": held}) as before:
            for text, sender in (("one", STRANGER), ("two", STRANGER), ("mine", OWNER)):
                await before.say(text, sender)
            await until(lambda: held.started == ["one", "mine"])
        script = {"stored": {"s1": ENDED}}
        async with desk(home=home, clock=clock, settings={"senders": "owner"}, script=script) as after:
            assert sorted(await after.answered(2)) == [INTERRUPTED, "the answer"]
            assert after.server.frames("turn.start") == []
            assert (await after.store.get(CountsOf(NAME))).waiting == 0


async def test_files_that_a_turn_attached_are_sent_and_the_others_removed() -> None:
    async with desk(settings={"remote_tools": "owner"}, limits={"reply_files": 1}) as here:
        copies = [here.home.outbox / f"{n}-a.txt" for n in range(2)]
        for copy in copies:
            copy.write_text("abc")

        async def turn(peer: Peer, start: Frame) -> None:
            for n, path in enumerate([*copies, Path("/etc/passwd")]):
                await attach(peer, start, path, f"{n}.txt", caption="c")
            await answer(peer, start)

        here.server.turn = turn
        await here.say("files please")
        await until(lambda: len(here.channel.sent) == 2 and not any(copy.exists() for copy in copies))
        text, file = here.channel.sent
        assert file.name == "0.txt"
        assert text.text.endswith(say(Text.FILES_DROPPED, Language.EN, count=2))


async def test_files_of_a_turn_that_failed_are_removed() -> None:
    async with desk(settings={"remote_tools": "owner"}) as here:
        (copy := here.home.outbox / "0-a.txt").write_text("abc")

        async def turn(peer: Peer, start: Frame) -> None:
            await attach(peer, start, copy, "a.txt")
            await failing(peer, start)

        here.server.turn = turn
        await here.say("files please")
        assert await here.answered(1) == [FAILURE]
        await until(lambda: not copy.exists())


async def test_a_held_text_rides_with_the_conversation_s_next_reply() -> None:
    async with desk() as here:
        here.channel.outcomes = [Refused("no")]
        await here.say("one")
        await here.answered(1)
        await here.say("two")
        second = (await here.answered(2))[1]
        assert [word in second for word in ("echo: one", "echo: two")] == [True, True]
        assert await here.store.get(HeldTexts(NAME, key_of())) == ()


async def test_what_an_operator_sees_of_a_conversation_has_no_controls() -> None:
    async with desk() as here:
        await here.say("hi", thread="t")
        await here.answered(1)
        chat = here.server.frames("session.start")[0]["chat"]
        assert chat["conversation"] == f"direct/chat-{OWNER}/{OWNER}/t"
        assert isinstance(message("m"), Inbound)


async def test_a_session_is_closed_once_and_a_stranger_s_clearing_may_fail() -> None:
    async with desk(limits={"idle_seconds": 60}) as here:
        await here.say("hi", STRANGER)
        await here.answered(1)
        here.server.peers[0].writer.close()
        await settle()
        await here.clock.advance(100)
        assert here.server.frames("session.clear") == []
        await here.say("again", STRANGER)
        assert await here.answered(2) == ["echo: hi", "echo: again"]


async def test_a_session_server_that_is_down_at_the_start_is_waited_for() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one")
        async with desk(home=home, clock=clock, run=False) as after:
            after.server.socket.rename(home.state / "away.sock")
            with pytest.raises(ExceptionGroup) as ended:
                await after.account.run(after.health)
            assert ended.group_contains(SessionError)
            (home.state / "away.sock").rename(after.server.socket)
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(after.account.run(after.health))
                assert await after.answered(1) == [INTERRUPTED]
                running.cancel()


class EndedElsewhere(SlowAnswers):
    """A store in which a message has ended by the time that its turn is to start."""

    async def do(self, step: Step[R]) -> R:
        if isinstance(step, Start):
            await self._store.do(Answer(step.account, step.message_id, None, step.now_ms, "elsewhere"))
        return await self._store.do(step)


async def test_case_85_a_message_that_ended_elsewhere_meanwhile_runs_no_turn_and_keeps_no_files() -> None:
    async with desk(settings={"remote_tools": "owner"}) as here:
        here.channel.files["k"] = PNG
        elsewhere = EndedElsewhere(here.store)
        under(here, elsewhere)
        await here.say("see", files=(RemoteFile("k", FileKind.IMAGE, "a.png"),))
        await until(lambda: here.server.opened == 1)
        await settle()
        assert (await here.store.get(CountsOf(NAME))).waiting == 0
        assert (here.server.frames("turn.start"), here.channel.sent) == ([], [])
        await until(lambda: list((here.home.state / "media").rglob("*.png")) == [])


class Plain(PushedChannel):
    """Shows no typing."""

    typing: Any = None


async def test_a_channel_that_shows_no_typing_is_answered_all_the_same() -> None:
    async with desk(Plain()) as here:
        await here.say("hi")
        assert await here.answered(1) == ["echo: hi"]


async def test_a_running_message_of_a_session_that_was_replaced_is_reported() -> None:
    async with homes() as home:
        clock = FakeClock()
        await stop_in_turn(home, clock, "one")
        async with desk(home=home, clock=clock, script={"stored": {"s1": ENDED}}, run=False) as after:
            bound = await after.store.get(SessionOf(NAME, key_of()))
            assert bound is not None
            await after.store.do(BindSession(NAME, key_of(), SessionId("s2"), bound.authority, 0))
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(after.account.run(after.health))
                assert await after.answered(1) == [INTERRUPTED]
                running.cancel()


async def test_case_85_a_session_that_is_refused_keeps_no_files() -> None:
    async with desk(settings={"remote_tools": "owner"}, script={"refuse_start": "session_limit"}) as here:
        here.channel.files["k"] = PNG
        await here.say("see", files=(RemoteFile("k", FileKind.IMAGE, "a.png"),))
        assert await here.answered(1) == [FAILURE]
        await until(lambda: list((here.home.state / "media").rglob("*.png")) == [], 2000)


# --- what is changed while it is here ----


async def test_a_recalled_message_leaves_the_queue_or_has_its_turn_cancelled() -> None:
    async with desk(script={"turn": cancellable}) as here:
        await here.push(*(message(f"m{n}", text) for n, text in enumerate(["long", "one", "two"])))
        await until(lambda: len(here.server.frames("turn.start")) == 1)
        for message_id in ("m1", "m0", "m9"):
            assert (await here.push(Recalled(message_id))).body == b"accepted"
        assert await here.answered(1) == ["echo: two"]


async def test_a_turn_that_does_not_end_when_cancelled_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def deaf(peer: Peer, start: Frame) -> None:
        if start["prompt"] != "one":
            await answer(peer, start)

    monkeypatch.setattr("bridge.relay.working.CANCEL_SECONDS", 0.01)
    async with desk(script={"turn": deaf}) as here:
        await here.push(message("m1", "one"), message("m2", "two"))
        await until(lambda: len(here.server.frames("turn.start")) == 1)
        await here.push(Recalled("m1"))
        assert await here.answered(1) == ["echo: two"]
        assert here.server.closed == 1


async def test_a_message_that_is_taken_back_as_it_gets_to_its_turn_has_none() -> None:
    async def stop(step: Start) -> None:
        if step.message_id == "m1":
            here.run.conversations.by_key[key_of()]._working.stop()  # type: ignore[union-attr]  # it works on one

    async with desk() as here:
        after_starts(here, stop)
        await here.push(message("m1", "one"), message("m2", "two"))
        assert await here.answered(1) == ["echo: two"]
        assert [frame["prompt"] for frame in here.server.frames("turn.start")] == ["two"]


async def test_an_edited_message_takes_its_own_place_and_no_older_edit_undoes_it() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.push(message("m0", "zero"), message("m1", "one"))
        conversation = here.run.conversations.by_key[key_of()]
        work = here.run.work
        for revision, text in ((5, "uno"), (4, "eins")):
            edited = work.claimed(MessageId("m1"), message("m1", text), 0, 0, revision)
            assert conversation.edit(edited) is False
        assert [one.inbound.text for one in conversation._queue] == ["zero", "uno"]
        assert (conversation.holds(MessageId("m1")), conversation.holds(MessageId("m9"))) == (True, False)
        held.let_go("zero")
        await until(lambda: held.started == ["zero"])


async def test_a_message_that_is_edited_before_its_turn_begins_anew() -> None:
    held = Held()
    async with desk(script={"turn": held}, limits={"turns": 1, "owner_turns": 0}) as here:
        await here.push(message("m0", "other", STRANGER))
        await until(lambda: held.started == ["other"])
        await here.push(message("m1", "one"))
        await settle()
        assert (await here.push(Edited(message("m1", "uno"), 1))).body == b"accepted"
        for prompt in ("other", "uno"):
            held.let_go(prompt)
        assert await here.answered(2) == ["echo: other", "echo: uno"]


async def test_the_first_of_several_missed_messages_may_be_recalled_as_it_is_reported() -> None:
    async with desk(run=False) as here:
        store, old = here.store, here.clock.now() - 6 * HOUR

        class Racing(SlowAnswers):
            async def do(self, step: Step[R]) -> R:
                if isinstance(step, Answer) and not self.asked:
                    self.asked = True
                    await store.do(Recall(NAME, step.message_id, key_of(), 0))
                return await store.do(step)

        put_under(here, Racing(store))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await settle()
            await here.push(message("m1", "deploy", sent_at=old), message("m2", "status", sent_at=old))
            (told,) = await here.answered(1)
            assert ("status" in told, "deploy" in told) == (True, False)
            running.cancel()


class Followed(PushedChannel):
    """Its turns can be watched."""

    typing: Any = None

    def follow(self, request: Request) -> Follow | HttpAnswer:
        return HttpAnswer(400)

    def shown(self, follow: Follow, turn: LiveTurn) -> HttpAnswer:
        return HttpAnswer(200)


async def test_a_message_can_be_followed_from_its_claim_to_its_end() -> None:
    held = Held()
    async with desk(Followed(), script={"turn": held}) as here:
        live = here.run.work.live
        assert live is not None
        await here.push(message("m1", "one"))
        assert set(live._turns) == {"m1"}
        held.let_go("one")
        await here.answered(1)
        assert set(live._turns) == set()


async def test_a_message_that_is_stopped_just_as_it_started_has_no_turn() -> None:
    async with desk(Followed()) as here:

        class StopsAtStart(SlowAnswers):
            async def do(self, step: Step[R]) -> R:
                done = await self._store.do(step)
                if isinstance(step, Start) and step.message_id == "m1":
                    here.run.conversations.by_key[key_of()]._working.stop()  # type: ignore[union-attr]  # it works on one
                return done

        store = StopsAtStart(here.store)
        store.gate.set()
        under(here, store)
        await here.push(message("m1", "one"), message("m2", "two"))
        assert await here.answered(1) == ["echo: two"]
        assert [frame["prompt"] for frame in here.server.frames("turn.start")] == ["two"]


async def test_an_edited_message_that_is_not_here_is_taken_in() -> None:
    async with desk() as here:
        await here.push(message("m1", "one"))
        await here.answered(1)
        run = here.account._run
        assert run is not None
        conversation = run.conversations.by_key[key_of()]
        assert not conversation.is_busy
        assert conversation.edit(run.work.claimed(MessageId("m2"), message("m2", "two"), 0, 0, 1)) is True
        assert conversation.is_busy


@pytest.mark.parametrize(
    ("turn", "text", "end"),
    [
        (answer, "hi", TurnEnd.COMPLETED),
        (failing, "hi", TurnEnd.FAILED),
        (broken, "hi", TurnEnd.UNREACHABLE),
        (answer, " ", TurnEnd.EMPTY),
    ],
)
async def test_each_turn_is_counted_by_its_end(turn: Any, text: str, end: TurnEnd) -> None:
    async with desk(script={"turn": turn}) as here:
        await here.push(message("m1", text))
        await here.answered(1)
        meter = here.account._setup.meter
        assert {one: sum(seen.counts) for one, seen in meter.turns.items()} == {end: 1}
        assert sum(meter.slot_waits.counts) == 1
        assert meter.messages == {"accepted": 1}
        assert sum(meter.claims.counts) == 1


# --- what comes while a turn runs ------------------------------------------------


def asked(here: Desk) -> list[str]:
    return [start["prompt"] for start in here.server.frames("turn.start")]


async def reasons(here: Desk, *message_ids: str) -> list[str]:
    stored = [await here.store.get(MessageOf(NAME, MessageId(one))) for one in message_ids]
    return [one.reason for one in stored if one is not None]


def handles(here: Desk) -> list[str]:
    return [part.reply_to for part in here.channel.sent]


async def test_what_came_while_a_turn_ran_can_become_one_turn_with_one_reply_to_the_newest() -> None:
    held = Held()
    async with desk(script={"turn": held}, settings={"when_busy": "collect"}) as here:
        for text in ("one", "two", "", "three"):
            await here.say(text)
        assert len(await here.store.get(OpenMessages(NAME))) == 4
        held.let_go("one")
        held.let_go("two\n\nthree")
        assert await here.answered(2) == ["echo: one", "echo: two\n\nthree"]
        assert handles(here) == ["m1", "m4"]
        assert asked(here) == ["one", "two\n\nthree"]
        assert await reasons(here, "m1", "m2", "m3", "m4") == ["", ALONG, ALONG, ""]
        assert await here.store.get(OpenMessages(NAME)) == ()
        await here.say("four")
        held.let_go("four")
        assert len(await here.answered(3)) == 3


async def test_a_collected_turn_that_fails_is_told_of_once() -> None:
    async with desk(script={"turn": failing_second()}, settings={"when_busy": "collect"}) as here:
        await here.push(message("m1", "one"))
        await here.push(message("m2", "two"), message("m3", "three"))
        assert await here.answered(2) == ["echo: one", FAILURE]
        assert handles(here) == ["m1", "m3"]


def failing_second() -> Any:
    turns = [answer, failing]

    async def turn(peer: Peer, start: Frame) -> None:
        await settle()
        await turns.pop(0)(peer, start)

    return turn


async def test_of_what_is_collected_a_part_can_be_taken_back_also_while_its_turn_runs() -> None:
    held = Held()
    async with desk(script={"turn": held}, settings={"when_busy": "collect"}) as here:
        for text in ("one", "two", "three", "four"):
            await here.say(text)
        held.let_go("one")
        both = "two\n\nthree\n\nfour"
        await until(lambda: held.started == ["one", both])
        await here.push(Recalled("m4"))
        await here.push(Recalled("m2"))
        held.let_go(both)
        assert await here.answered(2) == ["echo: one", f"echo: {both}"]
        assert handles(here) == ["m1", "m3"]
        assert await reasons(here, "m2", "m3", "m4") == ["recalled", "", "recalled"]


async def test_the_last_of_what_is_collected_that_is_taken_back_ends_the_turn() -> None:
    async with desk(script={"turn": cancellable}, settings={"when_busy": "collect"}) as here:
        for text in ("long one", "long two", "long three"):
            await here.say(text)
        await until(lambda: asked(here) == ["long one"])
        await here.push(Recalled("m1"))
        await until(lambda: asked(here) == ["long one", "long two\n\nlong three"])
        await here.push(Recalled("m3"))
        await here.push(Recalled("m2"))
        await here.say("after")
        assert await here.answered(1) == ["echo: after"]


async def test_what_is_collected_is_put_together_anew_when_a_part_changes_before_its_turn() -> None:
    held, slow, started = Held(), True, list[str]()
    gates = {name: asyncio.Event() for name in ("m1", "m4")}

    async def hold(step: Start) -> None:
        started.append(step.message_id)
        if slow and step.message_id in gates:
            await gates[step.message_id].wait()

    async with desk(script={"turn": held}, settings={"when_busy": "collect"}) as here:
        after_starts(here, hold)
        await here.say("one")
        for text in ("two", "three", "four"):
            await here.say(text)
        await until(lambda: started == ["m1"])
        gates["m1"].set()
        held.let_go("one")
        await until(lambda: started[-1] == "m4")  # all of it is started, and its turn to begin
        await here.push(Recalled("m3"))
        slow = False
        for gate in gates.values():
            gate.set()
        held.let_go("two\n\nfour")
        assert await here.answered(2) == ["echo: one", "echo: two\n\nfour"]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_an_edit_of_what_is_being_collected_counts() -> None:
    gate = asyncio.Event()

    class SlowStart(ScriptedServer):
        async def _handle(self, peer: Peer, frame: Frame) -> None:
            if frame["type"] == "session.start":
                await gate.wait()
            await super()._handle(peer, frame)

    async with desk(script={"kind": SlowStart}, settings={"when_busy": "collect"}) as here:
        await here.push(message("m1", "one"), message("m2", "two"), message("m3", "three"))
        await until(lambda: len(here.server.frames("session.start")) == 1)
        await here.push(Edited(message("m2", "2"), 1))
        gate.set()
        assert await here.answered(1) == ["echo: one\n\n2\n\nthree"]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_a_crash_in_a_collected_turn_is_made_good_from_the_session_s_record() -> None:
    clock = FakeClock()
    ended = [
        ("assistant.completed", "m3", {"content": "both"}),
        ("turn.completed", "m3", {"steps": 1, "usage": {}}),
    ]
    async with homes() as home:
        started = asyncio.Event()

        async def dying(peer: Peer, start: Frame) -> None:
            started.set()
            await asyncio.get_running_loop().create_future()

        settings = {"when_busy": "collect"}
        async with desk(home=home, clock=clock, script={"turn": dying}, settings=settings) as here:
            await here.push(message("m2", "two"), message("m3", "three"))
            await started.wait()
            await settle()
        stored = {"s1": ended}
        async with desk(home=home, clock=clock, script={"stored": stored}, settings=settings) as again:
            assert await again.answered(1) == ["both"]
            assert handles(again) == ["m3"]
            assert asked(again) == []
            assert await again.store.get(OpenMessages(NAME)) == ()


async def test_case_68_a_step_that_puts_messages_together_and_raises_once_costs_one_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, broke = together, list[bool]()

    def once(*args: Any) -> Any:
        if not broke:
            broke.append(True)
            raise ValueError("a bug")
        return real(*args)

    monkeypatch.setattr(conversation, "together", once)  # as it is used there
    async with desk(settings={"when_busy": "collect"}) as here:
        await here.say("one")
        await here.say("two")
        assert await here.answered(2) == [FAILURE, "echo: two"]


async def test_a_newer_message_can_take_the_place_of_what_runs_and_waits() -> None:
    replaced = say(Text.REPLACED, Language.EN)
    async with desk(script={"turn": cancellable}, settings={"when_busy": "interrupt"}) as here:
        await here.say("long one")
        await until(lambda: asked(here) == ["long one"])
        await here.push(message("m2", "two"), message("m3", "three"))
        assert sorted(await here.answered(3)) == sorted([replaced, replaced, "echo: three"])
        assert asked(here) == ["long one", "three"]
        assert handles(here) == ["m1", "m2", "m3"]
        assert await reasons(here, "m1", "m2", "m3") == [Text.REPLACED, Text.REPLACED, ""]
        assert here.server.opened == 1


async def test_a_turn_that_ended_as_it_was_to_be_replaced_is_answered() -> None:
    held = Held()
    async with desk(script={"turn": held}, settings={"when_busy": "interrupt"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        held.let_go("one")  # which no cancel reaches
        held.let_go("two")
        await here.say("two")
        assert await here.answered(2) == ["echo: one", "echo: two"]


class Steering:
    """What a session says to texts for the running turn; ``gate`` holds the answer back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: bool | Exception) -> None:
        self.outcomes, self.given = list(outcomes), list[tuple[str, str]]()
        self.gate = asyncio.Event()
        self.gate.set()

        async def steer(session: Session, request_id: str, text: str) -> bool:
            self.given.append((request_id, text))
            await self.gate.wait()
            outcome = self.outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(Session, "steer", steer, raising=False)


async def test_a_text_can_be_given_to_the_turn_that_runs_and_is_answered_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, steering = Held(), Steering(monkeypatch, True, True)
    async with desk(script={"turn": held}, settings={"when_busy": "steer"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.say("two")
        await here.say("three")
        await until(lambda: len(steering.given) == 2)
        assert len(await here.store.get(OpenMessages(NAME))) == 3
        held.let_go("one")
        assert await here.answered(1) == ["echo: one"]
        assert handles(here) == ["m3"]
        assert steering.given == [("m2", "two"), ("m3", "three")]
        assert await reasons(here, "m1", "m2", "m3") == [ALONG, ALONG, ""]
        assert asked(here) == ["one"]


@pytest.mark.parametrize("outcome", [False, SessionError("gone")])
async def test_what_a_running_turn_does_not_take_has_a_turn_of_its_own(
    outcome: bool | Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, steering = Held(), Steering(monkeypatch, outcome)
    async with desk(script={"turn": held}, settings={"when_busy": "steer"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.say("two")
        await until(lambda: len(steering.given) == 1)
        held.let_go("one")
        held.let_go("two")
        assert await here.answered(2) == ["echo: one", "echo: two"]
        assert handles(here) == ["m1", "m2"]


async def test_a_turn_that_ends_waits_to_hear_whether_it_had_taken_a_text_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, steering = Held(), Steering(monkeypatch, True)
    steering.gate.clear()
    async with desk(script={"turn": held}, settings={"when_busy": "steer"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.say("two")
        await until(lambda: len(steering.given) == 1)
        held.let_go("one")
        await settle()
        assert here.channel.texts() == []
        steering.gate.set()
        assert await here.answered(1) == ["echo: one"]
        assert handles(here) == ["m2"]


async def test_what_has_to_be_fetched_is_not_given_to_a_running_turn_nor_what_comes_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, steering = Held(), Steering(monkeypatch)
    async with desk(script={"turn": held}, settings={"when_busy": "steer"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.say("two", reference="m0")
        await here.say("three")
        await settle()
        assert steering.given == []
        for prompt in ("one", "two", "three"):
            held.let_go(prompt)
        assert await here.answered(3) == ["echo: one", "echo: two", "echo: three"]


async def test_a_message_that_is_over_in_the_store_is_given_to_no_running_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, steering = Held(), Steering(monkeypatch, True)
    async with desk(script={"turn": held}, settings={"when_busy": "steer"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        run = here.account._run
        assert run is not None
        elsewhere = run.work.claimed(MessageId("gone"), message("gone"), 0, 0)
        run.room.take(key_of())
        run.conversations.arrive(key_of(), elsewhere)
        await here.say("two")
        await until(lambda: len(steering.given) == 1)
        held.let_go("one")
        await here.answered(1)
        assert steering.given == [("m2", "two")]


async def test_stop_ends_a_turn_with_all_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    Steering(monkeypatch, True)
    async with desk(script={"turn": cancellable}, settings={"when_busy": "steer"}) as here:
        await here.say("long one")
        await until(lambda: asked(here) == ["long one"])
        await here.say("two")
        await settle()
        await here.say("/stop")
        assert await here.answered(1) == [say(Text.STOPPED, Language.EN)]
        assert await here.store.get(OpenMessages(NAME)) == ()
        await until(lambda: here.account._run is not None and here.account._run.room.count(key_of()) == 0)


async def test_a_recall_of_the_first_as_messages_are_put_together_loses_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, recalled = Held(), asyncio.Event()

    async def just_before(work: Any, name: str) -> Any:
        if name == "answer" and held.started and not recalled.is_set():
            recalled.set()
            await here.push(Recalled("m2"))
        return await settled(work, name)

    monkeypatch.setattr(conversation, "settled", just_before)
    async with desk(script={"turn": held}, settings={"when_busy": "collect"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        for text in ("two", "three", "four"):
            await here.say(text)
        held.let_go("one")
        held.let_go("three\n\nfour")
        assert await here.answered(2) == ["echo: one", "echo: three\n\nfour"]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_what_a_turn_was_given_is_reported_when_that_is_taken_back_and_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridge.relay.working.CANCEL_SECONDS", 0.05)
    held, steering = Held(), Steering(monkeypatch, True)
    async with desk(script={"turn": held}, settings={"when_busy": "steer"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        steering.gate.clear()
        await here.say("two")
        await until(lambda: len(steering.given) == 1)
        await here.push(Recalled("m1"))
        steering.gate.set()
        assert await here.answered(1) == [FAILURE]
        assert handles(here) == ["m2"]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_after_a_command_for_a_new_one_the_next_message_has_a_session_of_its_own() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.say("/stop")
        await here.say("/new")
        held.let_go("one")
        held.let_go("two")
        await here.say("two")
        assert (await here.answered(3))[2] == "echo: two"
        assert here.server.opened == 2
        held.let_go("three")
        await here.say("three")
        assert (await here.answered(4))[3] == "echo: three"
        assert here.server.opened == 2


async def test_the_recall_of_an_answered_message_changes_nothing_of_what_runs() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        held.let_go("one")
        await here.say("one")
        await here.answered(1)
        await here.say("two")
        await until(lambda: held.started == ["one", "two"])
        await here.push(Recalled("m1"))
        held.let_go("two")
        assert await here.answered(2) == ["echo: one", "echo: two"]
        assert here.server.frames("turn.cancel") == []


# --- commands that are done in their turn ----------------------------------------------------------

TOOLS = {"remote_tools": "owner"}


async def test_a_command_to_choose_is_done_between_turns_and_is_part_of_none() -> None:
    held = Held()
    async with desk(script={"turn": held}, settings=TOOLS | {"when_busy": "collect"}) as here:
        for text in ("one", "two", "/mode", "three", "four"):
            await here.say(text)
        held.let_go("one")
        held.let_go("two")
        held.let_go("three\n\nfour")
        texts = await here.answered(4)
        assert texts[2] == say(Text.CHOICE_NONE, Language.EN, agent="a")
        assert asked(here) == ["one", "two", "three\n\nfour"]
        assert handles(here) == ["m1", "m2", "m3", "m5"]
        assert await reasons(here, "m3") == ["chosen"]
        assert await here.store.get(OpenMessages(NAME)) == ()


async def test_a_command_to_choose_is_not_given_to_the_turn_that_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, steering = Held(), Steering(monkeypatch, True)
    async with desk(script={"turn": held}, settings=TOOLS | {"when_busy": "steer"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.say("/compact")
        await here.say("two")
        await settle()
        assert steering.given == []
        held.let_go("one")
        held.let_go("two")
        texts = await here.answered(3)
        assert texts[1] == say(Text.COMPACTED, Language.EN, before=9, after=3)


async def test_a_command_to_choose_interrupts_nothing() -> None:
    held = Held()
    async with desk(script={"turn": held}, settings=TOOLS | {"when_busy": "interrupt"}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.say("/mode")
        await settle()
        held.let_go("one")
        assert (await here.answered(2))[0] == "echo: one"


async def test_without_tools_a_command_to_choose_is_an_ordinary_message() -> None:
    async with desk() as here:
        await here.say("/mode")
        assert await here.answered(1) == ["echo: /mode"]


async def test_a_command_that_a_crash_cut_off_is_done_once_more_and_answered_once() -> None:
    async with homes() as home:
        clock = FakeClock()
        async with desk(home=home, clock=clock, settings=TOOLS, run=False) as before:
            one = message("m1", "/mode")
            new = NewMessage(
                MessageId("m1"), MessageState.CLAIMED, conversation=payload.conversation_of(one),
                payload=payload.encode(one),
            )  # fmt: skip
            await before.store.do(Claim(NAME, (new,), unix_ms(clock.now())))
        async with desk(home=home, clock=clock, settings=TOOLS) as after:
            assert await after.answered(1) == [say(Text.CHOICE_NONE, Language.EN, agent="a")]
            assert await after.store.get(OpenMessages(NAME)) == ()
        async with desk(home=home, clock=clock, settings=TOOLS) as again:
            await settle()
            assert again.channel.texts() == []


async def test_a_command_whose_session_breaks_or_hangs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(ScriptedServer):
        async def _configure(self, peer: Peer, frame: Frame) -> None:
            if self.refuse_configure == "hang":
                await asyncio.Event().wait()
            peer.writer.close()

    async with desk(script={"kind": Broken}, settings=TOOLS) as here:
        await here.say("/mode")
        assert await here.answered(1) == [FAILURE]
        here.server.refuse_configure = "hang"
        monkeypatch.setattr(conversation, "CHOOSE_SECONDS", 0.05)
        await here.say("/mode")
        assert await here.answered(2) == [FAILURE] * 2
        await here.say("hello")
        assert (await here.answered(3))[2] == "echo: hello"


async def test_what_was_chosen_and_is_gone_is_told_as_that() -> None:
    class Gone(ScriptedServer):
        async def _handle(self, peer: Peer, frame: Frame) -> None:
            self.refuse_start = "invalid_request" if frame.get("agent") else ""
            await super()._handle(peer, frame)

    async with desk(script={"kind": Gone}, settings=TOOLS) as here:
        await here.store.do(Choose(NAME, key_of(), Chosen(agent="fast")))
        await here.say("one")
        assert await here.answered(1) == [say(Text.CHOICE_GONE, Language.EN)]
        await here.say("two")
        assert (await here.answered(2))[1] == "echo: two"


async def test_an_owner_s_long_turn_is_told_of_where_the_account_wants_that() -> None:
    from tests.relay.test_progress import SETTINGS, Editing, begun, passes, tool  # it imports from here

    channel = Editing()
    async with desk(channel, script={"turn": tool}, settings=SETTINGS) as here:
        go = await begun(here)
        await passes(here, 15)
        assert len(channel.says) == 1
        go.set()
        assert await here.answered(1) == ["done"]


async def test_a_newer_message_that_takes_a_turn_s_place_ends_what_that_asked() -> None:
    async def asks(peer: Peer, start: Frame) -> None:
        await ask_to_write(peer, start)
        while True:  # it does not end when it is cancelled
            await peer.next()

    async with desk(script={"turn": asks}, settings=ASK | {"when_busy": "interrupt"}) as here:
        await here.say("write it")
        await here.answered(1)
        await here.say("no, read it")
        await here.say(f"/approve {ID}")
        assert "no longer valid" in (await here.answered(2))[1]
        assert resolved(here) == []


async def test_a_turn_that_asked_and_lost_its_connection_is_answered_from_the_session_s_record() -> None:
    lost = asyncio.Event()

    async def asks(peer: Peer, start: Frame) -> None:
        await ask_to_write(peer, start)
        await lost.wait()
        raise HangupError

    async with desk(script={"turn": asks}, settings=ASK) as here:
        await here.say("write it")
        await here.answered(1)
        here.server.stored[here.server.peers[-1].session_id] = [
            ("assistant.completed", "m1", {"content": "written all the same"}),
            ("turn.completed", "m1", {"steps": 2, "usage": {}}),
        ]
        lost.set()
        assert (await here.answered(2))[1] == "written all the same"


async def ask_to_write(peer: Peer, start: Frame) -> None:
    """The turn starts, and its owner is asked."""
    request, call = start["request_id"], {"call_id": "c1", "name": "write_file"}
    await peer.turn("turn.started", request)
    asked_for: Frame = {"approval_id": "a1", "risk": "filesystem", "cwd": "/w", "summary": "s"}
    await peer.turn("approval.requested", request, **asked_for, **call)
