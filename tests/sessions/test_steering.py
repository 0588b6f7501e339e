"""Texts that a running turn takes in at its next step, or does not."""

import asyncio

import pytest

from bridge.agents.contract import AgentUsage, Gate, Role, Sink, Turn
from bridge.protocol.limits import QUEUE_ITEMS
from tests.sessions.wire import Client, ScriptedAgent, Server, serving


class Steps:
    """An agent that begins a step whenever the test lets it, and says what it sees in it."""

    def __init__(self) -> None:
        self.go = asyncio.Semaphore(0)

    async def __call__(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        for _ in range(2):
            await self.go.acquire()
            seen = await sink.begin()
            await sink.completed(", ".join(entry.text for entry in seen if entry.role is Role.USER))
        await self.go.acquire()
        return AgentUsage(steps=2)


async def running(server: Server) -> tuple[Client, str]:
    client = await server.session()
    client.ask("turn.start", prompt="go", request_id="m1")
    started = (await client.until("turn.started"))[-1]
    return client, started["turn_id"]


async def test_a_text_is_taken_in_at_the_next_step_and_stays_in_the_history() -> None:
    steps = Steps()
    agent = ScriptedAgent(go=steps)
    async with serving(agent) as server:
        client, turn_id = await running(server)
        steps.go.release()
        assert (await client.until("assistant.completed"))[-1]["content"] == "go"
        for n in ("one", "two"):
            client.ask("turn.steer", turn_id=turn_id, prompt=n, request_id=f"s-{n}")
        client.ask("turn.steer", turn_id="other", prompt="x")
        assert await client.error() == "turn_not_found"
        steps.go.release()
        told = await client.until("assistant.completed")
        assert [(one["type"], one["request_id"]) for one in told] == [
            ("turn.steered", "s-one"), ("turn.steered", "s-two"), ("assistant.completed", "m1"),
        ]  # fmt: skip
        assert told[0]["turn_id"] == turn_id
        assert told[-1]["content"] == "go, one, two"
        steps.go.release()
        await client.until("turn.completed")
        assert client.numbers() == list(range(1, len(client.numbers()) + 1))
        await client.turn("later")
        assert [entry.text for entry in agent.seen[-1]] == [
            "go", "go", "one", "two", "go, one, two", "later",
        ]  # fmt: skip


async def test_what_comes_after_the_last_step_is_refused_before_the_turn_ends() -> None:
    steps = Steps()
    async with serving(ScriptedAgent(go=steps)) as server:
        client, turn_id = await running(server)
        for _ in range(2):
            steps.go.release()
            await client.until("assistant.completed")
        client.ask("turn.steer", turn_id=turn_id, prompt="late", request_id="s1")
        client.ask("session.pause", paused=False)
        await client.until("session.paused")
        steps.go.release()
        refused, ended = await client.until("turn.completed")
        assert (refused["type"], refused["code"], refused["request_id"]) == ("error", "turn_not_found", "s1")
        assert ended["request_id"] == "m1"
        client.ask("turn.steer", turn_id=turn_id, prompt="later")
        assert await client.error() == "turn_not_found"


async def test_a_cancelled_turn_refuses_what_it_did_not_take_in() -> None:
    async with serving(ScriptedAgent(go=Steps())) as server:
        client, turn_id = await running(server)
        client.ask("turn.steer", turn_id=turn_id, prompt="late", request_id="s1")
        client.ask("turn.cancel", turn_id=turn_id)
        assert [one["type"] for one in await client.until("turn.cancelled")] == ["error", "turn.cancelled"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"prompt": " "}, "invalid_request"),
        ({"prompt": "x" * 300_000}, "invalid_request"),
        ({"session_id": "other"}, "session_not_found"),
    ],
)
async def test_what_is_no_text_for_this_turn_is_refused_at_once(fields: dict[str, str], code: str) -> None:
    async with serving(ScriptedAgent(go=Steps())) as server:
        client, turn_id = await running(server)
        client.ask("turn.steer", **{"turn_id": turn_id, "prompt": "x", **fields})
        assert await client.error() == code


async def test_no_more_texts_wait_than_turns_may() -> None:
    async with serving(ScriptedAgent(go=Steps())) as server:
        client, turn_id = await running(server)
        for _ in range(QUEUE_ITEMS + 1):
            client.ask("turn.steer", turn_id=turn_id, prompt="x")
        assert await client.error() == "queue_limit"
