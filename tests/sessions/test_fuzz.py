"""What any bytes do to a connection: it answers, in frames of the protocol, and keeps and logs nothing."""

import asyncio
import io
import json
import logging
import random
import re
import resource
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest
import structlog

from bridge import logs
from bridge.channel.testing.clock import FakeClock, settle
from bridge.config import SessionsTable
from bridge.sessions.contract import Services
from bridge.sessions.live import LiveSessions
from bridge.sessions.server import serve_client
from bridge.sessions.stdio import ForgetfulStore
from tests.conformance import wire
from tests.conformance.server import services_of
from tests.conformance.variants import everywhere, load

SEED = 20_261_130
FRAMES = 20_000
BATCH, CONNECTIONS = 100, 20
GROWTH_MIB = 16
MARK = "sesame4711"  # stands in every text of every frame, so that a log that quotes one is found
READ_LIMIT = 2**24
HUGE_BYTES = 1_200_000

Event = dict[str, Any]


# --- a connection without a socket file -------------------------------------------------------------------


@dataclass
class Line:
    """A client on one end of a pair of sockets."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    session_id: str = ""

    async def event(self) -> Event:
        """The next frame, which must be one of the protocol."""
        frame = await self.reader.readuntil(b"\n")
        event = wire.read(frame)
        wire.check_event(event)
        if event["type"] == "session.started":
            self.session_id = event["session_id"]
        return event


@asynccontextmanager
async def connected(given: Services) -> AsyncIterator[Line]:
    outer, inner = socket.socketpair()
    inner.setblocking(False)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_client(inner, given, LiveSessions(), "0"))
        reader, writer = await asyncio.open_unix_connection(sock=outer, limit=READ_LIMIT)
        try:
            yield Line(reader, writer)
        finally:
            writer.transport.abort()


@pytest.fixture
def given(tmp_path: Path) -> Services:
    """A server's, whose store remembers nothing: what is stored is no matter of bytes."""
    return services_of(tmp_path.resolve(), FakeClock(), SessionsTable(), ForgetfulStore())


# --- mutations --------------------------------------------------------------------------------------------

PEER = {"name": MARK, "version": MARK}
VALUES = (
    *(b"0", b"-0", b"-1", b"3.0", b"1e2", b"1e999", b"18446744073709551616", b"4294967296", b"007", b"NaN"),
    *(
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'""',
        b'"\\ud800"',
        b'"\\ud83d\\ude00"',
        b'"\\u0000"',
        b'"\xff"',
        b"'",
    ),
)
ODD_BYTES = b'\x00\r\x0b\x7f\x80\xc0\xff"\\{}[],:'


def messages(session_id: str) -> list[bytes]:
    """Frames that a server takes, each with the mark in it."""
    head = {"request_id": MARK, "session_id": session_id}
    entry = {**head, "queue_id": MARK, "revision": 1}
    file = {"kind": "file", "path": f"/{MARK}", "name": MARK, "size": 1, "transcript": MARK}
    found: list[Event] = [
        {"type": "initialize", "request_id": MARK, "protocol_version": 3, "client": PEER},
        {"type": "session.start", "request_id": MARK, "cwd": f"/{MARK}", "channel": MARK, "no_tools": True},
        {"type": "session.attach", **head, "cwd": f"/{MARK}"},
        {"type": "turn.start", **head, "prompt": MARK},
        {"type": "turn.start", **head, "prompt": MARK, "attachments": [file]},
        {"type": "queue.update", **entry, "prompt": MARK},
        {"type": "queue.move", **entry, "before_queue_id": None},
        {"type": "queue.remove", **entry},
        {"type": "session.pause", **head, "paused": False},
        {"type": "turn.cancel", **head, "turn_id": MARK},
        {"type": "approval.resolve", **head, "approval_id": MARK, "approved": True},
        {"type": "session.clear", **head},
        {"type": "daemon.control", "request_id": MARK, "command": {"action": "status"}},
        {
            "type": "daemon.control",
            "request_id": MARK,
            "command": {"action": "delegation_kill", "handle": MARK},
        },
    ]
    return [json.dumps(message).encode() for message in found]


