"""The server: who may connect, and how it stops."""

import asyncio
import errno
import gc
import socket
from contextlib import suppress
from typing import Any

import pytest

from bridge.agents.contract import AgentUsage, Gate, Sink, Turn
from bridge.channel.testing.clock import settle, until
from bridge.config import SessionsTable
from bridge.errors import ConfigError
from bridge.sessions.contract import Deadlines, Services
from bridge.sessions.server import SessionServer
from tests.sessions.wire import DaemonControl, ScriptedAgent, agents_of, no_tools, serving


async def forever(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.delta("on it")
    await asyncio.Event().wait()
    raise AssertionError


async def test_stopping_removes_the_socket_and_ends_every_turn() -> None:
    async with serving(ScriptedAgent(go=forever)) as server:
        clients = [await server.session() for _ in range(3)]
        for client in clients:
            client.ask("turn.start", prompt="go")
            await client.until("assistant.delta")
        idle = await server.client()
        await server.stop()
        assert not server.path.exists()
        for client in clients:
            assert (await client.event())["type"] == "turn.cancelled"
            assert await client.at_end()
        assert await idle.at_end()


async def test_while_it_stops_nobody_is_let_in() -> None:
    may_stop = asyncio.Event()

    async def slow_to_stop(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.delta("on it")
        try:
            await asyncio.Event().wait()
        finally:
            await may_stop.wait()
        raise AssertionError

    async with serving(ScriptedAgent(go=slow_to_stop)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        await client.until("assistant.delta")
        server.task.cancel()
        await settle()
        with pytest.raises(OSError):
            await server.client()
        may_stop.set()
        assert (await client.event())["type"] == "turn.cancelled"


async def test_a_client_that_does_not_read_does_not_delay_the_stop() -> None:
    async with serving(deadlines=Deadlines(reply=0.05, turn=0.05, writer=0.05, stop=0.3)) as server:
        client = await server.session()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
        client.ask("turn.start", prompt="\n".join(["long 200000"] * 16))
        await settle(200)
        started = asyncio.get_running_loop().time()
        await server.stop()
        assert asyncio.get_running_loop().time() - started < 2


async def test_a_second_server_is_refused() -> None:
    async with serving() as server:
        services = Services(
            agents_of(ScriptedAgent()), no_tools, server.store, server.clock, DaemonControl(), SessionsTable()
        )
        second = SessionServer(server.path, services, "0")
        with pytest.raises(ConfigError):
            await second.run()
        assert not second.ready.is_set()
        await server.session()


async def test_running_out_of_file_descriptors_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = socket.socket.accept, []

    def scarce(listening: socket.socket) -> Any:
        calls.append(listening)
        if len(calls) < 3:  # gone again, then one too many
            raise BlockingIOError if len(calls) == 1 else OSError(errno.EMFILE, "too many")
        return real(listening)

    async with serving() as server:
        monkeypatch.setattr(socket.socket, "accept", scarce)
        async with asyncio.TaskGroup() as tasks:
            client = tasks.create_task(server.client())
            await until(lambda: server.clock.waits() == [0.5])
            assert not client.done()
            await server.clock.advance(0.5)
        assert len(calls) == 3


async def test_a_shortage_is_logged_once_until_a_client_is_accepted_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, lacking = socket.socket.accept, True

    def scarce(listening: socket.socket) -> Any:
        if lacking:
            raise OSError(errno.EMFILE, "too many")
        return real(listening)

    async with serving() as server:
        monkeypatch.setattr(socket.socket, "accept", scarce)
        for shortage in (1, 2):
            lacking = True
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.client())
                for tries_left in (3, 2, 1, 0):
                    await until(lambda: server.clock.waits() == [0.5])
                    lacking = tries_left > 0
                    await server.clock.advance(0.5)
            assert capsys.readouterr().err.count("sessions.not_accepted") == 1, shortage


async def test_a_connection_that_breaks_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as server:
        good, bad = await server.session(), await server.client()

        async def broken(*_: object) -> None:
            raise KeyError

        with monkeypatch.context() as patch:
            patch.setattr("bridge.sessions.requests.Requests.answer", broken)
            bad.say(type="daemon.control", command={"action": "status"})
            assert await bad.at_end()
        assert (await good.turn("hello"))[-1]["type"] == "turn.completed"


async def test_a_client_that_cannot_be_served_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as server:
        before, opened = await server.session(), asyncio.open_unix_connection

        async def scarce(*args: Any, **kwargs: Any) -> Any:
            if "sock" in kwargs:
                raise OSError(errno.ENOMEM, "no memory")
            return await opened(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "open_unix_connection", scarce)
            refused = await server.client(initialize=False)
            assert await refused.at_end()
        assert (await before.turn("hi"))[-1]["type"] == "turn.completed"
        await server.session()


async def test_a_client_that_hangs_up_is_no_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving() as server:
        client, other = await server.session(), await server.session()
        await client.close()
        await until(lambda: sum(task.get_name() == "sessions/client" for task in asyncio.all_tasks()) == 1)
        assert (await other.turn("hello"))[-1]["type"] == "turn.completed"
    assert "sessions.connection_ended" not in capsys.readouterr().err


@pytest.mark.parametrize("rounds", range(8))
async def test_a_client_that_comes_with_the_stop_is_closed(rounds: int) -> None:
    async with serving() as server:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(str(server.path))
            await settle(rounds)
            await server.stop()
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
    gc.collect()  # an unclosed socket would be a warning, and with it an error
