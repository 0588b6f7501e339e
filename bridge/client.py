"""Protocol v3 over a Unix socket, from the client's side: for the relay and for commands."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from bridge.errors import SessionError
from bridge.protocol import ours
from bridge.protocol.codec import write
from bridge.protocol.errors import ProtocolError
from bridge.protocol.events import ErrorEvent, Initialized
from bridge.protocol.frames import ClientLineDecoder, TooLong
from bridge.protocol.limits import PROTOCOL_VERSION, SERVER_FRAME_BYTES
from bridge.protocol.messages import Initialize
from bridge.protocol.shared import Peer

E = TypeVar("E")

CONNECT_SECONDS = 10.0
READ_BYTES = 65_536


class Connection:
    """One connection, initialized. One reader and one writer at a time; events come in the server's order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._decoder = ClientLineDecoder(
            SERVER_FRAME_BYTES + 2
        )  # the longest legal frame with its line ending
        self._events: deque[ours.ServerEvent] = deque()

    async def send(self, message: ours.ClientMessage) -> None:
        """Write one message.

        Raises:
            SessionError: the connection is gone; the message may have arrived.
        """
        try:
            if self._writer.is_closing():  # which uvloop's write meets with a RuntimeError
                raise ConnectionResetError
            self._writer.write(write(message) + b"\n")
            await self._writer.drain()
        except OSError as error:
            raise SessionError("the session server hung up") from error

    async def next(self) -> ours.ServerEvent:
        """The next event of a known type; unknown ones are skipped.

        Raises:
            SessionError: the connection ended, or the server sent something that is not an event.
        """
        while not self._events:
            await self._read()
        return self._events.popleft()

    @property
    def alive(self) -> bool:
        """False once the server's end is known to be closed."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def _read(self) -> None:
        try:
            data = await self._reader.read(READ_BYTES)
        except OSError as error:
            raise SessionError("the session server hung up") from error
        if not data:
            raise SessionError("the session server hung up")
        try:
            for line in self._decoder.feed(data):
                if isinstance(line, TooLong):
                    raise SessionError("the session server sent a frame over its limit")
                event = ours.read_server_event(line)
                if not isinstance(event, ours.UnknownEvent):
                    self._events.append(event)
        except ProtocolError as error:
            raise SessionError("the session server sent something that is not an event") from error


@asynccontextmanager
async def connected(socket: Path, name: str, version: str, request_id: str) -> AsyncIterator[Connection]:
    """Connect and initialize; the connection is closed at the end.

    Raises:
        SessionError: nobody listens there, or it speaks another version.
    """
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_unix_connection(socket)
    except (OSError, TimeoutError) as error:
        raise SessionError("the session server is not running") from error
    try:
        connection = Connection(reader, writer)
        await _initialize(connection, Peer(name=name, version=version), request_id)
        yield connection
    finally:
        writer.close()


async def _initialize(connection: Connection, peer: Peer, request_id: str) -> None:
    await connection.send(Initialize(request_id=request_id, protocol_version=PROTOCOL_VERSION, client=peer))
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            expect(await connection.next(), Initialized)
    except TimeoutError as error:
        raise SessionError("the session server does not answer") from error


def expect(event: ours.ServerEvent, kind: type[E]) -> E:
    """``event`` as the ``kind`` it has to be.

    Raises:
        SessionError: it is an error of the server's, whose code is kept, or anything else.
    """
    if isinstance(event, kind):
        return event
    if isinstance(event, ErrorEvent):
        raise SessionError(f"the session server refused: {event.code}", event.code)
    raise SessionError("the session server answered with something else")
