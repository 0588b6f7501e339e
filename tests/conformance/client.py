"""A client that speaks bytes: it keeps every line that it was sent, and judges none while reading."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.conformance.faults import BrokenError, brief, check, same
from tests.conformance.target import Target

Event = dict[str, Any]

ENDS = ("turn.completed", "turn.failed", "turn.cancelled")
LONG = "slow 3000"  # a prompt that keeps the echo agent busy
READ_LIMIT = 2**25


class Client:
    """One connection. ``events`` is all that was read, ``lines`` the same as bytes."""

    def __init__(
        self,
        target: Target,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        transport: asyncio.ReadTransport,
    ) -> None:
        self.target = target
        self.session_id = ""
        self.events: list[Event] = []
        self.lines: list[bytes] = []
        self._reader, self._writer, self._transport = reader, writer, transport
        self._requests = 0

    # --- to the server ------------------------------------------------------------------------------------

    def raw(self, data: bytes) -> None:
        self._writer.write(data)

    def line(self, text: str | bytes) -> None:
        self.raw((text.encode() if isinstance(text, str) else text) + b"\n")

    def say(self, kind: str, **fields: Any) -> str:
        """Send a message; returns its request id."""
        self._requests += 1
        fields = {"request_id": f"r{self._requests}", **fields}
        self.line(encode({"type": kind, **fields}))
        request_id: str = fields["request_id"]
        return request_id

    def ask(self, kind: str, **fields: Any) -> str:
        """Send a message of this client's session."""
        return self.say(kind, **{"session_id": self.session_id, **fields})

    def half_close(self) -> None:
        """Send no more, and go on reading."""
        self._writer.write_eof()

    async def flushed(self) -> None:
        """Wait until all that was sent has been taken."""
        await self._writer.drain()

    def listen(self, listening: bool) -> None:
        """Stop reading from the server, or go on."""
        if listening:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # --- from the server ----------------------------------------------------------------------------------

    async def event(self, *kinds: str) -> Event:
        """The next event; where ``kinds`` are given, it must be one of them."""
        line = await self._line()
        try:
            found = json.loads(line)
            check(isinstance(found["type"], str), "no type")
        except (ValueError, KeyError, TypeError) as error:
            raise BrokenError(f"an event was expected, and {brief(line)} came") from error
        self.lines.append(line)
        self.events.append(found)
        if kinds and found["type"] not in kinds:
            raise BrokenError(f"{' or '.join(kinds)} was expected, and {found['type']} came: {brief(found)}")
        event: Event = found
        return event

    async def _line(self) -> bytes:
        try:
            async with asyncio.timeout(self.target.patience_seconds):
                return await self._reader.readuntil(b"\n")
        except TimeoutError:
            raise BrokenError("nothing came for too long") from None
        except (asyncio.IncompleteReadError, OSError) as error:
            raise BrokenError("the server ended the connection") from error

    async def until(self, *kinds: str) -> list[Event]:
        """The events up to and with the first of one of ``kinds``."""
        events = [await self.event()]
        while events[-1]["type"] not in kinds:
            events.append(await self.event())
        return events

    async def error(self, code: str, request_id: str | None = None) -> Event:
        """The next event, which must be this error; without ``request_id`` it must carry none."""
        event = await self.event("error")
        same(event.get("code"), code, "the error's code")
        same(event.get("request_id"), request_id, "the error's request id")
        same(event.get("fatal"), False, "whether the error is fatal")
        return event

    async def is_closed(self) -> bool:
        """Whether the server ends the connection, with nothing left to read."""
        try:
            async with asyncio.timeout(self.target.patience_seconds):
                return await self._reader.read(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    async def rest(self) -> list[Event]:
        """All that still comes before the server ends the connection."""
        events = []
        try:
            async with asyncio.timeout(self.target.patience_seconds):
                while line := await self._reader.readline():
                    events.append(json.loads(line))
        except TimeoutError:
            raise BrokenError("the server does not end the connection") from None
        except OSError:
            return events
        return events

    async def others(self) -> list[Event]:
        """What the server says unasked: all that comes before the answer to something asked now."""
        await self.target.settle()
        request_id = self.say("turn.cancel", session_id="none", turn_id="none")
        events = []
        while (event := await self.event()).get("request_id") != request_id:
            events.append(event)
        return events

    async def quiet(self, what: str) -> None:
        """Raises BrokenError where the server says something unasked."""
        if others := await self.others():
            raise BrokenError(f"{what}: {brief(others[0])} came")

    async def refused(self, line: str | bytes) -> None:
        """Send a line that no server reads."""
        self.line(line)
        try:
            await self.error("invalid_json")
        except BrokenError as broken:
            raise BrokenError(f"{brief(line)}: {broken}") from None

    # --- longer talks -------------------------------------------------------------------------------------

    async def initialize(self, **fields: Any) -> Event:
        self.say("initialize", **{"protocol_version": 3, "client": PEER, **fields})
        return await self.event("initialized")

    async def start(self, **fields: Any) -> Event:
        """Start a session; returns ``session.started``. Its snapshot has been read, too."""
        self.say("session.start", **{"cwd": str(self.target.workspace), **fields})
        started = await self.event("session.started")
        self.session_id = started.get("session_id", "")
        await self.event("queue.snapshot")
        return started

    async def attach(self, session_id: str, **fields: Any) -> str:
        """Ask for a stored session; returns the request id. The answer is still to be read."""
        self.session_id = session_id
        return self.ask("session.attach", **{"cwd": str(self.target.workspace), **fields})

    async def turn(self, prompt: str = "hello", approve: bool = True, **fields: Any) -> list[Event]:
        """Run a turn, and answer its approvals; its events up to the terminal one."""
        self.ask("turn.start", prompt=prompt, **fields)
        return await self.to_end(approve)

    async def to_end(self, approve: bool = True) -> list[Event]:
        """The events up to and with a terminal one; approvals are answered."""
        events = await self.until(*ENDS, "approval.requested")
        while events[-1]["type"] not in ENDS:
            self.ask("approval.resolve", approval_id=events[-1].get("approval_id"), approved=approve)
            events += await self.until(*ENDS, "approval.requested")
        return events

    async def answer(self, prompt: str, **fields: Any) -> str:
        """The last text of a turn, which must be completed."""
        events = await self.turn(prompt, **fields)
        same(events[-1]["type"], "turn.completed", f"the end of the turn {brief(prompt)}")
        return str(one(events, "assistant.completed", last=True).get("content"))

    async def hold(self) -> str:
        """Start a turn that goes on for long; returns its id."""
        self.ask("turn.start", prompt=LONG)
        return str((await self.event("turn.started")).get("turn_id"))

    async def queued(self, *prompts: str) -> list[Event]:
        """Queue turns behind one that runs; returns their entries."""
        entries = []
        for prompt in prompts:
            self.ask("turn.start", prompt=prompt)
            entries.append((await self.event("queue.enqueued"))["entry"])
        return entries

    async def cancel(self, turn_id: str) -> Event:
        """Cancel the running turn; returns its end."""
        self.ask("turn.cancel", turn_id=turn_id)
        return (await self.until(*ENDS))[-1]

    async def position(self, entry: Event) -> int:
        """Where ``entry`` waits: to move it before itself changes nothing, and is answered with that."""
        where = {"queue_id": entry["queue_id"], "revision": entry["revision"]}
        self.ask("queue.move", **where, before_queue_id=entry["queue_id"])
        return int((await self.event("queue.moved"))["position"])

    def abort(self) -> None:
        """Drop the connection; nothing is waited for."""
        if not self._writer.transport.is_closing():
            self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


PEER = {"name": "conformance", "version": "1"}


def encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def kinds(events: Sequence[Event]) -> list[str]:
    return [event["type"] for event in events]


def one(events: Sequence[Event], kind: str, *, last: bool = False) -> Event:
    """The event of ``kind``, of which there must be one (or the ``last`` of some)."""
    found = [event for event in events if event["type"] == kind]
    if not found or (len(found) > 1 and not last):
        raise BrokenError(f"{len(found)} times {kind} in {brief(kinds(events))}")
    return found[-1]


def file_of(file: Path, **fields: Any) -> Event:
    """An attachment that tells of ``file``, but for what ``fields`` say."""
    return {"kind": "file", "path": str(file), "size": file.stat().st_size, **fields}
