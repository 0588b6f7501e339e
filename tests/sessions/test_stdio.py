"""The protocol over two file descriptors: pipes and files, and how it ends."""

import asyncio
import json
import os
import socket
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.contract import AgentUsage, Gate, Sink, Turn
from bridge.channel.testing.clock import FakeClock
from bridge.config import SessionsTable
from bridge.ids import SessionId
from bridge.sessions.contract import ControlError, Services
from bridge.sessions.stdio import ForgetfulStore, NoDaemon, piped, serve_stdio
from bridge.store.contract import LoadSession, ReserveSeq
from tests.sessions.wire import QUICK, Event, ScriptedAgent, agents_of, no_tools

HELLO = {
    "type": "initialize",
    "request_id": "1",
    "protocol_version": 3,
    "client": {"name": "t", "version": "0"},
}


async def forever(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.completed("on it")
    await asyncio.Event().wait()
    raise AssertionError


@dataclass
class Piped:
    """The other ends of the two descriptors."""

    to_server: int
    from_server: int
    stop: asyncio.Future[int]
    task: asyncio.Task[None]
    _read: bytes = b""
    events: list[Event] = field(default_factory=list)

    def say(self, **message: Any) -> None:
        os.write(self.to_server, json.dumps(message).encode() + b"\n")

    async def event(self) -> Event:
        while b"\n" not in self._read:
            data = await asyncio.to_thread(os.read, self.from_server, 65_536)
            assert data, "the server closed its output"
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        event: Event = json.loads(line)
        self.events.append(event)
        return event

    async def until(self, kind: str) -> Event:
        while (event := await self.event())["type"] != kind:
            pass
        return event

    async def turn(self, prompt: str) -> Event:
        """Start a turn of a new session; its turn.started."""
        self.say(**HELLO)
        self.say(type="session.start", request_id="2", cwd=tempfile.gettempdir())
        session_id = (await self.until("session.started"))["session_id"]
        self.say(type="turn.start", request_id="3", session_id=session_id, prompt=prompt)
        return await self.until("turn.started")


def services() -> Services:
    agent = ScriptedAgent(go=forever)
    return Services(
        agents_of(agent), no_tools, ForgetfulStore(), FakeClock(), NoDaemon(), SessionsTable(), QUICK
    )


@asynccontextmanager
async def serving() -> AsyncIterator[Piped]:
    source, to_server = os.pipe()
    from_server, sink = os.pipe()
    stop = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(serve_stdio(services(), "1.2.3", source, sink, stop))
        ends = Piped(to_server, from_server, stop, task)
        try:
            yield ends
        finally:
            if not stop.done():
                stop.set_result(0)
    for each in {source, to_server, from_server, sink}:
        os.close(each)


async def test_a_turn_is_answered_and_the_daemon_cannot_be_asked() -> None:
    async with serving() as client:
        await client.turn("hello")
        assert (await client.until("assistant.completed"))["content"] == "re: hello"
        assert (await client.until("turn.completed"))["seq"] == 4
        client.say(type="daemon.control", request_id="c", command={"action": "status"})
        assert (await client.event())["code"] == "unsupported"
        client.say(type="session.attach", request_id="a", session_id="x", cwd="/")
        assert (await client.event())["code"] == "invalid_request"


async def test_the_end_of_the_input_ends_it_and_the_turn() -> None:
    async with serving() as client:
        await client.turn("go")
        await client.until("assistant.completed")
        os.close(client.to_server)
        client.to_server = os.open(os.devnull, os.O_WRONLY)
        await client.task
        assert not client.stop.done()


async def test_a_stop_ends_the_turn_and_says_so() -> None:
    async with serving() as client:
        await client.turn("go")
        await client.until("assistant.completed")
        client.stop.set_result(0)
        assert (await client.event())["type"] == "turn.cancelled"
        await client.task


async def test_an_output_that_nobody_reads_any_more_is_a_client_that_has_gone() -> None:
    async with serving() as client:
        await client.turn("go")
        os.close(client.from_server)
        client.from_server = os.open(os.devnull, os.O_RDONLY)
        client.say(**HELLO)  # an answer that cannot be given
        await client.task


async def test_plain_files_do_as_well(tmp_path: Path) -> None:
    said = tmp_path / "in"
    said.write_text(json.dumps(HELLO))
    stop = asyncio.get_running_loop().create_future()
    with said.open("rb") as source, (tmp_path / "out").open("wb") as sink:
        await serve_stdio(services(), "1.2.3", source.fileno(), sink.fileno(), stop)
    assert json.loads((tmp_path / "out").read_bytes())["type"] == "initialized"


def test_an_output_that_is_not_taken_is_waited_for_no_longer_than_said() -> None:
    (source, to_server), (from_server, sink) = os.pipe(), os.pipe()
    began = time.monotonic()
    with piped(source, sink, 0.05) as client:
        client.send(b"x" * 150_000)  # more than a pipe holds
    assert 0.04 < time.monotonic() - began < 5
    for each in (to_server, from_server):  # both threads come to an end
        os.close(each)
    client.close()


def test_what_comes_when_the_server_has_closed_is_dropped() -> None:
    (source, to_server), (from_server, sink) = os.pipe(), os.pipe()
    with piped(source, sink, 5) as client:
        client.shutdown(socket.SHUT_RDWR)
        client.close()
        os.write(to_server, b"late")
    for each in (to_server, from_server, sink):
        os.close(each)


async def test_nothing_is_stored_and_nothing_found() -> None:
    store = ForgetfulStore()
    assert await store.do(ReserveSeq(SessionId("s"), 3)) is None
    assert await store.get(LoadSession(SessionId("s"))) is None
    assert store.backlog() == 0
    with pytest.raises(ControlError):
        await NoDaemon().handle(None)  # type: ignore[arg-type]  # it answers no command
