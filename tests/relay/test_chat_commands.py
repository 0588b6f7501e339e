"""Commands in chats, as a running account answers them."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bridge.channel import FileKind, RemoteFile
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.health import State
from bridge.ids import MessageId
from bridge.relay import working
from bridge.relay.approvals import short_id
from bridge.relay.texts import Language, Text, say
from bridge.store.change_steps import STOPPED
from bridge.store.contract import MessageOf, OpenMessages, SessionOf
from tests.relay.harness import NAME, OWNER, STRANGER, Desk, desk, homes, message
from tests.relay.scripted import Frame, Peer, ScriptedServer, answer, cancellable
from tests.relay.test_changes import prompts
from tests.relay.test_conversation import Held, key_of

LONG = {"turn": cancellable}


def en(text: Text, **values: object) -> str:
    return say(text, Language.EN, **values)


async def busy(here: Desk, *waiting: str, sender: str = OWNER) -> None:
    """One turn runs, and these messages wait behind it."""
    await here.say("long one", sender)
    await until(lambda: prompts(here) == ["long one"])
    for text in waiting:
        await here.say(text, sender)


# --- /stop --------------------------------------------------------------------


async def test_stop_ends_the_turn_and_what_waits_and_says_how_many_once() -> None:
    async with desk(script=LONG) as here:
        await busy(here, "second", "third")
        await here.say("/stop")
        assert await here.answered(1) == [en(Text.STOPPED_ALL, count=2)]
        assert await here.store.get(OpenMessages(NAME)) == ()
        for one in ("m1", "m2", "m3"):
            stored = await here.store.get(MessageOf(NAME, MessageId(one)))
            assert stored is not None
            assert stored.reason == STOPPED
        await here.say("after")
        assert await here.answered(2) == [en(Text.STOPPED_ALL, count=2), "echo: after"]
        assert prompts(here) == ["long one", "after"]


async def test_stop_of_one_turn_and_of_nothing_in_chinese_too() -> None:
    async with desk(script=LONG) as here:
        await here.say("/stop")
        await busy(here)
        await here.say("／停止")
        await here.say("/停止")
        assert await here.answered(3) == [
            en(Text.NOTHING_RUNS),
            say(Text.STOPPED, Language.ZH),
            say(Text.NOTHING_RUNS, Language.ZH),
        ]


async def test_case_67_after_a_stop_the_session_is_kept() -> None:
    async with desk(script=LONG) as here:
        await busy(here)
        await here.say("/stop")
        await here.answered(1)
        for number in range(3):
            await here.say(f"after {number}")
        await here.answered(4)
        assert (here.server.opened, here.server.closed) == (1, 0)


async def test_an_agent_that_ignores_the_cancel_costs_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async def deaf(peer: Peer, start: Frame) -> None:
        if "long" not in start["prompt"]:
            await answer(peer, start)

    monkeypatch.setattr(working, "CANCEL_SECONDS", 0.01)
    async with desk(script={"turn": deaf}) as here:
        await busy(here)
        await here.say("/stop")
        await here.say("after")
        assert await here.answered(2) == [en(Text.STOPPED), "echo: after"]


@pytest.mark.parametrize("stuck", ["session.start", "fetch", "slot"])
async def test_stop_ends_what_hangs_before_its_turn(stuck: str) -> None:
    class Mute(ScriptedServer):
        async def _handle(self, peer: Peer, frame: Frame) -> None:
            if frame["type"] != stuck:
                await super()._handle(peer, frame)

    picture = RemoteFile("k", FileKind.IMAGE, mime="image/png")
    limits = {"turns": 2, "owner_turns": 1}
    async with desk(script={"kind": Mute, "turn": cancellable}, limits=limits) as here:
        if stuck == "fetch":
            here.channel.fetch = hanging
            await here.say("look", files=(picture,))
        elif stuck == "slot":
            await busy(here, sender=STRANGER)
            await here.say("other", "u-other")
        else:
            await here.say("hello")
        sender = "u-other" if stuck == "slot" else OWNER
        await settle()
        await here.say("/stop", sender)
        assert await here.answered(1) == [en(Text.STOPPED)]
        await until(
            lambda: here.account._run is not None and here.account._run.room.count(key_of(sender)) == 0
        )


def hanging(file: RemoteFile, max_bytes: int) -> Any:
    class Hanging:
        async def __aenter__(self) -> None:
            await asyncio.get_running_loop().create_future()

        async def __aexit__(self, *error: object) -> None: ...

    return Hanging()


async def test_a_stop_is_in_force_over_a_crash_right_behind_it() -> None:
    """What it drops ends in the step that stores it: nothing of it runs after a restart."""
    clock = FakeClock()
    async with homes() as home:
        async with desk(home=home, clock=clock, script=LONG) as here:
            await busy(here, "second")
            run = here.account._run
            assert run is not None
            run.conversations.stop = lambda key: None  # type: ignore[method-assign]  # killed before that
            await here.say("/stop")
            await here.answered(1)
        async with desk(home=home, clock=clock) as again:
            await settle()
            assert again.channel.texts() == []
            assert prompts(again) == []


async def test_a_stop_ends_nothing_of_others() -> None:
    async with desk(script=LONG) as here:
        await busy(here)
        await here.say("/stop", STRANGER)
        assert await here.answered(1) == [en(Text.NOTHING_RUNS)]
        assert len(await here.store.get(OpenMessages(NAME))) == 1


# --- /new ---------------------------------------------------------------------


async def test_new_drops_the_session_of_an_idle_conversation() -> None:
    async with desk() as here:
        await here.say("one")
        await here.answered(1)
        await here.say("/new")
        assert (await here.answered(2))[1] == en(Text.NEW_SESSION)
        assert await here.store.get(SessionOf(NAME, key_of())) is None
        await here.say("two")
        await here.answered(3)
        assert here.server.opened == 2


async def test_new_without_a_session_is_said_all_the_same() -> None:
    async with desk() as here:
        await here.say("/新会话")
        assert await here.answered(1) == [say(Text.NEW_SESSION, Language.ZH)]


async def test_new_right_behind_a_stop_waits_for_nothing_and_the_next_session_is_new() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.say("one")
        await until(lambda: held.started == ["one"])
        await here.say("/stop")
        await here.say("/new")
        await here.say("two")
        assert await here.answered(2) == [en(Text.STOPPED), en(Text.NEW_SESSION)]
        assert here.server.opened == 1
        held.let_go("one")
        held.let_go("two")
        assert (await here.answered(3))[2] == "echo: two"
        assert here.server.opened == 2


async def test_new_is_refused_while_something_runs_and_names_stop() -> None:
    async with desk(script=LONG) as here:
        await busy(here)
        await here.say("/new")
        said = await here.answered(1)
        assert said == [en(Text.NEW_BUSY)]
        assert "/stop" in said[0]
        assert await here.store.get(SessionOf(NAME, key_of())) is not None


# --- what is told -------------------------------------------------------------


async def test_status_tells_the_owner_of_the_account_and_of_the_chat() -> None:
    async with desk(script=LONG) as here:
        shown = here.health.snapshot
        here.health.snapshot = replace(
            shown, since=here.clock.now() - timedelta(hours=5), dead_letters=2, unproven_requests=3
        )
        await busy(here, "second")
        await here.clock.advance(30)
        await here.say("/status")
        lines = (await here.answered(1))[0].splitlines()
        assert lines == [
            en(Text.ACCOUNT, account=NAME, state="connected", time="5 h", count=2),
            en(Text.UNDELIVERED, count=2),
            en(Text.UNPROVEN, count=3),
            en(Text.RUNS, time="30 s"),
            en(Text.WAITS_TOO, count=1),
        ]


@pytest.mark.parametrize("state", State)
async def test_status_has_words_for_each_state(state: State) -> None:
    async with desk() as here:
        here.health.snapshot = replace(here.health.snapshot, state=state)
        await here.say("/状态")
        told = (await here.answered(1))[0]
        assert say(Text(f"state_{state}"), Language.ZH) in told


async def test_a_stranger_and_the_owner_in_a_group_learn_nothing_of_the_account() -> None:
    async with desk() as here:
        await here.say("/status", STRANGER)
        await here.say("/status", OWNER, group=True)
        assert await here.answered(2) == [en(Text.NOTHING_RUNS)] * 2


async def test_queue_shows_what_waits_by_its_beginning() -> None:
    async with desk(script=LONG) as here:
        picture = RemoteFile("k", FileKind.IMAGE)
        await here.say("/queue")
        await busy(here, "second\nline", "x" * 500)
        await here.say("", files=(picture,))
        await here.clock.advance(150)
        await here.say("/queue")
        first, *rest = (await here.answered(2))[1].splitlines()
        assert first == en(Text.QUEUED, time="2 min", words="long one")
        assert rest[0] == "1. second line"
        assert rest[1].startswith("2. xxx")
        assert len(rest[1]) < 150
        assert rest[2] == f"3. {en(Text.FILES, count=1)}"


async def test_a_long_queue_is_cut_to_what_any_platform_takes_at_once() -> None:
    async with desk(script=LONG, limits={"conversation_claims": 64}) as here:
        await busy(here, *("长" * 300 for _ in range(30)))
        await here.say("/队列")
        told = (await here.answered(1))[0]
        assert told.endswith(say(Text.MORE_WAIT, Language.ZH, count=22))
        assert len(told.encode()) < 1800


async def test_status_says_which_question_the_turn_waits_for() -> None:
    async def asks(peer: Peer, start: Frame) -> None:
        request, tool = start["request_id"], {"call_id": "c1", "name": "write_file"}
        await peer.turn("turn.started", request)
        await peer.turn(
            "approval.requested", request, approval_id="a1", risk="process", cwd="/w", summary="s", **tool
        )
        await asyncio.Event().wait()

    async with desk(settings={"remote_tools": "owner", "approvals": "ask"}, script={"turn": asks}) as here:
        await here.say("write it")
        await here.answered(1)
        await here.say("/status")
        waits = en(Text.WAITS_FOR_YOU, ids=short_id("a1"))
        assert (await here.answered(2))[1].endswith(f"{en(Text.RUNS, time='0 s')}\n{waits}")


async def test_status_while_an_idle_chat_is_left_counts_what_waits_for_that() -> None:
    async with desk() as here:
        await here.say("one")
        await here.answered(1)
        run = here.account._run
        assert run is not None
        conversation = run.conversations.by_key[key_of()]
        conversation.leave()
        await here.say("two")
        await here.say("/status", OWNER)
        assert (await here.answered(2))[1].endswith(en(Text.WAITS, count=1))
        await conversation.retire()


@pytest.mark.parametrize(
    ("sender", "group", "tools", "may"),
    [
        (OWNER, False, "owner", Text.MAY_TOOLS),
        (OWNER, False, "none", Text.MAY_OWNER),
        (OWNER, True, "owner", Text.MAY_HERE),
        (STRANGER, False, "owner", Text.MAY_ASK),
        (STRANGER, True, "owner", Text.MAY_ASK),
    ],
)
async def test_whoami_tells_the_id_and_what_it_may_do(
    sender: str, group: bool, tools: str, may: Text
) -> None:
    async with desk(settings={"remote_tools": tools}) as here:
        await here.say("/whoami", sender, group=group)
        assert await here.answered(1) == [f"{en(Text.WHOAMI, platform='Test', sender=sender)}\n{en(may)}"]


async def test_the_chinese_answer_calls_the_platform_what_it_is_called_in_chinese() -> None:
    for chinese, shown in (({"Test": "飞书"}, "飞书"), ({}, "Test")):
        async with desk(spec={"chinese": chinese}) as here:
            await here.say("/我是谁")
            await here.say("/whoami")
            first, second = await here.answered(2)
            assert first.startswith(f"您的 ID 是 {OWNER}（{shown}）。")
            assert second.startswith(f"On Test you are {OWNER}.")


async def test_help_tells_the_owner_of_approvals_and_nobody_else() -> None:
    async with desk() as here:
        await here.say("/help")
        await here.say("/help", STRANGER)
        await here.say("/帮助", OWNER, group=True)
        own, others, in_a_group = await here.answered(3)
        assert own == f"{en(Text.HELP)}\n{en(Text.HELP_OWNER)}"
        assert others == en(Text.HELP)
        assert in_a_group == say(Text.HELP, Language.ZH)
    async with desk(settings={"remote_tools": "owner"}) as here:
        await here.say("/help")
        await here.say("/help", STRANGER)
        await here.say("/help", OWNER, group=True)
        mine, *rest = await here.answered(3)
        assert mine == f"{en(Text.HELP)}\n{en(Text.HELP_OWNER)}\n{en(Text.HELP_TOOLS)}"
        assert rest == [en(Text.HELP)] * 2


@pytest.mark.parametrize("text", ["/approve", "/deny ab12", "/批准"])
async def test_case_61_an_answer_that_nothing_waits_for_never_becomes_a_turn(text: str) -> None:
    async with desk() as here:
        await here.say(text)
        await here.answered(1)
        assert prompts(here) == []


async def test_those_that_are_not_answered_get_no_command_answered_either() -> None:
    async with desk(settings={"senders": "owner"}) as here:
        await here.say("/help", STRANGER)
        await settle()
        assert here.channel.texts() == []


async def test_what_is_no_command_is_an_ordinary_message() -> None:
    async with desk() as here:
        await here.say("/unknown")
        await here.say("/stop that noise")
        assert await here.answered(2) == ["echo: /unknown", "echo: /stop that noise"]


async def test_a_command_is_answered_in_a_conversation_that_has_no_room_left() -> None:
    async with desk(script=LONG, limits={"conversation_claims": 1}) as here:
        await busy(here)
        await here.say("/queue")
        assert await here.answered(1) == [en(Text.QUEUED, time="0 s", words="long one")]


async def test_a_command_that_comes_twice_acts_once() -> None:
    held = Held()
    async with desk(script={"turn": held}) as here:
        await here.push(message("s", "/stop"))
        await here.say("one")
        await here.push(message("s", "/stop"))
        held.let_go("one")
        assert await here.answered(2) == [en(Text.NOTHING_RUNS), "echo: one"]


MENTIONS = ('<at user_id="all"></at>', "<!channel>", "<@U1>", "@everyone", "@all")


@pytest.mark.parametrize("mention", MENTIONS)
async def test_what_others_wrote_and_are_called_notifies_nobody_when_it_is_repeated(mention: str) -> None:
    async with desk(script=LONG) as here:
        await here.say("long one", mention)
        await here.say(mention, mention)
        await here.say("/queue", mention)
        await here.say("/whoami", mention)
        queue, whoami = await here.answered(2)
        assert mention not in queue
        assert mention not in whoami
        assert mention[1:-1] in queue.replace("\u200b", ""), "it can still be read"
