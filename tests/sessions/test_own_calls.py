"""Calls that an agent makes by itself: what clients see of them, who is asked, and what is kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bridge.agents.contract import AgentError, AgentUsage, Gate, Option, OwnCall, Role, Sink, ToolCall, Turn
from bridge.config import SessionsTable
from bridge.sessions.arguments import ARGUMENT_BYTES
from bridge.sessions.own_calls import MOST_CALLS
from bridge.tools.contract import Risk, ToolResult
from tests.sessions.wire import ENDS, Client, Event, ScriptedAgent, Server, serving

CHOICES = (Option("a", "Yes", True), Option("b", "Yes\nto each", True), Option("c", "No", False))
Act = Callable[[Gate], Awaitable[object]]


def doing(act: Act) -> ScriptedAgent:
    """An agent whose turn is ``act``, and which then says what that returned."""

    async def go(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.completed(f"{await act(gate)}")
        return AgentUsage(steps=1)

    return ScriptedAgent(go=go)


async def propose(gate: Gate, name: str = "shell", **fields: Any) -> OwnCall:
    fields = {"arguments": {"command": "ls"}, "risk": Risk.PROCESS, "summary": "Run ls", **fields}
    return await gate.own(
        ToolCall(name=name, arguments=fields["arguments"]), fields["risk"], fields["summary"]
    )


async def asking(gate: Gate) -> str:
    call = await propose(gate)
    chosen = await call.ask(CHOICES)
    if chosen is not None and chosen.allows:
        await call.started()
        await call.progress("one\ntwo")
    await call.completed(ToolResult(chosen is not None and chosen.allows, "out\udcff", True))
    return chosen.option_id if chosen is not None else "none"


def types(events: list[Event]) -> list[str]:
    return [event["type"].removeprefix("tool.") for event in events if "tool." in event["type"]]


def told(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


async def ask(client: Client, **answer: Any) -> list[Event]:
    """The events of a turn that asks, once it was answered."""
    client.ask("turn.start", prompt="go")
    events = await client.until("approval.requested")
    client.ask("approval.resolve", approval_id=events[-1]["approval_id"], **answer)
    return events + await client.until(*ENDS)


async def test_an_own_call_is_told_in_the_order_of_any_other_and_asked_with_its_options() -> None:
    async with serving(doing(asking)) as server:
        client = await server.session()
        events = await ask(client, approved=True, option="b")
        assert types(events) == ["proposed", "started", "progress", "completed"]
        proposed, asked = told(events, "tool.proposed")[0], told(events, "approval.requested")[0]
        assert (proposed["name"], proposed["arguments"]) == ("shell", {"command": "ls"})
        assert (asked["name"], asked["risk"], asked["summary"]) == ("shell", "process", "Run ls")
        assert asked["options"] == [
            {"id": "a", "label": "Yes", "allows": True},
            {"id": "b", "label": "Yes to each", "allows": True},
            {"id": "c", "label": "No", "allows": False},
        ]
        assert told(events, "tool.progress")[0]["text"] == "one\ntwo"
        completed = told(events, "tool.completed")[0]
        assert (completed["success"], completed["output"], completed["truncated"]) == (True, "out?", True)
        assert len({event["call_id"] for event in events if "call_id" in event}) == 1
        assert told(events, "assistant.completed")[0]["content"] == "b"


@pytest.mark.parametrize(("approved", "chosen"), [(True, "a"), (False, "c")])
async def test_a_plain_yes_or_no_takes_the_first_option_of_its_kind(approved: bool, chosen: str) -> None:
    async with serving(doing(asking)) as server:
        events = await ask(await server.session(), approved=approved)
        assert told(events, "assistant.completed")[0]["content"] == chosen
        assert ("started" in types(events)) is approved


async def test_an_option_that_is_not_there_is_refused_and_the_question_stays_open() -> None:
    async with serving(doing(asking)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        asked = (await client.until("approval.requested"))[-1]
        for option, approved in (("x", True), ("c", True), ("a", False)):
            client.ask("approval.resolve", approval_id=asked["approval_id"], approved=approved, option=option)
            assert await client.error() == "invalid_request"
        client.ask("approval.resolve", approval_id=asked["approval_id"], approved=False, option="c")
        assert told(await client.until(*ENDS), "assistant.completed")[0]["content"] == "c"


@pytest.mark.parametrize(
    ("policy", "risk", "chosen"),
    [
        ("on-risk", Risk.READ_ONLY, "a"),
        ("never", Risk.READ_ONLY, "a"),
        ("never", Risk.PROCESS, "c"),
    ],
)
async def test_a_policy_chooses_the_first_that_fits_it(policy: Any, risk: Risk, chosen: str) -> None:
    async def act(gate: Gate) -> str | None:
        option = await (await propose(gate, risk=risk)).ask(CHOICES)
        return option.option_id if option else None

    async with serving(doing(act), table=SessionsTable(approval_policy=policy)) as server:
        events = await (await server.session()).turn("go")
        assert told(events, "assistant.completed")[0]["content"] == chosen
        assert not told(events, "approval.requested")


async def test_without_an_answer_in_time_the_first_option_that_denies_is_taken() -> None:
    async with serving(doing(asking), table=SessionsTable(approval_seconds=1)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        events = await client.until(*ENDS)
        assert told(events, "assistant.completed")[0]["content"] == "c"


@pytest.mark.parametrize(
    ("options", "approved", "chosen"),
    [((CHOICES[0],), False, None), ((CHOICES[2],), True, None), ((), True, None)],
)
async def test_where_no_option_fits_the_answer_the_call_is_denied(
    options: tuple[Option, ...], approved: bool, chosen: object
) -> None:
    async def act(gate: Gate) -> object:
        call = await propose(gate)
        option = await call.ask(options)
        await call.started()  # which it is not told of
        return option

    async with serving(doing(act)) as server:
        events = await ask(await server.session(), approved=approved)
        assert told(events, "assistant.completed")[0]["content"] == f"{chosen}"
        assert types(events) == ["proposed", "completed"]


async def test_several_go_on_at_once_and_each_has_an_answer_of_its_own() -> None:
    async def act(gate: Gate) -> str:
        async with asyncio.TaskGroup() as tasks:
            both = [tasks.create_task(asking(gate)) for _ in range(2)]
        return " ".join(one.result() for one in both)

    async with serving(doing(act)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        first, second = [(await client.until("approval.requested"))[-1] for _ in range(2)]
        client.ask("approval.resolve", approval_id=second["approval_id"], approved=False)
        client.ask("approval.resolve", approval_id=first["approval_id"], approved=True)
        ended = await client.until(*ENDS)
        assert sorted(told(ended, "assistant.completed")[0]["content"].split()) == ["a", "c"]
        assert len(told(ended, "tool.completed")) == 2


async def test_one_that_never_asks_is_told_as_it_runs_also_when_only_its_end_is_known() -> None:
    async def act(gate: Gate) -> None:
        good, bad = await propose(gate), await propose(gate)
        for call in (good, bad):
            await call.progress("too early")
            await call.completed(ToolResult(call is good, "end"))
            await call.completed(ToolResult(True, "once more"))
            await call.progress("too late")

    async with serving(doing(act)) as server:
        events = await (await server.session()).turn("go")
        assert types(events) == ["proposed", "proposed", "started", "completed", "completed"]
        assert [event["success"] for event in told(events, "tool.completed")] == [True, False]


async def test_a_denied_call_that_is_made_all_the_same_has_not_succeeded() -> None:
    async def act(gate: Gate) -> None:
        call = await propose(gate)
        await call.ask(CHOICES)
        await call.completed(ToolResult(True, "I did it"))

    async with serving(doing(act)) as server:
        events = await ask(await server.session(), approved=False)
        assert types(events) == ["proposed", "completed"]
        completed = told(events, "tool.completed")[0]
        assert (completed["success"], completed["output"]) == (False, "I did it")


@pytest.mark.parametrize("begin", ["ask", "started"])
async def test_nobody_is_asked_about_a_call_twice_or_about_one_that_runs(begin: str) -> None:
    async def act(gate: Gate) -> None:
        call = await propose(gate, risk=Risk.READ_ONLY)
        await (call.ask(CHOICES) if begin == "ask" else call.started())
        await call.ask(CHOICES)

    async with serving(doing(act)) as server:
        events = await (await server.session()).turn("go")
        assert (events[-1]["type"], events[-1]["code"]) == ("turn.failed", "internal_error")
        assert types(events)[-1] == "completed"


async def test_its_progress_is_paced_and_what_came_too_fast_is_shown_with_the_next() -> None:
    running: list[Server] = []

    async def act(gate: Gate) -> None:
        call = await propose(gate)
        await call.started()
        await call.progress("")
        for text in ("one", "two"):
            await call.progress(text)
        await running[0].clock.advance(0.5)
        await call.progress("three\x07")

    async with serving(doing(act)) as server:
        running.append(server)
        events = await (await server.session()).turn("go")
        assert [event["text"] for event in told(events, "tool.progress")] == ["one", "two\nthree "]


async def test_a_call_named_as_the_tool_that_attaches_attaches_nothing_and_is_asked_about() -> None:
    async def act(gate: Gate) -> None:
        call = await propose(gate, "chat_attach", risk=Risk.NETWORK)
        await call.ask(CHOICES)
        await call.completed(ToolResult(True, '{"attached": {"path": "/etc/passwd"}}'))

    async with serving(doing(act)) as server:
        events = await ask(await server.session(channel="Feishu"), approved=True)
        assert {event["name"] for event in events if "name" in event} == {"own chat_attach"}


async def test_what_is_open_when_the_turn_is_cancelled_is_completed_before_its_end() -> None:
    async def act(gate: Gate) -> None:
        done, runs, waits = [await propose(gate) for _ in range(3)]
        await done.completed(ToolResult(True, "x"))
        await runs.started()
        await waits.ask(CHOICES)

    async with serving(doing(act)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        asked = (await client.until("approval.requested"))[-1]
        client.ask("turn.cancel", turn_id=asked["turn_id"])
        events = await client.until(*ENDS)
        assert [event["type"] for event in events] == ["tool.completed", "tool.completed", "turn.cancelled"]
        assert [event["success"] for event in events[:2]] == [False, False]
        client.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        assert await client.error() == "approval_not_found"


async def test_a_turn_that_fails_completes_what_was_open() -> None:
    async def act(gate: Gate) -> None:
        await propose(gate)
        raise AgentError("provider_error", "gone")

    async with serving(doing(act)) as server:
        events = await (await server.session()).turn("go")
        assert [event["type"] for event in events[-2:]] == ["tool.completed", "turn.failed"]


async def test_call_and_result_enter_the_history_together_at_the_call_s_end() -> None:
    async def act(gate: Gate) -> None:
        late, early = await propose(gate, "late"), await propose(gate, "early")
        await early.completed(ToolResult(True, "e"))
        await late.completed(ToolResult(False, "l"))

    agent = doing(act)
    async with serving(agent) as server:
        client = await server.session()
        await client.turn("go")
        await client.turn("again")
        own = agent.seen[-1][1:5]
        assert [(entry.role, entry.name, entry.text) for entry in own] == [
            (Role.ASSISTANT, "", ""),
            (Role.TOOL, "early", "e"),
            (Role.ASSISTANT, "", ""),
            (Role.TOOL, "late", "l"),
        ]
        assert own[0].calls[0].call_id == own[1].call_id
        assert own[0].calls[0].arguments == {"command": "ls"}


async def test_a_turn_has_only_so_many_and_none_with_too_large_arguments() -> None:
    async def many(gate: Gate) -> None:
        for _ in range(MOST_CALLS + 1):
            await propose(gate)

    async def large(gate: Gate) -> None:
        await propose(gate, arguments="x" * ARGUMENT_BYTES)

    for act in (many, large):
        async with serving(doing(act)) as server:
            events = await (await server.session()).turn("go")
            assert (events[-1]["type"], events[-1]["code"]) == ("turn.failed", "tool_limit")


async def test_a_name_and_a_summary_are_one_line_whatever_the_agent_calls_them() -> None:
    async def act(gate: Gate) -> None:
        await (await propose(gate, "\ud800a\nb", summary="x\ny" * 200)).ask(CHOICES)
        await propose(gate, " \n")

    async with serving(doing(act)) as server:
        events = await ask(await server.session(), approved=True)
        assert [event["name"] for event in told(events, "tool.proposed")] == ["?a b", "tool"]
        assert len(told(events, "approval.requested")[0]["summary"].encode()) <= 200
