"""Tool calls: proposed, judged, run, reported."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from bridge.agents.contract import AgentUsage, Gate, Role, Sink, ToolCall, Turn
from bridge.config import SessionsTable
from bridge.sessions.arguments import ARGUMENT_BYTES
from bridge.sessions.calls import STEP_CALLS
from bridge.tools.contract import Arguments, CallPlace, Risk, Said, Tool, ToolResult
from tests.sessions.attaching import attaching_tools
from tests.sessions.wire import ENDS, Client, Event, ScriptedAgent, serving


class NoteArguments(Arguments):
    text: str = ""


class Note:
    """A tool of any risk that does what its text says."""

    arguments, description = NoteArguments, "notes"

    def __init__(self, name: str, risk: Risk) -> None:
        self.name, self.risk = name, risk
        self.ran: list[str] = []
        self.seen: list[Said] = []
        self.go = asyncio.Event()

    def summary(self, arguments: NoteArguments) -> str:
        return f"Note\n{arguments.text}"

    async def run(self, arguments: NoteArguments, place: CallPlace) -> ToolResult:
        self.ran.append(arguments.text)
        self.seen = list(place.history())
        if arguments.text == "show":
            for line in ("one", "two"):
                await place.progress(line)
            await self.go.wait()
        if arguments.text == "break":
            raise KeyError
        return ToolResult(arguments.text != "fail", f"noted {arguments.text} in {place.cwd.name}\udcff", True)


class Notes:
    """The tools of a session under test, kept to look at."""

    def __init__(self) -> None:
        self.read = Note("look", Risk.READ_ONLY)
        self.write = Note("write", Risk.FILESYSTEM)

    def __call__(self, no_tools: bool, channel: str) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in (self.read, self.write)}


def calling(name: str, arguments: Any, times: int = 1) -> ScriptedAgent:
    """An agent that makes a call in each turn, and says what came of it."""

    async def act(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        calls = [ToolCall(name=name, arguments=arguments) for _ in range(times)]
        await sink.completed("I try", calls)
        result = [await gate.call(call) for call in calls][-1]
        await sink.completed(f"{result.success} {result.output}")
        return AgentUsage(steps=2)

    return ScriptedAgent(go=act)


def types(events: list[Event]) -> list[str]:
    return [event["type"] for event in events]


async def test_a_read_only_call_runs_unasked() -> None:
    notes = Notes()
    async with serving(calling("look", {"text": "x"}), tools=notes) as server:
        client = await server.session()
        events = await client.turn("go")
        assert types(events)[2:5] == ["tool.proposed", "tool.started", "tool.completed"]
        proposed, started, completed = events[2:5]
        assert (proposed["name"], proposed["arguments"]) == ("look", {"text": "x"})
        assert {event["call_id"] for event in events[2:5]} == {proposed["call_id"]}
        assert started["name"] == "look"
        assert (completed["success"], completed["truncated"]) == (True, True)
        assert completed["output"] == "noted x in work?"
        assert events[5]["content"] == "True noted x in work?"


@pytest.mark.parametrize("approved", [True, False])
async def test_a_risky_call_is_asked_and_the_answer_counts(approved: bool) -> None:
    notes = Notes()
    async with serving(calling("write", {"text": "x"}), tools=notes) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        asked = (await client.until("approval.requested"))[-1]
        assert (asked["name"], asked["risk"], asked["cwd"]) == ("write", "filesystem", str(server.workspace))
        assert asked["summary"] == "Note x"
        assert notes.write.ran == []
        client.ask("approval.resolve", approval_id="wrong", approved=True)
        assert await client.error() == "approval_not_found"
        client.ask("approval.resolve", approval_id=asked["approval_id"], approved=approved)
        events = await client.until(*ENDS)
        client.ask("approval.resolve", approval_id=asked["approval_id"], approved=approved)
        assert await client.error() == "approval_not_found"
        assert ("tool.started" in types(events)) is approved
        completed = next(event for event in events if event["type"] == "tool.completed")
        assert completed["success"] is approved
        assert completed["call_id"] == asked["call_id"]
        assert notes.write.ran == (["x"] if approved else [])


async def test_a_chat_is_asked_for_every_call_in_the_stream_where_nothing_is_hidden_case_93() -> None:
    async with serving(calling("look", {}), tools=Notes()) as server:
        client = await server.session(channel="Feishu", auto_approve=True)
        assert "approval.requested" in types(await client.turn("go"))


async def test_the_policy_never_denies_without_asking() -> None:
    table = SessionsTable(approval_policy="never")
    async with serving(calling("write", {}), tools=Notes(), table=table) as server:
        client = await server.session()
        events = await client.turn("go")
        assert types(events)[2:4] == ["tool.proposed", "tool.completed"]
        assert "denied" in events[3]["output"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("nothing", {}), ("look", {"text": 1}), ("look", {"more": "x"}), ("look", "text"), ("look", None)],
)
async def test_an_unknown_tool_or_bad_arguments_are_a_result(name: str, arguments: Any) -> None:
    async with serving(calling(name, arguments), tools=Notes()) as server:
        client = await server.session(channel="Feishu")
        events = await client.turn("go")
        assert types(events)[2:4] == ["tool.proposed", "tool.completed"]
        assert (events[2]["arguments"], events[3]["success"]) == (arguments, False)
        assert events[-1]["type"] == "turn.completed"


async def test_a_failing_tool_is_a_result_and_a_broken_one_fails_the_turn() -> None:
    async with serving(calling("look", {"text": "fail"}), tools=Notes()) as server:
        client = await server.session()
        events = await client.turn("go")
        assert events[-2]["content"].startswith("False noted fail")
    async with serving(calling("look", {"text": "break"}), tools=Notes()) as server:
        client = await server.session()
        ended = (await client.turn("go"))[-1]
        assert (ended["type"], ended["code"]) == ("turn.failed", "internal_error")


async def test_cancelling_withdraws_the_question() -> None:
    notes = Notes()
    async with serving(calling("write", {}), tools=notes) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        asked = (await client.until("approval.requested"))[-1]
        client.ask("turn.cancel", turn_id=asked["turn_id"])
        assert (await client.event())["type"] == "turn.cancelled"
        client.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        assert await client.error() == "approval_not_found"
        assert notes.write.ran == []


async def test_a_pending_question_holds_up_nothing_else() -> None:
    async with serving(calling("write", {}), tools=Notes()) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        await client.until("approval.requested")
        client.say(type="daemon.control", command={"action": "status"})
        assert (await client.event())["type"] == "daemon.status"
        other = await server.session()
        other.ask("turn.start", prompt="go")
        assert (await other.until("approval.requested"))[-1]["seq"] == 5


async def test_an_approval_of_another_session_does_not_count() -> None:
    async with serving(calling("write", {}), tools=Notes()) as server:
        one, two = await server.session(), await server.session()
        one.ask("turn.start", prompt="go")
        asked = (await one.until("approval.requested"))[-1]
        two.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        assert await two.error() == "approval_not_found"
        two.ask(
            "approval.resolve", session_id=one.session_id, approval_id=asked["approval_id"], approved=True
        )
        assert await two.error() == "session_not_found"


async def test_progress_stays_between_the_start_and_the_end_of_its_call() -> None:
    notes = Notes()
    async with serving(calling("look", {"text": "show"}), tools=notes) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        events = await client.until("tool.progress")
        assert types(events)[-2:] == ["tool.started", "tool.progress"]
        assert (events[-1]["text"], events[-1]["call_id"]) == ("one\ntwo", events[-2]["call_id"])
        notes.read.go.set()
        events = await client.until(*ENDS)
        assert types(events)[0] == "tool.completed"
        assert "one" not in events[0]["output"]


async def test_a_step_may_ask_for_32_calls() -> None:
    async with serving(calling("look", {}, STEP_CALLS), tools=Notes()) as server:
        client = await server.session()
        assert (await client.turn("go"))[-1]["type"] == "turn.completed"
        assert (await client.turn("go"))[-1]["type"] == "turn.completed"
    notes = Notes()
    async with serving(calling("look", {}, STEP_CALLS + 1), tools=notes) as server:
        client = await server.session()
        ended = (await client.turn("go"))[-1]
        assert (ended["type"], ended["code"]) == ("turn.failed", "tool_limit")
        assert notes.read.ran == []


async def test_arguments_are_bounded() -> None:
    async with serving(calling("look", {"text": "x" * ARGUMENT_BYTES}), tools=Notes()) as server:
        client = await server.session()
        events = await client.turn("go")
        assert (types(events)[2:], events[-1]["code"]) == (["turn.failed"], "tool_limit")


@pytest.mark.parametrize(
    ("arguments", "proposed"),
    [
        ({"text": "a\ud800"}, {"text": "a?"}),
        ({"text": 10**30}, {"text": 10**30}),
        (json.loads("[" * 200 + "]" * 200), None),
        ({"text": float("nan")}, None),
    ],
)
async def test_arguments_that_no_line_can_hold_are_mended_or_refused(arguments: Any, proposed: Any) -> None:
    async with serving(calling("look", arguments), tools=Notes()) as server:
        client = await server.session()
        events = await client.turn("go")
        if proposed is None:
            assert (types(events)[2:], events[-1]["code"]) == (["turn.failed"], "tool_limit")
        else:
            assert events[2]["arguments"] == proposed


async def test_a_call_that_no_step_asked_for_is_a_mistake_of_the_agent() -> None:
    async def unasked(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        asked, other = (ToolCall(name="look", arguments={}) for _ in range(2))
        await sink.completed("one", [asked])
        await gate.call(asked)
        await gate.call(asked if turn.prompt == "twice" else other)
        raise AssertionError

    notes = Notes()
    async with serving(ScriptedAgent(twice=unasked, other=unasked), tools=notes) as server:
        client = await server.session()
        for prompt in ("twice", "other"):
            assert (await client.turn(prompt))[-1]["code"] == "internal_error"
        assert len(notes.read.ran) == 2


async def test_a_question_that_stays_unanswered_is_denied_where_there_is_a_limit() -> None:
    notes, table = Notes(), SessionsTable(approval_seconds=0.01)
    async with serving(calling("write", {}), tools=notes, table=table) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        asked = (await client.until("approval.requested"))[-1]
        completed, *_, ended = await client.until(*ENDS)
        assert (completed["type"], completed["success"], ended["type"]) == (
            "tool.completed", False, "turn.completed",
        )  # fmt: skip
        assert "denied" in completed["output"]
        client.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        assert await client.error() == "approval_not_found"
        assert notes.write.ran == []


async def test_calls_made_at_once_run_one_after_the_other() -> None:
    async def both(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        calls = [ToolCall(name="look", arguments={"text": text}) for text in ("a", "b")]
        await sink.completed("both", calls)
        async with asyncio.TaskGroup() as tasks:
            for call in calls:
                tasks.create_task(gate.call(call))
        return AgentUsage(steps=1)

    async with serving(ScriptedAgent(go=both), tools=Notes()) as server:
        client = await server.session()
        assert types(await client.turn("go"))[2:-1] == ["tool.proposed", "tool.started", "tool.completed"] * 2


async def test_a_call_and_its_result_become_history() -> None:
    agent = calling("look", {"text": "x"})
    async with serving(agent, tools=Notes()) as server:
        client = await server.session()
        await client.turn("go")
        await client.turn("go")
        entry = agent.seen[1][2]
        assert (entry.role, entry.name, entry.text) == (Role.TOOL, "look", "noted x in work?")


async def test_a_tool_sees_what_was_said_before_and_in_its_turn_but_not_its_own_call() -> None:
    tools = Notes()
    async with serving(calling("look", {"text": "a"}), tools=tools) as server:
        client = await server.session()
        await client.turn("go")
        assert tools.read.seen == [Said("user", "go")]
        await client.turn("go")
        assert [said.by for said in tools.read.seen] == ["user", "assistant", "tool", "assistant", "user"]
        assert tools.read.seen[1] == Said("assistant", 'I try [look {"text": "a"}]')
        assert tools.read.seen[-1] == Said("user", "go")


async def test_an_attached_file_is_reported_with_the_turn() -> None:
    async with serving(calling("chat_attach", {"path": "a"}), tools=attaching_tools) as server:
        client = await server.session(channel="Chat")
        events = await client.turn("go")
        assert types(events)[-1] == "turn.completed"
        assert '"attached"' in next(e for e in events if e["type"] == "tool.completed")["output"]
        await reattached(client)


async def reattached(client: Client) -> None:
    await client.close()
    again = await client.server.client()
    again.say(type="session.attach", session_id=client.session_id, cwd=str(client.server.workspace))
    assert types(await again.until(*ENDS))[2:] == ["assistant.completed", "tool.completed", "turn.completed"]