def flip(rng: random.Random, frame: bytes) -> bytes:
    data = bytearray(frame)
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def drop(rng: random.Random, frame: bytes) -> bytes:
    at = rng.randrange(len(frame))
    return frame[:at] + frame[at + rng.randint(1, 8) :]


def insert(rng: random.Random, frame: bytes) -> bytes:
    at = rng.randrange(len(frame))
    return frame[:at] + bytes(rng.choices(ODD_BYTES, k=rng.randint(1, 4))) + frame[at:]


def repeat_key(rng: random.Random, frame: bytes) -> bytes:
    fields = re.findall(rb'"[a-z_]+": (?:"[^"]*"|[0-9]+|true|null)', frame)
    at = rng.choice([found.start() for found in re.finditer(rb'[{,] ?"', frame)]) + 1
    field: bytes = rng.choice(fields)
    return frame[:at] + field + b"," + frame[at:]


def retype(rng: random.Random, frame: bytes) -> bytes:
    value = rng.choice(list(re.finditer(rb': ("[^"]*"|[0-9]+|true|false|null)', frame)))
    return frame[: value.start(1)] + rng.choice(VALUES) + frame[value.end(1) :]


def nest(rng: random.Random, frame: bytes) -> bytes:
    depth = rng.choice((126, 127, 128, 5000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    return frame[:-1] + b',"x":' + opening * depth + b"1" + closing * depth + b"}"


def lengthen(rng: random.Random, frame: bytes) -> bytes:
    """Seldom, since it costs: a line over the limit, or right at it."""
    if rng.random() < 0.97:
        return frame[:-1] + b',"x":"' + b"y" * rng.randrange(5000) + b'"}'
    size = rng.choice((HUGE_BYTES, 1_048_576, 1_048_577))
    return frame[:-1] + b',"x":"' + b"y" * (size - len(frame) - 7) + b'"}'


def carriage(rng: random.Random, frame: bytes) -> bytes:
    return rng.choice(
        (frame + b"\r", frame + b"\r\r\r", b"\r" + frame, frame.replace(b" ", b"\r"), b"\r", b"")
    )


def cut(rng: random.Random, frame: bytes) -> bytes:
    """A newline in the middle: two frames, both broken."""
    at = rng.randrange(len(frame))
    return frame[:at] + b"\n" + frame[at:]


def glue(rng: random.Random, frame: bytes) -> bytes:
    return frame + frame


MUTATIONS = (flip, drop, insert, repeat_key, retype, nest, lengthen, carriage, cut, glue)


def mutated(rng: random.Random, session_id: str) -> bytes:
    frame = rng.choice(messages(session_id))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            frame = rng.choice(MUTATIONS)(rng, frame)
        except (IndexError, ValueError):  # nothing is left of it that could be changed so
            return frame
    return frame


def test_mutations_are_many_and_always_the_same() -> None:
    first, second = (
        [mutated(rng, MARK) for _ in range(500)] for rng in (random.Random(SEED), random.Random(SEED))
    )
    assert first == second
    assert len(set(first)) > 400
    assert all(
        any(one(random.Random(n), messages("")[3]) != messages("")[3] for n in range(9)) for one in MUTATIONS
    )


# --- twenty thousand frames -------------------------------------------------------------------------------


def peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1_048_576 if sys.platform == "darwin" else 1024)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged, from the most talkative level on."""
    before, handlers = structlog.get_config(), list(logging.getLogger().handlers)
    kept = io.StringIO()
    logs.configure("debug", as_json=True, stream=kept)
    yield kept
    structlog.configure(**before)
    logging.getLogger().handlers = handlers


async def answered(line: Line, frames: Iterable[bytes], number: int) -> list[Event]:
    """Send ``frames`` and a question behind them; all that comes up to its answer."""
    probe = f"probe {number}"
    question = {"type": "turn.cancel", "request_id": probe, "session_id": "s", "turn_id": "t"}
    line.writer.write(b"".join(frame + b"\n" for frame in [*frames, json.dumps(question).encode()]))
    events = [await line.event()]
    while events[-1].get("request_id") != probe:
        events.append(await line.event())
    return events


async def start(line: Line, cwd: Path, session: bool) -> None:
    line.writer.write(messages("")[0] + b"\n")
    assert (await line.event())["type"] == "initialized"
    if session:
        asked = {"type": "session.start", "request_id": MARK, "cwd": str(cwd), "channel": MARK}
        line.writer.write(json.dumps(asked).encode() + b"\n")
        assert (await line.event())["type"] == "session.started"


async def test_twenty_thousand_broken_frames_are_answered_and_leave_nothing_behind(
    given: Services, log: io.StringIO, tmp_path: Path
) -> None:
    print(f"seed {SEED}")
    logs.get_logger("fuzz").debug("fuzz.started")
    rng = random.Random(SEED)
    before_mib, kinds = 0.0, Counter[str]()
    for connection in range(CONNECTIONS):
        if connection == 1:
            before_mib = peak_mib()  # the first one has filled what is kept anyway
        async with connected(given) as line:
            await start(line, tmp_path, session=connection % 2 == 0)
            for batch in range(FRAMES // CONNECTIONS // BATCH):
                frames = [mutated(rng, line.session_id) for _ in range(BATCH)]
                kinds.update(event["type"] for event in await answered(line, frames, batch))
    assert kinds["error"] > FRAMES / 2
    assert kinds["turn.completed"] > 50, "too few frames had a meaning left"
    print(f"grown by {peak_mib() - before_mib:.1f} MiB")
    assert peak_mib() - before_mib < GROWTH_MIB
    assert "fuzz.started" in log.getvalue()
    assert MARK not in log.getvalue()


# --- every split ------------------------------------------------------------------------------------------


def long_session(cwd: Path) -> bytes:
    """A session's whole input, which meets each way in which a line can be cut. Ids are counted from 1."""
    head = {"request_id": "é中\U0001f600", "session_id": "1"}
    first, second = {"queue_id": "2", "revision": 1}, {"queue_id": "3", "revision": 1}
    said: list[Event] = [
        {
            "type": "initialize",
            "request_id": "a",
            "protocol_version": 3,
            "client": {"name": "n", "version": "v"},
        },
        {"type": "session.start", "request_id": "b", "cwd": str(cwd), "no_tools": True},
        {"type": "session.pause", **head, "paused": True},
        {"type": "turn.start", **head, "prompt": 'one "quoted" \\ 中文'},
        {"type": "turn.start", **head, "prompt": "two"},
        {"type": "queue.update", **head, **first, "prompt": "three\n\u0000"},
        {"type": "queue.remove", **head, **second},
        {"type": "approval.resolve", **head, "approval_id": "x", "approved": True},
        {"type": "session.pause", **head, "paused": False},
    ]
    lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() for one in said]
    lines[4:4] = [b"", b"\r", b'{"type":', b"\xff\xfe", b'{"type":"fly"}']
    return b"".join(line + ending for line, ending in zip(lines, cycle((b"\n", b"\r\n", b"\r\r\n"))))


