import asyncio
import json
import socket
from collections.abc import Callable

import pytest
import uvloop

from bridge.channel.testing.clock import settle
from bridge.errors import StoreError
from bridge.ids import SessionId
from bridge.protocol.events import ErrorEvent, SessionPaused
from bridge.protocol.limits import OUTBOUND_FRAMES, outbound_bytes
from bridge.sessions.errors import FrameTooLargeError, StalledError
from bridge.sessions.outbound import IDLE_RESERVE, Numbered, Outbound
from bridge.store.contract import Query, ReserveSeq, Step
from bridge.store.step import R


class Writer:
    """Stands for a stream: what was written, and a client that reads only while ``reads`` is set."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.reads = asyncio.Event()
        self.broken = False

    def write(self, data: bytes) -> None:
        self.lines.append(data)

    def is_closing(self) -> bool:
        return False

    async def drain(self) -> None:
        await self.reads.wait()
        if self.broken:
            raise ConnectionResetError

    def numbers(self) -> list[int]:
        return [json.loads(line)["seq"] for line in self.lines]


class Marks:
    """A store that keeps a session's high-water mark."""

    def __init__(self) -> None:
        self.marks: list[int] = []
        self.broken = False

    async def do(self, step: Step[R]) -> R:
        assert isinstance(step, ReserveSeq)
        if self.broken:
            raise StoreError("full")
        self.marks.append(step.seq)
        return None  # type: ignore[return-value]  # what ReserveSeq returns

    async def get(self, query: Query[R]) -> R:
        raise NotImplementedError

    def backlog(self) -> int:
        return 0


def error(text: str = "") -> ErrorEvent:
    return ErrorEvent(code="c", message=text, fatal=False)


def paused(seq: int) -> SessionPaused:
    return SessionPaused(request_id="r", session_id="s", seq=seq, paused=True)


def numbered(outbound: Outbound, store: Marks, last: int = 0, reserved: int = 0) -> Numbered:
    return Numbered(outbound, store, SessionId("s"), last, reserved)


async def test_frames_are_written_in_order_and_what_waits_is_written_before_the_end() -> None:
    outbound, writer = Outbound(), Writer()
    writer.reads.set()
    for text in "abc":
        await outbound.send(error(text), 1)
    outbound.finish()
    await outbound.send(error("late"), 1)  # taken no more
    await outbound.run(writer)  # type: ignore[arg-type]  # a stand-in
    assert [json.loads(line)["message"] for line in writer.lines] == ["a", "b", "c"]
    assert all(line.endswith(b"\n") for line in writer.lines)


async def test_256_frames_may_wait_and_a_frame_counts_until_it_is_written() -> None:
    outbound, writer = Outbound(), Writer()
    for _ in range(OUTBOUND_FRAMES):
        await outbound.send(error(), 0.01)
    with pytest.raises(StalledError):
        await outbound.send(error(), 0.01)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(outbound.run(writer))  # type: ignore[arg-type]  # a stand-in
        await settle()
        assert not outbound.has_room(1)
        waiting = tasks.create_task(outbound.send(error("last"), 5))
        writer.reads.set()
        await waiting
        outbound.finish()
    assert b"last" in writer.lines[-1]


async def test_the_bytes_that_may_wait_are_bounded_too() -> None:
    outbound = Outbound()
    outbound.limit(65_536)
    frame = outbound.encode(error("x" * 60_000))
    count = outbound_bytes(65_536) // len(frame)
    assert count < OUTBOUND_FRAMES + 30
    for _ in range(min(count, OUTBOUND_FRAMES)):
        outbound.append(frame)
    assert not outbound.has_room(outbound_bytes(65_536))
    big = Outbound()
    big.append(b"x" * (outbound_bytes() - 10))
    assert big.has_room(10)
    assert not big.has_room(11)


async def test_a_frame_may_be_as_long_as_the_limit_without_its_newline() -> None:
    outbound = Outbound()
    outbound.limit(65_536)
    empty = len(outbound.encode(error()))
    assert len(outbound.encode(error("x" * (65_537 - empty)))) == 65_537
    with pytest.raises(FrameTooLargeError):
        outbound.encode(error("x" * (65_538 - empty)))


async def test_a_client_that_is_gone_holds_nobody_up() -> None:
    outbound, writer = Outbound(), Writer()
    for _ in range(OUTBOUND_FRAMES):
        await outbound.send(error(), 1)
    writer.broken = True
    writer.reads.set()
    await outbound.run(writer)  # type: ignore[arg-type]  # a stand-in
    await outbound.send(error(), 0.01)
    assert outbound.has_room(10**9)


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_is_closed_already_is_no_trouble(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def check() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            _, writer = await asyncio.open_unix_connection(sock=ours)
            writer.transport.abort()
            await settle()
            outbound = Outbound()
            await outbound.send(error(), 1)
            await outbound.run(writer)
            assert outbound.has_room(10**9)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(check())


async def test_numbers_rise_without_gaps_while_several_send() -> None:
    outbound, writer, store = Outbound(), Writer(), Marks()
    events = numbered(outbound, store)

    async def many() -> None:
        for _ in range(300):
            await events.send(paused)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(outbound.run(writer))  # type: ignore[arg-type]  # a stand-in
        sending = [tasks.create_task(many()) for _ in range(3)]
        await settle()
        assert events.last == OUTBOUND_FRAMES
        writer.reads.set()
        await asyncio.wait(sending)
        outbound.finish()
    assert writer.numbers() == list(range(1, 901))
    assert store.marks[-1] >= 900


async def test_a_cancelled_or_refused_event_uses_no_number() -> None:
    outbound, store = Outbound(), Marks()
    events = numbered(outbound, store)
    for _ in range(OUTBOUND_FRAMES):
        await events.send(paused)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(events.send(paused))
        await settle()
        waiting.cancel()
    with pytest.raises(StalledError):
        await events.send(paused, 0.01)
    with pytest.raises(FrameTooLargeError):
        await events.send(lambda seq: error("x" * 9_000_000))
    assert events.last == OUTBOUND_FRAMES


async def test_no_number_is_used_that_the_store_does_not_know() -> None:
    store = Marks()
    events = numbered(Outbound(), store, last=10, reserved=10)
    await events.send(paused)
    assert store.marks == [10 + IDLE_RESERVE]
    events.reserved(1000)
    await events.send(paused)
    assert store.marks == [10 + IDLE_RESERVE]


async def test_a_store_that_fails_does_not_stop_the_events() -> None:
    store = Marks()
    store.broken = True
    events = numbered(Outbound(), store)
    await events.send(paused)
    assert events.last == 1


async def test_nothing_is_numbered_while_a_recorded_event_is_stored() -> None:
    events, stored = numbered(Outbound(), Marks(), reserved=500), asyncio.Event()
    seen: list[int] = []

    async def record(event: SessionPaused) -> None:
        await stored.wait()
        seen.append(event.seq)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(events.send_recorded([paused], record, 1))
        await settle()
        tasks.create_task(events.send(paused))
        await settle()
        assert events.last == 0
        stored.set()
    assert (seen, events.last) == ([1], 2)


async def test_an_event_that_cannot_be_recorded_is_not_sent() -> None:
    events = numbered(Outbound(), Marks())

    async def record(event: SessionPaused) -> None:
        raise StoreError("full")

    with pytest.raises(StoreError):
        await events.send_recorded([paused], record, 1)
    assert events.last == 0
