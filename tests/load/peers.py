"""The other side of a soak, as small as it can be: what it costs, the daemon cannot have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

END = b"\r\n\r\n"
TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"


class Http(asyncio.Protocol):
    """Cuts what comes into heads and bodies. Either side, one message at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(END)) >= 0:
            head = bytes(self._received[:end])
            whole = end + len(END) + _length(head)
            if len(self._received) < whole:
                return
            body = bytes(self._received[end + len(END) : whole])
            del self._received[:whole]
            self.take(head, body)

    def take(self, head: bytes, body: bytes) -> None:
        raise NotImplementedError


def _length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"content-length:")
    return int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


class Callback(Http):
    """Where replies are posted: ``told`` gets what each event holds."""

    def __init__(self, told: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._told = told

    def take(self, head: bytes, body: bytes) -> None:
        self._told(json.loads(body)["data"])
        self.transport.write(TAKEN)


@asynccontextmanager
async def called_back(told: Callable[[dict[str, Any]], None]) -> AsyncIterator[int]:
    """A server that tells ``told`` of each reply; its port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Callback(told), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class Sender(Http):
    """A connection that a person's system keeps, as long as the daemon does."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: asyncio.Future[int] | None = None

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()

    async def post(self, request: bytes) -> int:
        """The status of the answer.

        Raises:
            ConnectionError: there was none.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer

    def take(self, head: bytes, body: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(int(head.split(b" ", 2)[1]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the daemon hung up"))


class Senders:
    """Connections to ``port``, as many as are used at once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[Sender] = []

    async def post(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """The status of the answer; once more where a kept connection was closed meanwhile."""
        lines = [f"POST {path} HTTP/1.1", "Host: soak", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        request = "\r\n".join(lines).encode() + END + body
        while self._free:
            kept = self._free.pop()
            if kept.is_open:
                with suppress(ConnectionError):
                    return await self._through(kept, request)
        _, new = await asyncio.get_running_loop().create_connection(Sender, "127.0.0.1", self._port)
        return await self._through(new, request)

    async def _through(self, sender: Sender, request: bytes) -> int:
        status = await sender.post(request)
        self._free.append(sender)
        return status

    def close(self) -> None:
        for sender in self._free:
            sender.transport.close()
