"""The way between an account and its platform: a proxy on loopback on which things go wrong."""

from __future__ import annotations

import asyncio
import math
import socket
from contextlib import suppress
from enum import StrEnum
from typing import Self

CHUNK_BYTES = 65_536


class Trouble(StrEnum):
    """What goes wrong. All but the last two end the contact with the platform."""

    REFUSED = "refused"  # nobody listens
    STALLED = "stalled"  # connections are taken, and nothing is ever answered
    UNAUTHORIZED = "401"
    BUSY = "429"
    BROKEN = "500"
    GATEWAY = "502"
    AWAY = "503"
    GONE = "410"  # for a callback, that it wants nothing any more
    DNS = "dns"  # the name is not known
    HALF_OPEN = "half-open"  # what is connected falls silent for good; new connections work
    CLOCK = "clock"  # our wall clock jumps


KEEPING_CONTACT = frozenset({Trouble.HALF_OPEN, Trouble.CLOCK})
ASKED_SECONDS = 45  # to wait, by the 429
_ANSWERED = frozenset(
    {
        Trouble.UNAUTHORIZED,
        Trouble.BUSY,
        Trouble.BROKEN,
        Trouble.GATEWAY,
        Trouble.AWAY,
        Trouble.GONE,
    }
)


class Wire:
    """Forwards to the port ``to``; ``base`` is what the account connects to.

    ``through_at`` is when the platform's own word last reached the account, by the loop's time.
    """

    def __init__(self, to: int, unauthorized: bytes) -> None:
        self._to, self._port = to, 0
        self.through_at = -math.inf
        self._unauthorized = unauthorized  # what this platform answers where it takes no token any more
        self._trouble: Trouble | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._dead: set[asyncio.StreamWriter] = set()  # what arrives on these is swallowed
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None] | None] = set()

    @property
    def base(self) -> str:
        return f"http://localhost:{self._port}"

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._cut()
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            if task is not None:
                task.cancel()

    async def begin(self, trouble: Trouble) -> None:
        self._trouble = trouble
        match trouble:
            case Trouble.STALLED | Trouble.HALF_OPEN:
                self._dead |= self._open
            case Trouble.CLOCK:
                pass
            case _:
                self._cut()
        if trouble is Trouble.REFUSED and self._server is not None:
            self._server.close()
            self._server = None

    async def end(self) -> None:
        self._trouble = None
        if self._server is None:
            await self._listen()

    def look_up(self, port: int) -> None:
        if port == self._port and self._trouble is Trouble.DNS:
            raise socket.gaierror(socket.EAI_AGAIN, "the name service does not answer")

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        self._open.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                if self._trouble in _ANSWERED:
                    await self._refuse(self._trouble, reader, writer)
                else:
                    if self._trouble is Trouble.STALLED:
                        self._dead.add(writer)
                    await self._forward(reader, writer)
        finally:
            self._tasks.discard(asyncio.current_task())
            self._open.discard(writer)
            self._dead.discard(writer)
            writer.close()

    async def _refuse(
        self, trouble: Trouble, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if trouble is Trouble.UNAUTHORIZED:
            writer.write(self._unauthorized)
            await writer.drain()
            return
        asked = f"Retry-After: {ASKED_SECONDS}\r\n" if trouble is Trouble.BUSY else ""
        writer.write(
            f"HTTP/1.1 {trouble} No\r\n{asked}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to)
        try:
            async with asyncio.TaskGroup() as tasks:
                back = tasks.create_task(self._pump(to_reader, writer, writer))
                await self._pump(reader, to_writer, writer)
                back.cancel()
        except* ConnectionError:
            pass
        finally:
            to_writer.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, connection: asyncio.StreamWriter
    ) -> None:
        while data := await source.read(CHUNK_BYTES):
            if connection not in self._dead:
                if sink is connection:
                    self.through_at = asyncio.get_running_loop().time()
                sink.write(data)
                await sink.drain()
        if sink is connection and connection not in self._dead:
            sink.transport.abort()
