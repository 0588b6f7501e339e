"""The connection: lines, their limits, and what the end of either side does."""

import asyncio
import json
import socket

from bridge.agents.contract import AgentUsage, Choices, Gate, Sink, Turn
from bridge.channel.testing.clock import settle, until
from bridge.ids import SessionId
from bridge.protocol.limits import CLIENT_FRAME_BYTES
from bridge.sessions.contract import Deadlines
from bridge.store.contract import EndTurn, LoadSession
from tests.sessions.keeping import agent, asking, taken_up, tools
from tests.sessions.offering import OFFERED, Offering
from tests.sessions.test_opening import attach
from tests.sessions.wire import Client, ScriptedAgent, Server, serving

HELLO = {
    "type": "initialize",
    "request_id": "i",
    "protocol_version": 3,
    "client": {"name": "t", "version": "0"},
}


async def forever(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.delta("thinking")
    await asyncio.Event().wait()
    raise AssertionError


async def until_ended(server: Server) -> EndTurn:
    """The record of the turn's end, once it is stored."""
    while not (found := [step for step in server.store.steps if isinstance(step, EndTurn)]):
        await asyncio.sleep(0.001)
    return found[-1]


async def test_a_message_may_arrive_byte_by_byte_with_any_line_ending() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        for byte in json.dumps(HELLO).encode() + b"\r\r\n":
            client.raw(bytes((byte,)))
            await settle(2)
        assert (await client.event())["type"] == "initialized"


async def test_several_messages_may_arrive_at_once() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        status = {"type": "daemon.control", "request_id": "s", "command": {"action": "status"}}
        client.raw(json.dumps(HELLO).encode() + b"\n" + json.dumps(status).encode() + b"\n")
        assert [(await client.event())["type"] for _ in range(2)] == ["initialized", "daemon.status"]


async def test_unreadable_lines_are_answered_without_a_request_id_also_before_initialize() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        lines = (
            b"",
            b"{",
            b"[]",
            b'{"type":"hello","request_id":"x"}',
            b"\xff",
            b'{"type":1}',
            b'"initialize"',
        )
        for line in lines:
            client.raw(line + b"\n")
            event = await client.event()
            assert (event["code"], event["fatal"], "request_id" in event) == ("invalid_json", False, False), (
                line
            )
        client.raw(json.dumps(HELLO).encode() + b"\n")
        assert (await client.event())["type"] == "initialized"


async def test_the_refusal_of_a_line_shows_nothing_of_it() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        client.raw(b'{"type":"initialize","request_id":"r","protocol_version":"topsecret"}\n')
        event = await client.event()
        assert event["code"] == "invalid_json"
        assert "topsecret" not in event["message"]


async def test_an_over_long_line_is_dropped_and_reading_goes_on() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        for _ in range(3):
            client.raw(b"x" * CLIENT_FRAME_BYTES)
        client.raw(b"\n" + json.dumps(HELLO).encode() + b"\n")
        refused = await client.event()
        assert (refused["code"], refused["fatal"], "request_id" in refused) == (
            "invalid_request",
            False,
            False,
        )
        assert (await client.event())["type"] == "initialized"


async def test_a_line_of_exactly_the_limit_is_read() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        hello = dict(HELLO, request_id="")
        hello["request_id"] = "x" * (CLIENT_FRAME_BYTES - len(json.dumps(hello, separators=(",", ":"))))
        client.raw(json.dumps(hello, separators=(",", ":")).encode() + b"\r\n")
        assert (await client.event())["request_id"] == hello["request_id"]


async def test_a_client_that_half_closes_is_answered_to_its_last_line() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        status = {"type": "daemon.control", "request_id": "s", "command": {"action": "status"}}
        client.raw(json.dumps(HELLO).encode() + b"\n" + json.dumps(status).encode())  # no newline at its end
        client.writer.write_eof()
        assert [(await client.event())["type"] for _ in range(2)] == ["initialized", "daemon.status"]
        assert await client.at_end()


async def test_a_client_that_half_closes_in_a_turn_hears_nothing_more() -> None:
    async with serving(ScriptedAgent(go=forever)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        await client.until("assistant.delta")
        client.writer.write_eof()
        assert await client.at_end()
        await until_ended(server)


async def test_the_end_of_a_client_cancels_its_turn_and_records_that() -> None:
    async with serving(ScriptedAgent(go=forever)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        client.ask("turn.start", prompt="waits", request_id="queued")
        await client.until("queue.enqueued")
        await client.close()
        end = await until_ended(server)
        assert b'"turn.cancelled"' in end.events[-1]
        assert end.history == ()
        stored = await server.store.get(LoadSession(SessionId(client.session_id)))
        assert stored is not None
        assert (stored.interrupted, stored.history) == ((), ())
        assert (
            len([step for step in server.store.steps if isinstance(step, EndTurn)]) == 1
        )  # the queue is gone


async def test_a_reset_connection_is_an_end() -> None:
    async with serving(ScriptedAgent(go=forever)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        await client.event()
        client.raw(b'{"type":')
        client.writer.transport.abort()  # with an event unread
        await until_ended(server)
        assert len((await server.session()).session_id) == 36


async def test_connections_do_not_see_each_other() -> None:
    async with serving() as server:
        one, two = await server.session(), await server.session()
        assert one.session_id != two.session_id
        one_events, two_events = await one.turn("first"), await two.turn("second")
        assert {event["session_id"] for event in one_events} == {one.session_id}
        assert {event["session_id"] for event in two_events} == {two.session_id}
        assert one.numbers() == two.numbers()  # each session counts for itself
        one.ask("session.clear", session_id=two.session_id)
        assert await one.error() == "session_not_found"


async def test_a_client_that_does_not_read_delays_no_other_and_is_given_up() -> None:
    async with serving() as server:
        slow = await server.session()
        transport = slow.writer.transport
        transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.ask("turn.start", prompt="\n".join(["long 200000"] * 16))
        for _ in range(20):
            slow.ask("turn.start", prompt="x" * 200_000)
        other = await server.session()
        for _ in range(3):
            assert (await other.turn("hello"))[-1]["type"] == "turn.completed"
        for _ in range(2000):  # these are answered until there is no more room
            slow.ask("turn.cancel", turn_id="x" * 1000)
        await until_closed(slow)
        assert (await other.turn("still there"))[-1]["type"] == "turn.completed"


async def until_closed(client: Client) -> None:
    while not client.writer.transport.is_closing():
        client.raw(b"\n" * 4096)
        await asyncio.sleep(0.001)


async def test_a_stopping_server_tells_a_client_that_reads_that_its_turn_is_cancelled() -> None:
    async with serving(ScriptedAgent(go=forever)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        await client.until("assistant.delta")
        await server.stop()
        assert (await client.event())["type"] == "turn.cancelled"
        assert await client.at_end()
        assert client.numbers() == list(range(1, len(client.numbers()) + 1))


async def test_what_is_asked_of_the_daemon_holds_up_nothing_of_the_session() -> None:
    async with serving(ScriptedAgent(go=forever)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        turn_id = (await client.until("assistant.delta"))[-1]["turn_id"]
        server.control.go.clear()
        client.say(type="daemon.control", command={"action": "reload"}, request_id="slow")
        client.ask("turn.cancel", turn_id=turn_id)
        assert (await client.event())["type"] == "turn.cancelled"
        client.say(type="daemon.control", command={"action": "status"}, request_id="next")
        server.control.go.set()
        assert [(await client.event())["request_id"] for _ in range(2)] == ["slow", "next"]


async def test_the_daemon_is_not_asked_before_initialize() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        client.say(type="daemon.control", command={"action": "status"})
        client.raw(json.dumps(HELLO).encode() + b"\n")
        assert await client.error() == "not_initialized"
        assert (await client.event())["type"] == "initialized"


async def test_an_end_while_the_daemon_is_asked_ends_the_turn_all_the_same() -> None:
    async with serving(ScriptedAgent(go=forever)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        await client.until("assistant.delta")
        server.control.go.clear()
        client.say(type="daemon.control", command={"action": "reload"})
        client.writer.write_eof()
        await until_ended(server)
        server.control.go.set()
        assert await client.at_end()


async def test_a_client_that_stalled_is_not_waited_for_once_more() -> None:
    deadlines = Deadlines(reply=0.05, turn=0.05, writer=30, stop=30)
    async with serving(deadlines=deadlines) as server:
        client = await server.session()
        transport = client.writer.transport
        transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
        for _ in range(20):
            client.ask("turn.start", prompt="long 200000")
        await until_ended(server)
        for _ in range(2000):
            client.ask("turn.cancel", turn_id="x" * 10_000)
        await until_closed(client)


async def test_a_turn_that_waits_for_an_approval_is_kept_for_the_session_s_next_client() -> None:
    async with serving(agent(), tools) as server:
        first, asked = await asking(server)
        await first.close()
        second, _ = await taken_up(server, first.session_id)
        assert await first.at_end()
        second.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        assert (await second.until("turn.completed"))[-1]["request_id"] == "m1"


async def test_nobody_comes_for_a_kept_turn_and_it_is_cancelled() -> None:
    async with serving(agent(), tools) as server:
        first, _ = await asking(server)
        await first.close()
        await until(lambda: bool(server.clock.waits()))
        await server.clock.advance(300)
        assert b"turn.cancelled" in (await until_ended(server)).events[-1]


async def test_an_agent_hears_when_the_last_client_has_gone() -> None:
    offering = Offering()
    async with serving(offering) as server:
        client = await server.session()
        await client.turn("x")
        assert offering.left == []
        await client.close()
        again = await attach(server, client.session_id)
        await again.until("queue.snapshot")
        assert offering.left == [client.session_id]


async def test_an_agent_that_is_slow_to_tell_holds_up_nothing_but_its_like() -> None:
    offering, go = Offering(), asyncio.Event()

    async def choices(turn: Turn) -> Choices:
        await go.wait()
        return OFFERED

    offering.choices = choices  # type: ignore[method-assign]  # a slow one
    async with serving(offering) as server:
        client = await server.session()
        first = client.ask("session.configure")
        client.ask("session.configure")
        assert await client.error() == "turn_active"
        assert (await client.turn("x"))[-1]["type"] == "turn.completed"
        go.set()
        assert (await client.event())["request_id"] == first
