"""A turn that waits for an approval outlives its client, where that asked for it."""

import asyncio

from bridge.agents.contract import Gate, Sink, Turn
from bridge.channel.testing.clock import settle, until
from bridge.config import SessionsTable
from tests.sessions.keeping import KEPT, agent, asking, attach, taken_up, tools, writes
from tests.sessions.wire import ScriptedAgent, serving


async def test_the_next_client_is_asked_the_same_and_its_answer_counts() -> None:
    async with serving(agent(), tools) as server:
        first, asked = await asking(server)
        await first.close()
        second, told = await taken_up(server, first.session_id)
        assert [one["type"] for one in told] == [
            "session.started", "queue.snapshot", "turn.started", "assistant.completed", "tool.proposed",
            "approval.requested",
        ]  # fmt: skip
        again = told[-1]
        assert {**again, "seq": 0} == {**asked, "seq": 0}
        assert again["seq"] > asked["seq"]
        assert told[-2]["arguments"] == {"path": "a"}
        second.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        rest = await second.until("turn.completed")
        assert [one["type"] for one in rest] == [
            "tool.started", "tool.completed", "assistant.completed", "turn.completed",
        ]  # fmt: skip
        assert {one["request_id"] for one in rest} == {"m1"}
        assert second.numbers() == sorted(set(second.numbers()))
        assert (await second.turn("hello"))[-1]["type"] == "turn.completed"


async def test_what_the_turn_attached_before_it_asked_is_told_again() -> None:
    async with serving(agent(), tools) as server:
        first = await server.session(**KEPT)
        first.ask("turn.start", prompt="attach", request_id="m1")
        asked = (await first.until("approval.requested"))[-1]
        first.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        await first.until("approval.requested")
        await first.close()
        _, told = await taken_up(server, first.session_id)
        assert [one["name"] for one in told if one["type"] == "tool.completed"] == ["chat_attach"]


async def test_it_may_change_hands_more_than_once() -> None:
    async with serving(agent(), tools) as server:
        client, asked = await asking(server)
        for _ in range(3):
            await client.close()
            client, _ = await taken_up(server, client.session_id)
        client.ask("turn.start", prompt="and more", request_id="m2")
        assert (await client.event())["type"] == "queue.enqueued"
        client.ask("approval.resolve", approval_id=asked["approval_id"], approved=False)
        assert (await client.until("turn.completed"))[-1]["request_id"] == "m1"
        assert (await client.until("turn.completed"))[-1]["request_id"] == "m2"


async def test_the_next_client_can_cancel_it() -> None:
    async with serving(agent(), tools) as server:
        first, asked = await asking(server)
        await first.close()
        second, _ = await taken_up(server, first.session_id)
        second.ask("turn.cancel", turn_id=asked["turn_id"])
        assert (await second.event())["type"] == "turn.cancelled"
        assert (await second.turn("hello"))[-1]["type"] == "turn.completed"


async def test_without_the_wish_or_a_question_a_turn_ends_with_its_client() -> None:
    async def waits(turn: Turn, sink: Sink, gate: Gate) -> None:
        await asyncio.get_running_loop().create_future()

    async with serving(ScriptedAgent(write=writes, wait=waits), tools) as server:
        plain, _ = await asking(server, keep_asking_seconds=None)
        busy = await server.session(**KEPT)
        busy.ask("turn.start", prompt="wait")
        await busy.until("turn.started")
        for client in (plain, busy):
            await client.close()
            later = await attach(server, client.session_id)
            assert (await later.until("turn.cancelled"))[-1]["session_id"] == client.session_id


async def test_it_is_kept_for_as_long_as_was_asked_and_then_cancelled() -> None:
    async with serving(agent(), tools) as server:
        first, _ = await asking(server)
        await first.close()
        await until(lambda: bool(server.clock.waits()))
        await server.clock.advance(300)
        late = await attach(server, first.session_id)
        assert (await late.until("turn.cancelled"))[-1]["request_id"] == "m1"


async def test_what_ended_meanwhile_is_told_as_the_last_turn() -> None:
    """The server's own limit denies, and the turn goes on with nobody there."""
    async with serving(agent(), tools, SessionsTable(approval_seconds=0.05)) as server:
        first, _ = await asking(server)
        await first.close()
        await until(lambda: bool(server.clock.waits()))
        await until(lambda: not server.clock.waits())
        later = await attach(server, first.session_id)
        ended = await later.until("turn.completed")
        assert "denied" in ended[-2]["content"]


async def test_it_is_of_its_workspace_and_on_one_connection() -> None:
    async with serving(agent(), tools) as server:
        first, _ = await asking(server)
        assert await (await attach(server, first.session_id)).error() == "invalid_request"
        await first.close()
        await until(lambda: bool(server.clock.waits()))
        assert await (await attach(server, first.session_id, cwd="/")).error() == "session_not_found"
        second, told = await taken_up(server, first.session_id)
        assert told[0]["type"] == "session.started"
        assert await (await attach(server, first.session_id)).error() == "invalid_request"
        await second.close()


async def test_a_stopping_server_ends_it_too() -> None:
    async with serving(agent(), tools) as server:
        alone, _ = await asking(server)
        await alone.close()
        other, _ = await asking(server)
        await other.close()
        reader, _ = await taken_up(server, other.session_id)
        await until(lambda: bool(server.clock.waits()))
        await server.stop()
        assert (await reader.event())["type"] == "turn.cancelled"
        await settle()
