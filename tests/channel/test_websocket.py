"""The client side of a WebSocket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from bridge.channel.websocket import Closed, Socket
from bridge.errors import UnreachableError
from tests.channel.serving import client, serving


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    """Send back what comes; ``bye`` closes with 4004, ``die`` hangs up."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        match message.data:
            case "bye":
                await socket.close(code=4004)
            case "die":
                assert request.transport is not None
                request.transport.abort()
            case str():
                await socket.send_str(message.data)
            case _:
                await socket.send_bytes(message.data)
    return socket


@asynccontextmanager
async def talking() -> AsyncIterator[Socket]:
    async with serving(echo) as base, client(base) as http, http.websocket("/s") as socket:
        assert isinstance(socket, Socket)
        yield socket


async def test_texts_and_bytes_go_both_ways() -> None:
    async with talking() as socket:
        await socket.send("中")
        await socket.send(b"\x00\xff")
        assert [await socket.receive(), await socket.receive()] == ["中", b"\x00\xff"]


async def test_the_end_has_the_platforms_code() -> None:
    async with talking() as socket:
        await socket.send("bye")
        assert await socket.receive() == Closed(4004)
        assert await socket.receive() == Closed(4004)


async def test_an_end_without_goodbye_is_1006() -> None:
    async with talking() as socket:
        await socket.send("die")
        assert await socket.receive() == Closed(1006)


async def test_waiting_for_a_message_ends_in_time_and_leaves_the_socket_open() -> None:
    async with talking() as socket:
        with pytest.raises(TimeoutError):
            await socket.receive(0.01)
        await socket.send("still here")
        assert await socket.receive() == "still here"


async def test_nothing_is_sent_on_a_closed_socket() -> None:
    async with talking() as socket:
        await socket.close(4000)
        await socket.close()
        for message in ("a", b"b"):
            with pytest.raises(UnreachableError, match="the socket is closed"):
                await socket.send(message)
