"""A session server that does what a test says, on a real socket, in the real wire format."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Frame = dict[str, Any]
STARTED = {
    "cwd": "/w", "model": "echo", "context_max_tokens": 1, "max_server_frame_bytes": 1,
    "max_transcript_bytes": 1, "max_transcript_items": 1,
    "max_prompt_history_bytes": 1, "max_prompt_history_items": 1,
}  # fmt: skip


class HangupError(Exception):
    """Raised by a script: the server closes the connection."""


@dataclass
class Peer:
    """One client's connection, as the script sees it."""

    server: ScriptedServer
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    seq: int = 0
    session_id: str = ""
    got: list[Frame] = field(default_factory=list)

    async def say(self, kind: str, request: str | None, **fields: Any) -> None:
        frame: Frame = {"type": kind}
        if request is not None:
            frame["request_id"] = request
        self.writer.write(json.dumps({**frame, **fields}).encode() + b"\n")
        await self.writer.drain()

    async def tell(self, kind: str, request: str | None, **fields: Any) -> None:
        """An event of the session, with the next number."""
        self.seq += 1
        await self.say(kind, request, session_id=self.session_id, seq=self.seq, **fields)

    async def turn(self, kind: str, request: str, **fields: Any) -> None:
        await self.tell(kind, request, turn_id="t1", **fields)

    async def next(self) -> Frame:
        line = await self.reader.readline()
        if not line:
            raise HangupError
        frame: Frame = json.loads(line)
        self.got.append(frame)
        self.server.got.append(frame)
        return frame


Turn = Callable[[Peer, Frame], Any]


async def answer(peer: Peer, start: Frame) -> None:
    """The usual turn: one step that says what was asked."""
    request = start["request_id"]
    await peer.turn("turn.started", request)
    await peer.turn("assistant.completed", request, content=f"echo: {start['prompt']}")
    await peer.turn("turn.completed", request, steps=1, usage={})


async def attach(peer: Peer, start: Frame, path: Path, name: str, **more: object) -> None:
    """In a turn, a file of three bytes for the chat."""
    attached = {"path": str(path), "name": name, "size": 3, **more}
    await peer.turn(
        "tool.completed", start["request_id"], call_id="c", name="chat_attach", success=True,
        output=json.dumps({"attached": attached}), truncated=False,
    )  # fmt: skip


async def cancellable(peer: Peer, start: Frame) -> None:
    """Turns that run until they are cancelled, where their prompt says so."""
    if "long" not in start["prompt"]:
        await answer(peer, start)
        return
    await peer.turn("turn.started", start["request_id"])
    while (await peer.next())["type"] != "turn.cancel":
        pass
    await peer.turn("turn.cancelled", start["request_id"])


@dataclass
class ScriptedServer:
    """``turn`` runs each turn; ``refuse_start`` and ``stored`` tell what start and attach answer.

    ``chosen`` has who answers in each session, by its id; ``cwds`` where, if that matters.
    """

    socket: Path
    turn: Turn = answer
    refuse_start: str = ""
    refuse_attach: str = ""
    stored: dict[str, list[tuple[str, str, Frame]]] = field(
        default_factory=dict
    )  # session: last turn's events
    chosen: dict[str, Frame] = field(default_factory=dict)
    cwds: dict[str, str] = field(default_factory=dict)
    refuse_configure: str = ""
    got: list[Frame] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    opened: int = 0
    closed: int = 0

    def frames(self, kind: str) -> list[Frame]:
        return [frame for frame in self.got if frame["type"] == kind]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(self, reader, writer)
        self.peers.append(peer)
        try:
            while True:
                await self._handle(peer, await peer.next())
        except (HangupError, ConnectionError):
            self.closed += 1
        finally:
            writer.close()

    async def _handle(self, peer: Peer, frame: Frame) -> None:
        request = frame["request_id"]
        match frame["type"]:
            case "initialize":
                server = {"name": "scripted", "version": "1"}
                await peer.say("initialized", request, protocol_version=3, server=server)
            case "session.start":
                await self._start(peer, request, frame)
            case "session.configure":
                await self._configure(peer, frame)
            case "session.compact":
                await peer.tell("session.compacted", request, before_tokens=9, after_tokens=3)
            case "session.attach":
                await self._attach(peer, frame)
            case "session.clear":
                await peer.tell("session.cleared", request)
                await peer.tell("queue.snapshot", None, entries=[], paused=False)
            case "turn.start":
                await self.turn(peer, frame)

    async def _configure(self, peer: Peer, frame: Frame) -> None:
        if self.refuse_configure:
            request = frame["request_id"] if self.refuse_configure != "invalid_json" else None
            await peer.say("error", request, code=self.refuse_configure, message="no", fatal=False)
            return
        keys = {key: frame[key] for key in ("agent", "model", "mode") if key in frame}
        chosen = {key: value for key, value in (self._chosen(peer) | keys).items() if value}
        self.chosen[peer.session_id] = chosen
        if "cwd" in frame:
            self.cwds[peer.session_id] = frame["cwd"]
        told = {"agent": "a", "model": "m", "mode": "", "cwd": "/w", "agents": [], "models": [], "modes": []}
        more = {"chosen": chosen} if chosen else {}
        await peer.tell("session.configured", frame["request_id"], **told, **more)

    def _chosen(self, peer: Peer) -> Frame:
        return self.chosen.get(peer.session_id, {})

    async def _start(self, peer: Peer, request: str, frame: Frame) -> None:
        if self.refuse_start:
            await peer.say("error", request, code=self.refuse_start, message="no", fatal=False)
            return
        self.opened += 1
        peer.session_id = f"s{self.opened}"
        self.stored[peer.session_id] = []
        self.chosen[peer.session_id] = {key: frame[key] for key in ("agent", "model", "mode") if key in frame}
        await self._started(peer, request)
        await peer.tell("queue.snapshot", None, entries=[], paused=False)

    async def _started(self, peer: Peer, request: str) -> None:
        more = {"chosen": chosen} if (chosen := self._chosen(peer)) else {}
        await peer.say("session.started", request, session_id=peer.session_id, **STARTED, **more)

    async def _attach(self, peer: Peer, frame: Frame) -> None:
        request, session_id = frame["request_id"], frame["session_id"]
        if peer.session_id:
            await peer.say("error", request, code="invalid_request", message="one session", fatal=False)
        elif (
            self.refuse_attach
            or session_id not in self.stored
            or self.cwds.get(session_id) not in (None, frame["cwd"])
        ):
            code = self.refuse_attach or "session_not_found"
            await peer.say("error", request, code=code, message="no", fatal=False)
        else:
            peer.session_id = session_id
            await self._started(peer, request)
            await peer.tell("queue.snapshot", None, entries=[], paused=False)
            for kind, turn_request, fields in self.stored[session_id]:
                await peer.turn(kind, turn_request, **fields)


@asynccontextmanager
async def scripted(
    kind: type[ScriptedServer] = ScriptedServer, socket: Path | None = None, **script: Any
) -> AsyncIterator[ScriptedServer]:
    """Serve at ``socket``, or in a short temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tb") as folder:
        server = kind(socket or Path(folder) / "s.sock", **script)
        server.socket.unlink(missing_ok=True)
        listening = await asyncio.start_unix_server(server.serve, server.socket, limit=2_000_000)
        try:
            yield server
        finally:
            listening.close()
            for peer in server.peers:
                peer.writer.close()
