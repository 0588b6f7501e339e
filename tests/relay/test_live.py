"""Turns as those see them who follow: what changes, what is over, and that nobody waits for nothing."""

import asyncio
import json
from typing import Any

from bridge.channel import Answer, Follow, LiveTurn, Request
from bridge.channel.testing.clock import settle, until
from bridge.protocol.events import (
    AssistantCompleted,
    AssistantDelta,
    ToolCompleted,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from bridge.relay import live as live_module
from bridge.relay.account import RETRY_LATER
from bridge.relay.live import Live
from tests.relay.harness import PushedChannel, desk, request
from tests.relay.scripted import Frame, Peer

HEAD: dict[str, Any] = {"request_id": "m1", "session_id": "s", "turn_id": "t", "seq": 1}


class Followed:
    """A channel whose users follow turns: the query is the request, JSON the answer."""

    def follow(self, request: Request) -> Follow | Answer:
        if "message" not in request.query:
            return Answer(400)
        version, wait = request.query.get("version", "0"), request.query.get("wait", "0")
        return Follow(request.query["message"], int(version), float(wait))

    def shown(self, follow: Follow, turn: LiveTurn) -> Answer:
        return Answer(
            200, json.dumps([turn.version, turn.text, turn.tool, turn.progress, turn.over]).encode()
        )


class FollowedChannel(PushedChannel, Followed):
    pass


async def ask(live: Live, message: str = "m1", version: int = 0, wait: float = 0) -> LiveTurn:
    query: dict[str, Any] = {"message": message, "version": str(version), "wait": str(wait)}
    answer = await live.answer(Followed(), request(**query))
    return LiveTurn(*json.loads(answer.body))


def begun() -> Live:
    live = Live()
    live.begin("m1")
    return live


def delta(text: str) -> AssistantDelta:
    return AssistantDelta(**HEAD, content=text)


async def test_text_grows_and_the_next_step_begins_anew() -> None:
    live = begun()
    live.see("m1", delta("Hel"))
    live.see("m1", delta("lo"))
    assert await ask(live) == LiveTurn(2, "Hello")
    live.see("m1", AssistantCompleted(**HEAD, content="Hello!"))
    assert (await ask(live)).text == "Hello!"
    live.see("m1", delta("Then"))
    assert (await ask(live)).text == "Then"


async def test_a_step_without_previews_shows_its_whole_text() -> None:
    live = begun()
    live.see("m1", AssistantCompleted(**HEAD, content="All of it"))
    assert await ask(live) == LiveTurn(1, "All of it")


async def test_a_tool_is_named_while_it_runs_with_its_progress() -> None:
    live = begun()
    live.see("m1", ToolStarted(**HEAD, call_id="c", name="wait"))
    live.see("m1", ToolProgress(**HEAD, call_id="c", text="1 of 3"))
    assert await ask(live) == LiveTurn(2, "", "wait", "1 of 3")
    live.see("m1", ToolStarted(**HEAD, call_id="d", name="read_file"))
    assert (await ask(live)).progress == ""
    live.see("m1", ToolCompleted(**HEAD, call_id="d", name="x", success=True, output="", truncated=False))
    assert await ask(live) == LiveTurn(4)


async def test_a_text_is_kept_up_to_a_bound() -> None:
    live = begun()
    live.see("m1", delta("a" * live_module.TEXT_CHARACTERS))
    live.see("m1", delta("end"))
    text = (await ask(live)).text
    assert len(text) == live_module.TEXT_CHARACTERS
    assert text.endswith("aend")
    live.see("m1", AssistantCompleted(**HEAD, content="b" * (live_module.TEXT_CHARACTERS + 1)))
    assert len((await ask(live)).text) == live_module.TEXT_CHARACTERS


async def test_other_events_and_turns_that_nobody_began_change_nothing() -> None:
    live = begun()
    live.see("m1", TurnStarted(**HEAD))
    live.see("m2", delta("x"))
    assert await ask(live) == LiveTurn()
    assert await ask(live, "m2") == LiveTurn(over=True)


async def test_whoever_waits_is_answered_by_the_next_change() -> None:
    live = begun()
    live.see("m1", delta("a"))
    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(ask(live, version=1, wait=20)) for _ in range(2)]
        await settle()
        assert not any(task.done() for task in asking)
        live.see("m1", delta("b"))
        await until(lambda: all(task.done() for task in asking))
    assert [task.result().text for task in asking] == ["ab", "ab"]


async def test_whoever_is_behind_does_not_wait_and_a_wait_has_its_end() -> None:
    live = begun()
    live.see("m1", delta("a"))
    assert (await ask(live, version=0, wait=20)).version == 1
    assert (await ask(live, version=1, wait=0.01)).version == 1


async def test_the_end_is_told_to_those_who_wait_and_beginning_again_keeps_what_is_known() -> None:
    live = begun()
    live.see("m1", delta("a"))
    live.begin("m1")
    assert (await ask(live)).text == "a"
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask(live, version=1, wait=20))
        await settle()
        live.end("m1")
        live.end("m1")
    assert asking.result() == LiveTurn(over=True)


async def test_whoever_knows_more_than_there_is_followed_another_run_and_does_not_wait() -> None:
    live = begun()
    live.see("m1", delta("a"))
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask(live, version=7, wait=20))
        await until(asking.done)
    assert asking.result() == LiveTurn(1, "a")


async def test_a_wrong_request_is_the_channel_s_to_refuse() -> None:
    assert await Live().answer(Followed(), request()) == Answer(400)


async def test_a_running_turn_is_followed_by_its_account_s_route_until_its_reply_is_stored() -> None:
    held = asyncio.Event()

    async def turn(peer: Peer, start: Frame) -> None:
        await peer.turn("assistant.delta", start["request_id"], content="so far")
        await held.wait()
        await peer.turn("assistant.completed", start["request_id"], content="so far so good")
        await peer.turn("turn.completed", start["request_id"], steps=1, usage={})

    async with desk(FollowedChannel(), script={"turn": turn}) as here:
        await here.say("hi")
        followed = request(path="/live", message="m1", wait="20")
        shown = await here.account.handle(followed)
        assert isinstance(shown, Answer)
        assert json.loads(shown.body)[1] == "so far"
        held.set()
        assert await here.answered(1) == ["so far so good"]
        over = await here.account.handle(request(path="/live", message="m1"))
        assert isinstance(over, Answer)
        assert json.loads(over.body)[4] is True


async def test_whoever_follows_a_turn_is_told_to_come_back_when_the_account_s_run_ends() -> None:
    async def turn(peer: Peer, start: Frame) -> None:
        """It goes on and on."""

    async with asyncio.TaskGroup() as tasks:
        async with desk(FollowedChannel(), script={"turn": turn}) as here:
            await here.say("hi")
            following = tasks.create_task(here.account.handle(request(path="/live", message="m1", wait="20")))
            await settle()
            assert not following.done()
        assert following.done()
        assert following.result() == RETRY_LATER  # the turn is not over: the next run goes on with it


async def test_a_channel_that_lets_nobody_follow_has_no_such_route() -> None:
    async with desk() as here:
        answer = await here.account.handle(request(path="/live", message="m1"))
        assert isinstance(answer, Answer)
        assert answer.status == 404
