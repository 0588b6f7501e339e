"""Clients that speak HTTP by hand, so that they can also speak it badly."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bridge.channel import Answer, Request
from bridge.channel.contract import AnyAnswer
from bridge.channel.testing.clock import FakeClock
from bridge.config import WebTable
from bridge.web.listener import Listener, Own, Route, listening


@dataclass
class FakeAccount:
    """Notes each request, and answers as told; ``gate`` holds the answers back while it is not set."""

    answer: AnyAnswer | Exception = field(default_factory=lambda: Answer(200, b'{"ok":true}'))
    body_limit_bytes: int = 1000
    requests: list[Request] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def handle(self, request: Request) -> AnyAnswer:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def nothing(path: str, headers: Mapping[str, str]) -> Answer:
    """A daemon that tells nothing of itself, but that it lives."""
    return Answer(200, b"{}") if path == "/healthz" else Answer(404, b'{"error":"not_found"}')


@asynccontextmanager
async def served(
    account: Route | None = None,
    own: Own | None = None,
    **web: float,
) -> AsyncIterator[Listener]:
    """A listener on loopback that serves ``account`` as pigeon:main."""
    table = WebTable.model_validate({"port": 0, **web})

    def find(channel: str, name: str) -> Route | None:
        return account if (channel, name) == ("pigeon", "main") else None

    async with listening(table, find, FakeClock(), own or nothing) as listener:
        yield listener


class Client:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @property
    def is_cut(self) -> bool:
        """The listener has ended the connection."""
        return self.reader.at_eof() or self.reader.exception() is not None or self.writer.is_closing()

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """Everything up to the end; a reset counts as one."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """One response: status, headers in lower case, body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), fields, await self.reader.readexactly(int(fields["content-length"]))


@asynccontextmanager
async def client(listener: Listener) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


def post(body: bytes = b"{}", path: str = "/channels/pigeon/main", headers: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode()