async def told(given: Services, pieces: Iterable[bytes]) -> list[Event]:
    """What a session says to an input that comes in ``pieces``."""
    numbers = count(1)
    with everywhere("new_uuid", lambda: str(next(numbers))):
        async with connected(given) as line:
            for piece in pieces:
                line.writer.write(piece)
                await settle(4)
            events = [await line.event()]
            while events[-1]["type"] != "turn.completed":
                events.append(await line.event())
            return events


async def test_a_session_does_not_depend_on_where_its_bytes_are_cut(given: Services, tmp_path: Path) -> None:
    stream = long_session(tmp_path)
    whole = await told(given, [stream])
    assert [event["type"] for event in whole].count("error") == 6
    for at in range(1, len(stream)):
        assert await told(given, [stream[:at], stream[at:]]) == whole, at


async def test_a_session_can_come_byte_by_byte(given: Services, tmp_path: Path) -> None:
    stream = long_session(tmp_path)
    pieces = (stream[at : at + 1] for at in range(len(stream)))
    assert await told(given, pieces) == await told(given, [stream])


async def test_a_server_that_forgets_the_beginning_of_a_line_is_noticed(given: Services) -> None:
    first = messages("")[0]
    with load()["forgets-pieces"]():
        async with connected(given) as line:
            for piece in (first[:20], first[20:] + b"\n"):
                line.writer.write(piece)
                await settle()
            assert (await line.event())["type"] == "error"
