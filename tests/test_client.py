import asyncio
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvloop

from bridge.channel.testing.clock import settle
from bridge.client import Connection, connected, expect
from bridge.errors import SessionError
from bridge.protocol.events import ErrorEvent, Initialized, SessionStarted
from bridge.protocol.limits import SERVER_FRAME_BYTES
from bridge.protocol.ours import SessionStart
from tests.relay.scripted import Frame, Peer, ScriptedServer, scripted

START = SessionStart(request_id="r1", cwd="/w")


def connect(server: ScriptedServer) -> AbstractAsyncContextManager[Connection]:
    return connected(server.socket, "test", "1", "init")


@dataclass
class Raw(ScriptedServer):
    """Answers every message with the same bytes, the first one only if it is ``mute``."""

    reply: bytes = b""
    mute: bool = False

    async def _handle(self, peer: Peer, frame: Frame) -> None:
        if frame["type"] == "initialize" and not self.mute:
            await super()._handle(peer, frame)
            return
        peer.writer.write(self.reply)
        await peer.writer.drain()
        if self.reply.endswith(b"\0"):
            peer.writer.close()


async def test_a_connection_is_initialized_before_it_is_used() -> None:
    async with scripted() as server:
        async with connect(server) as connection:
            await connection.send(START)
            started = expect(await connection.next(), SessionStarted)
        assert started.session_id == "s1"
        assert server.got[0] == {
            "type": "initialize",
            "request_id": "init",
            "protocol_version": 3,
            "client": {"name": "test", "version": "1"},
        }


async def test_nobody_listening_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="not running"):
        async with connected(tmp_path / "no.sock", "test", "1", "init"):
            pass


async def test_a_refusal_keeps_its_code() -> None:
    async with scripted(refuse_start="invalid_request") as server, connect(server) as connection:
        await connection.send(START)
        with pytest.raises(SessionError) as refused:
            expect(await connection.next(), SessionStarted)
        assert refused.value.code == "invalid_request"


def test_another_event_than_expected_is_an_error_without_a_code() -> None:
    event = ErrorEvent(code="x", message="m", fatal=False)
    assert expect(event, ErrorEvent) is event
    other = Initialized.model_validate(
        {"request_id": "r", "protocol_version": 3, "server": {"name": "n", "version": "v"}}
    )
    with pytest.raises(SessionError, match="something else"):
        expect(other, SessionStarted)


async def raw_reply(reply: bytes) -> str:
    async with scripted(Raw, reply=reply) as server:
        with pytest.raises(SessionError) as failed:
            async with connect(server) as connection:
                await connection.send(START)
                await connection.next()
        return str(failed.value)


async def test_unknown_events_are_skipped() -> None:
    known = b'{"type":"error","request_id":"r1","code":"c","message":"m","fatal":false}\n'
    async with scripted(Raw, reply=b'{"type":"weather.changed","seq":3}\n' + known) as server:
        async with connect(server) as connection:
            await connection.send(START)
            assert isinstance(await connection.next(), ErrorEvent)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"what\n", "not an event"),
        (b'{"type":"session.started"}\n', "not an event"),
        (b"x" * (SERVER_FRAME_BYTES + 10) + b"\n", "over its limit"),
        (b"\0", "hung up"),
    ],
)
async def test_whatever_else_comes_ends_in_a_session_error(reply: bytes, said: str) -> None:
    assert said in await raw_reply(reply)


async def test_a_server_that_never_initializes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.client.CONNECT_SECONDS", 0.05)
    async with scripted(Raw, mute=True) as server:
        with pytest.raises(SessionError, match="does not answer"):
            async with connect(server):
                pass


async def test_a_connection_knows_when_the_server_hung_up() -> None:
    async with scripted() as server, connect(server) as connection:
        assert connection.alive
        server.peers[0].writer.close()
        with pytest.raises(SessionError, match="hung up"):
            await connection.next()
        dead = not connection.alive
        assert dead
        with pytest.raises(SessionError, match="hung up"):
            for _ in range(50):
                await connection.send(START)
                await asyncio.sleep(0)


async def test_a_reset_while_reading_is_a_session_error() -> None:
    reader = asyncio.StreamReader()
    reader.set_exception(ConnectionResetError())
    connection = Connection(reader, writer=None)  # type: ignore[arg-type]  # it is not written to
    with pytest.raises(SessionError, match="hung up"):
        await connection.next()


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_message_to_a_server_that_is_gone_is_an_error_of_ours(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def check() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            writer.transport.abort()
            await settle()
            with pytest.raises(SessionError, match="hung up"):
                await Connection(reader, writer).send(START)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(check())
