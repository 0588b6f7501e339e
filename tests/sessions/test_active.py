"""The record of a turn, and its one terminal event."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest

from bridge.agents.contract import AgentError, AgentUsage, Gate, Role, Sink, ToolCall, Turn
from bridge.config import SessionsTable
from bridge.ids import SessionId
from bridge.sessions import active, history, scope
from bridge.sessions.active import ActiveTurn
from bridge.sessions.errors import RequestError
from bridge.store.contract import BeginTurn, EndTurn, LoadSession, StoredSession
from tests.sessions import keeping
from tests.sessions.attaching import attaching_tools, copies
from tests.sessions.keeping import asking, taken_up
from tests.sessions.wire import ENDS, Client, Event, ScriptedAgent, Server, serving


async def stored(server: Server, client: Client) -> StoredSession:
    found = await server.store.get(LoadSession(SessionId(client.session_id)))
    assert found is not None
    return found


async def fail(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.completed("half")
    raise AgentError("step_limit", "too\nmany " + "x" * 400)


async def crash(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    raise KeyError("private words")


async def forever(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.completed("on it")
    await asyncio.Event().wait()
    raise AssertionError


async def counted(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.completed("done")
    return AgentUsage(steps=3, input_tokens=0, output_tokens=7)


async def test_a_turn_is_recorded_before_it_is_told_and_ended_before_that_is_told() -> None:
    agent = ScriptedAgent()
    async with serving(agent) as server:
        client = await server.session()
        recorded: list[Any] = []

        async def note(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
            recorded.append((await stored(server, client)).interrupted)
            await sink.completed("done")
            return AgentUsage(steps=1)

        agent.acts["go"] = note
        events = await client.turn("go", request_id="own")
        assert recorded == [((events[0]["turn_id"], "own"),)]
        record = await stored(server, client)
        assert record.interrupted == ()
        assert record.record.seq == events[-1]["seq"]
        begin = next(step for step in server.store.steps if isinstance(step, BeginTurn))
        assert begin.seq_reserved > events[-1]["seq"] + 100_000


async def test_a_completed_turn_tells_its_steps_and_what_was_reported_of_its_tokens() -> None:
    async with serving(ScriptedAgent(count=counted)) as server:
        client = await server.session()
        ended = (await client.turn("count"))[-1]
        assert (ended["steps"], ended["usage"]) == (3, {"input_tokens": 0, "output_tokens": 7})
        assert (await client.turn("plain"))[-1]["usage"] == {}


@pytest.mark.parametrize("odd", [-1, 1 << 63, 1 << 64, 10**306])
async def test_figures_that_no_turn_can_have_used_cost_the_figure_and_never_the_answer(odd: int) -> None:
    async def lie(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.completed("done")
        return AgentUsage(odd, odd, odd, odd)

    async def lie_and_fail(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        sink.used(AgentUsage(odd, odd, 7, odd))
        raise AgentError("provider_error", "no")

    async with serving(ScriptedAgent(lie=lie, fail=lie_and_fail)) as server:
        client = await server.session()
        ended = (await client.turn("lie"))[-1]
        assert (ended["type"], ended["steps"], ended["usage"]) == ("turn.completed", 1, {})
        assert "cost_micros" not in ended
        failed = (await client.turn("fail"))[-1]
        assert (failed["type"], failed["usage"]) == ("turn.failed", {"output_tokens": 7})


async def spend_and_fail(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    sink.used(AgentUsage(1, 5, None, 2))
    sink.used(AgentUsage(2, 9, 1, 4))
    await sink.completed("half")
    raise AgentError("provider_error", "no more")


async def spend_and_wait(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    sink.used(AgentUsage(1, cost_micros=3))
    return await forever(turn, sink, gate)


async def test_a_turn_that_fails_or_is_cancelled_tells_what_it_used_until_then() -> None:
    async with serving(ScriptedAgent(fail=spend_and_fail, wait=spend_and_wait)) as server:
        client = await server.session()
        ended = (await client.turn("fail"))[-1]
        told = (ended["type"], ended["usage"], ended["cost_micros"])
        assert told == ("turn.failed", {"input_tokens": 9, "output_tokens": 1}, 4)
        client.ask("turn.start", prompt="wait")
        client.ask("turn.cancel", turn_id=(await client.until("assistant.completed"))[-1]["turn_id"])
        ended = (await client.until(*ENDS))[-1]
        assert (ended.get("usage"), ended["cost_micros"]) == (None, 3)


async def test_a_failure_is_told_in_one_line_of_300_characters() -> None:
    async with serving(ScriptedAgent(fail=fail)) as server:
        client = await server.session()
        ended = (await client.turn("fail"))[-1]
        assert (ended["type"], ended["code"]) == ("turn.failed", "step_limit")
        assert ended["message"].startswith("too many xxx")
        assert len(ended["message"]) == 300
        assert [event["type"] for event in client.seen].count("error") == 0


async def test_a_failure_stands_in_the_log_with_whom_it_met_and_without_its_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serving(ScriptedAgent(fail=fail)) as server:
        here = await server.session()
        await here.turn("fail")
        chat = {"channel": "feishu", "account": "main", "conversation": "c"}
        there = await server.session(chat=chat)
        await there.turn("fail")
        first, second = [line for line in capsys.readouterr().err.splitlines() if "turn.failed" in line]
    for line, session, account in ((first, here, ""), (second, there, "feishu:main")):
        for words in ("step_limit", "scripted", session.session_id, account):
            assert words in line
        assert "too many" not in line
    assert "feishu" not in first


async def test_an_agent_that_breaks_fails_its_turn_and_nothing_else() -> None:
    async with serving(ScriptedAgent(crash=crash)) as server:
        client = await server.session()
        ended = (await client.turn("crash"))[-1]
        assert (ended["type"], ended["code"]) == ("turn.failed", "internal_error")
        assert "private" not in ended["message"]
        assert (await client.turn("next"))[-1]["type"] == "turn.completed"


async def test_an_agent_that_cancels_itself_is_a_cancelled_turn() -> None:
    async def give_up(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        raise asyncio.CancelledError

    async with serving(ScriptedAgent(go=give_up)) as server:
        client = await server.session()
        assert (await client.turn("go"))[-1]["type"] == "turn.cancelled"


@pytest.mark.parametrize("prompt", ["fail", "crash", "forever"])
async def test_a_turn_that_did_not_complete_leaves_the_history_as_it_was(prompt: str) -> None:
    agent = ScriptedAgent(fail=fail, crash=crash, forever=forever)
    async with serving(agent) as server:
        client = await server.session()
        await client.turn("first")
        client.ask("turn.start", prompt=prompt)
        event = await client.event()
        if prompt == "forever":
            client.ask("turn.cancel", turn_id=event["turn_id"])
        await client.until(*ENDS)
        await client.turn("last")
        assert [entry.text for entry in agent.seen[-1][:-1]] == ["first", "re: first"]
        assert len((await stored(server, client)).history) == 4


async def test_a_cancelled_turn_ends_as_cancelled_even_when_the_agent_goes_on() -> None:
    async def stubborn(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.delta("on it")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await sink.completed("anyway")
        return AgentUsage(steps=1)

    async with serving(ScriptedAgent(go=stubborn)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        client.ask("turn.cancel", turn_id=(await client.until("assistant.delta"))[-1]["turn_id"])
        events = await client.until(*ENDS)
        assert [event["type"] for event in events] == ["assistant.completed", "turn.cancelled"]


async def test_an_agent_that_would_not_stop_is_silenced() -> None:
    release, tried = asyncio.Event(), asyncio.Event()

    async def deaf(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.delta("on it")
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        try:
            await sink.completed("too late")
        finally:
            tried.set()
        return AgentUsage(steps=1)

    async with serving(ScriptedAgent(go=deaf)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        client.ask("turn.cancel", turn_id=(await client.until("assistant.delta"))[-1]["turn_id"])
        assert (await client.event())["type"] == "turn.cancelled"
        release.set()
        await tried.wait()
        assert [event["type"] for event in await client.turn("next")] == [
            "turn.started",
            "assistant.completed",
            "turn.completed",
        ]


async def test_a_turn_that_cannot_be_recorded_is_not_run() -> None:
    agent = ScriptedAgent()
    async with serving(agent) as server:
        client = await server.session()
        server.store.failing = {BeginTurn}
        events = await client.turn("go")
        assert [event["type"] for event in events] == ["turn.started", "turn.failed"]
        assert events[-1]["code"] == "internal_error"
        assert agent.turns == []
        server.store.failing.clear()
        assert (await client.turn("again"))[-1]["type"] == "turn.completed"


async def test_a_turn_whose_end_cannot_be_recorded_has_failed() -> None:
    agent = ScriptedAgent(attach=attach)
    async with serving(agent, tools=attaching_tools) as server:
        client = await server.session(channel="Chat")
        server.store.failing = {EndTurn}
        events = await client.turn("attach")
        assert (events[-1]["type"], events[-1]["code"]) == ("turn.failed", "internal_error")
        assert [event["type"] in ENDS for event in events].count(True) == 1
        assert copies(server.workspace) == []
        server.store.failing.clear()
        await client.turn("next")
        assert agent.seen[-1][:-1] == ()


async def called(sink: Sink, gate: Gate, call: ToolCall) -> None:
    await sink.completed("look", [call])
    await gate.call(call)


async def attach(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await called(sink, gate, ToolCall(name="chat_attach", arguments={"path": "a"}))
    await sink.completed("there")
    return AgentUsage(steps=2)


async def attach_and_fail(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await attach(turn, sink, gate)
    raise AgentError("provider_error", "no")


async def attach_and_wait(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await attach(turn, sink, gate)
    await asyncio.Event().wait()
    raise AssertionError


async def test_the_record_has_the_last_words_the_attached_files_and_the_end() -> None:
    async with serving(ScriptedAgent(go=attach), tools=attaching_tools) as server:
        client = await server.session(channel="Chat")
        events = await client.turn("go")
        wanted = [events[-2], next(e for e in events if e["type"] == "tool.completed"), events[-1]]
        record = await stored(server, client)
        assert [decoded(frame) for frame in record.last_turn] == wanted
        assert len(copies(server.workspace)) == 1
        assert len(record.history) == 4


def decoded(frame: bytes) -> Event:
    import json

    event: Event = json.loads(frame)
    return event


async def test_copies_of_a_failed_turn_are_deleted() -> None:
    async with serving(ScriptedAgent(go=attach_and_fail), tools=attaching_tools) as server:
        client = await server.session(channel="Chat")
        assert (await client.turn("go"))[-1]["type"] == "turn.failed"
        assert copies(server.workspace) == []
        assert not [frame for frame in (await stored(server, client)).last_turn if b"chat_attach" in frame]


async def test_copies_of_a_cancelled_turn_are_deleted() -> None:
    async with serving(ScriptedAgent(go=attach_and_wait), tools=attaching_tools) as server:
        client = await server.session(channel="Chat")
        client.ask("turn.start", prompt="go")
        approval = (await client.until("approval.requested"))[-1]
        client.ask("approval.resolve", approval_id=approval["approval_id"], approved=True)
        await client.until("assistant.completed")
        client.ask("turn.cancel", turn_id=approval["turn_id"])
        assert (await client.event())["type"] == "turn.cancelled"
        assert copies(server.workspace) == []


async def test_a_copy_that_cannot_be_deleted_does_not_keep_the_turn_from_ending() -> None:
    async def attach_folder(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await called(sink, gate, ToolCall(name="chat_attach", arguments={"path": "folder"}))
        raise AgentError("provider_error", "no")

    async with serving(ScriptedAgent(go=attach_folder), tools=attaching_tools) as server:
        client = await server.session(channel="Chat")
        assert (await client.turn("go"))[-1]["code"] == "provider_error"


async def test_the_oldest_turns_give_way_to_a_note_and_the_client_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "MOST_ENTRIES", 5)
    agent = ScriptedAgent()
    async with serving(agent) as server:
        client = await server.session()
        events = [await client.turn(prompt) for prompt in "abc"][-1]
        assert [event["type"] for event in events][-2:] == ["session.trimmed", "turn.completed"]
        trimmed = events[-2]
        assert (trimmed["removed_messages"], trimmed["request_id"]) == (2, events[-1]["request_id"])
        assert trimmed["history_bytes"] == sum(len(e) for e in (await stored(server, client)).history)
        await client.turn("d")
        told, *entries = agent.seen[-1]
        assert (told.role, told.covers) == (Role.NOTE, 2)
        assert [entry.text for entry in entries if entry.role is Role.USER] == ["b", "c", "d"]
        await client.close()
        again = await server.client()
        again.say(type="session.attach", session_id=client.session_id, cwd=str(server.workspace))
        await again.until("turn.completed")
        again.session_id = client.session_id
        assert (await again.turn("e"))[-2]["removed_messages"] == 2
        assert agent.seen[-1][0].covers == 4
        assert len((await stored(server, client)).history) == 5


async def test_what_is_told_to_be_trimmed_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_ENTRIES", 5)
    async with serving(ScriptedAgent()) as server:
        client = await server.session()
        for prompt in "ab":
            await client.turn(prompt)
        server.store.failing = {EndTurn}
        events = await client.turn("c")
        assert [event["type"] for event in events][-2:] == ["assistant.completed", "turn.failed"]
        server.store.failing.clear()
        assert [event["type"] for event in await client.turn("d")][-2:] == [
            "session.trimmed",
            "turn.completed",
        ]
        assert client.numbers() == list(range(1, client.numbers()[-1] + 1))


async def test_a_turn_that_is_more_than_the_history_holds_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_ENTRIES", 1)
    async with serving(ScriptedAgent()) as server:
        client = await server.session()
        assert (await client.turn("a"))[-1]["code"] == "history_limit"


async def test_a_turn_that_outgrows_the_history_is_stopped_while_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def endless(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        while True:
            await sink.completed("more " * 100)

    monkeypatch.setattr(scope, "MOST_BYTES", 1800)
    async with serving(ScriptedAgent(go=endless)) as server:
        client = await server.session()
        events = await client.turn("go")
        assert (len(events), events[-1]["code"]) == (1 + 4 + 1, "history_limit")


async def test_a_second_cancel_before_the_end_is_accepted_silently() -> None:
    async with serving(ScriptedAgent(go=forever)) as server:
        client = await server.session()
        real, ending, go = server.store.store.do, asyncio.Event(), asyncio.Event()

        async def slow(step: Any) -> Any:
            if isinstance(step, EndTurn):
                ending.set()
                await go.wait()
            return await real(step)

        server.store.store.do = slow  # type: ignore[method-assign]  # a slow disk
        client.ask("turn.start", prompt="go")
        turn_id = (await client.until("assistant.completed"))[-1]["turn_id"]
        client.ask("turn.cancel", turn_id=turn_id)
        await ending.wait()
        client.ask("turn.cancel", turn_id=turn_id)
        client.ask("session.pause", paused=False)
        go.set()
        assert [(await client.event())["type"] for _ in range(2)] == ["turn.cancelled", "session.paused"]


async def test_a_request_id_that_fits_no_frame_ends_the_connection() -> None:
    async with serving(table=SessionsTable(max_server_frame_bytes=65_536)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go", request_id="x" * 70_000)
        assert await client.at_end()
        record = await stored(server, client)
        assert record.interrupted == ()


async def test_an_unsent_turn_whose_end_cannot_be_recorded_is_left_for_the_attach() -> None:
    async with serving(table=SessionsTable(max_server_frame_bytes=65_536)) as server:
        client = await server.session()
        server.store.failing = {EndTurn}
        client.ask("turn.start", prompt="go", request_id="x" * 70_000)
        assert await client.at_end()
        assert len((await stored(server, client)).interrupted) == 1


async def test_a_queued_turn_may_be_cancelled_before_it_has_begun() -> None:
    agent = ScriptedAgent()
    async with serving(agent) as server:
        client = await server.session()
        gate = asyncio.Event()
        real, waiting = server.store.store.do, asyncio.Event()

        async def slow(step: Any) -> Any:
            if isinstance(step, BeginTurn):
                waiting.set()
                await gate.wait()
            return await real(step)

        server.store.store.do = slow  # type: ignore[method-assign]  # a slow disk
        client.ask("session.pause", paused=True)
        client.ask("turn.start", prompt="go")
        client.ask("session.pause", paused=False)
        dequeued = (await client.until("queue.dequeued"))[-1]
        await waiting.wait()
        client.ask("turn.cancel", turn_id=dequeued["turn_id"])
        client.say(type="daemon.control", command={"action": "status"})
        await client.event()  # the cancel was read
        gate.set()
        assert [event["type"] for event in await client.until(*ENDS)] == ["turn.started", "turn.cancelled"]
        assert agent.turns == []


def test_what_the_module_promises_of_a_turn_is_far_more_than_a_turn_has() -> None:
    assert active.TURN_RESERVE >= 100_000


async def test_a_turn_that_is_taken_up_tells_what_it_has_said_and_takes_texts_until_it_ends() -> None:
    async with serving(keeping.agent(), keeping.tools) as server:
        first, asked = await asking(server)
        await first.close()
        second, told = await taken_up(server, first.session_id)
        assert [one["type"] for one in told[2:4]] == ["turn.started", "assistant.completed"]
        second.ask("turn.steer", turn_id=asked["turn_id"], prompt="late", request_id="s1")
        second.ask("turn.cancel", turn_id=asked["turn_id"])
        refused, ended = await second.until("turn.cancelled")
        assert (refused["code"], ended["request_id"]) == ("turn_not_found", "m1")


async def test_a_turn_that_ends_takes_no_text_and_is_not_cancelled() -> None:
    turn = ActiveTurn(cast(Any, None), cast(Any, None))
    turn._over = True
    for act in (turn.cancel, partial(turn.steer, cast(Any, None))):
        with pytest.raises(RequestError) as error:
            act()
        assert error.value.code == "turn_not_found"
    turn._cancelled = True
    turn.cancel()


async def test_an_agent_that_goes_on_after_a_cancel_is_given_nothing_and_does_nothing() -> None:
    refused: list[str] = []

    async def stubborn(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.begin()
        call = ToolCall(name="note", arguments={}, call_id="c1")
        await sink.completed("I call.", [call])
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        for going_on in (sink.begin, partial(gate.call, call)):
            try:
                await going_on()
            except AgentError as error:
                refused.append(str(error))
        return AgentUsage(steps=1)

    async with serving(ScriptedAgent(go=stubborn)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go", request_id="m1")
        turn_id = (await client.until("assistant.completed"))[-1]["turn_id"]
        client.ask("turn.steer", turn_id=turn_id, prompt="more", request_id="s1")
        client.ask("turn.cancel", turn_id=turn_id)
        told = await client.until("turn.cancelled")
        assert [one["type"] for one in told] == ["error", "turn.cancelled"]
        assert refused == ["the turn is over"] * 2
