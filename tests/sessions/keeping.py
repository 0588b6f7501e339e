"""Turns that wait for an approval, and clients that take each other's place meanwhile."""

from collections.abc import Mapping
from typing import Any

from bridge.agents.contract import AgentUsage, Gate, Sink, ToolCall, Turn
from bridge.tools.contract import Arguments, CallPlace, Risk, Tool, ToolResult
from tests.sessions.attaching import Attach
from tests.sessions.wire import Client, Event, ScriptedAgent, Server

KEPT = {"keep_asking_seconds": 300, "channel": "Test"}


class WriteArguments(Arguments):
    path: str


class Write:
    name, risk, arguments, description = "write", Risk.FILESYSTEM, WriteArguments, "write"

    def summary(self, arguments: WriteArguments) -> str:
        return f"Write {arguments.path}"

    async def run(self, arguments: WriteArguments, place: CallPlace) -> ToolResult:
        return ToolResult(True, "written")


def tools(no_tools: bool, channel: str) -> Mapping[str, Tool]:
    return {"write": Write(), "chat_attach": Attach()}


async def writes(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    call = ToolCall(name="write", arguments={"path": "a"}, call_id="c1")
    await sink.completed("I shall write", [call])
    result = await gate.call(call)
    await sink.completed(f"it said: {result.output}")
    return AgentUsage(steps=2)


async def attaches(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    call = ToolCall(name="chat_attach", arguments={"path": "x"}, call_id="c0")
    await sink.completed("First a file", [call])
    await gate.call(call)
    return await writes(turn, sink, gate)


def agent() -> ScriptedAgent:
    return ScriptedAgent(write=writes, attach=attaches)


async def asking(server: Server, prompt: str = "write", **fields: Any) -> tuple[Client, Event]:
    """A client whose turn waits for an approval, and what it was asked."""
    client = await server.session(**{**KEPT, **fields})
    client.ask("turn.start", prompt=prompt, request_id="m1")
    return client, (await client.until("approval.requested"))[-1]


async def attach(server: Server, session_id: str, **fields: Any) -> Client:
    client = await server.client()
    client.session_id = session_id
    client.say(**{"type": "session.attach", "session_id": session_id, "cwd": str(server.workspace), **fields})
    return client


async def taken_up(server: Server, session_id: str) -> tuple[Client, list[Event]]:
    """Another client of the session, and what it is told up to the question."""
    client = await attach(server, session_id)
    return client, await client.until("approval.requested")
