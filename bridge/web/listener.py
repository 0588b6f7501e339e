"""The one HTTP listener: pushes and questions to accounts, and to the daemon itself (``own``).

From aiohttp's request to the account there is no router and no middleware: the path is cut by hand, and the
headers are handed over as they are.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, cast

from aiohttp import web
from multidict import CIMultiDict

from bridge.channel import Answer, Request
from bridge.channel.contract import AnyAnswer, FileAnswer, NoAnswer, SentAnswer
from bridge.clock import Clock, unix_seconds
from bridge.config import WebTable
from bridge.errors import StoreError
from bridge.logs import get_logger
from bridge.paths import unserved
from bridge.web import unix
from bridge.web.body import BodyReader, refusal
from bridge.web.brief import Brief, is_brief
from bridge.web.connection import SERVER_HEADERS, Connection, Deadlines, Server
from bridge.web.files import send_file
from bridge.web.sent import write_sent

PREFIX = "/channels/"
STOP_SECONDS = 1.0  # for the requests that are being answered
BACKLOG = 1024

log = get_logger(__name__)

_JSON = "application/json"
_JSON_HEADERS = CIMultiDict({"Content-Type": _JSON, **SERVER_HEADERS})
_NO_QUERY: Mapping[str, str] = {}
_NOT_FOUND = refusal(404, "not_found")
_CUT = frozenset({408, 413, 503})  # a body may be left unread: the connection ends with these


class Route(Protocol):
    """An account, as HTTP reaches it."""

    @property
    def body_limit_bytes(self) -> int: ...

    async def handle(self, request: Request) -> AnyAnswer:
        """Answer ``request``.

        Raises:
            StoreError: nothing was stored; the sender is told to come again.
        """
        ...


Find = Callable[[str, str], Route | None]
"""The account that is served under a channel's and an account's name."""

Own = Callable[[str, Mapping[str, str]], Awaitable[Answer]]
"""Answers what is for no account, by path and headers."""


class Listener:
    """Made by ``listening``, which binds and closes it."""

    def __init__(self, table: WebTable, find: Find, clock: Clock, own: Own) -> None:
        self._route, self._clock, self._own = find, clock, own
        self._bodies = BodyReader(table.body_seconds)
        self.port = table.port

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The handler of every request."""
        connection = cast(Connection, request.protocol)
        connection.begun()
        try:
            answer = await self._find(request)
            if isinstance(answer, FileAnswer):
                return await send_file(request, answer)
            if isinstance(answer, SentAnswer):
                return await write_sent(request, _response(answer.answer), answer.written)
            if isinstance(answer, NoAnswer):
                raise ConnectionError("it is left unanswered")  # which closes the connection
            cut = connection.is_broken or answer.status in _CUT
            if not cut and is_brief(answer, request):
                return Brief(answer, unix_seconds(self._clock.now()))
            response = _response(answer)
            if cut:
                response.force_close()
            return response
        except StoreError as error:
            log.warning("web.not_stored", error=error)
            return _response(refusal(503, "not_stored", **{"Retry-After": "5"}))
        except FileNotFoundError:
            return _response(_NOT_FOUND)
        finally:
            connection.ended()

    async def _find(self, request: web.BaseRequest) -> AnyAnswer:
        path = request.path
        if not path.startswith(PREFIX):
            return await self._own(path, request.headers)
        channel, _, rest = path[len(PREFIX) :].partition("/")
        account, slash, rest = rest.partition("/")
        route = self._route(channel, account)
        if route is None:
            return _NOT_FOUND
        body = await self._bodies.read(request, route.body_limit_bytes)
        if isinstance(body, Answer):
            return body
        return await route.handle(
            Request(
                method=request.method,
                path=slash + rest if rest else "",
                query=request.query if request.query_string else _NO_QUERY,
                headers=request.headers,
                body=body,
                received_at=self._clock.now(),
            )
        )


@asynccontextmanager
async def listening(table: WebTable, find: Find, clock: Clock, own: Own) -> AsyncIterator[Listener]:
    """Listen where ``table`` says while the block runs; ``port`` tells where that is.

    Raises:
        ConfigError: the address cannot be had.
        ExhaustedError: the system lacks descriptors for it.
    """
    listener = Listener(table, find, clock, own)
    server = _server(listener, table)
    try:
        bound = await asyncio.get_running_loop().create_server(
            server, table.host, table.port, backlog=BACKLOG
        )
        if not bound.sockets:
            raise OSError("nothing could be bound")  # as Python says it from 3.12.5 on
    except OSError as untold:
        error = _told(untold)
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such host"
        text = f"cannot listen on web.host {table.host}, web.port {table.port}: {why}"
        raise unserved(error, text, "choose another in the table [web] of config.toml") from untold
    listener.port = bound.sockets[0].getsockname()[1]
    async with _serving(bound, server):
        yield listener


@asynccontextmanager
async def listening_at(
    path: Path, table: WebTable, find: Find, clock: Clock, own: Own
) -> AsyncIterator[None]:
    """As ``listening``, on the Unix socket ``path``, which only the same user can open.

    Raises:
        ConfigError: the path is not ours to use.
    """
    server = _server(Listener(table, find, clock, own), table)
    with unix.bound(path) as sock:
        bound = await asyncio.get_running_loop().create_unix_server(server, sock=sock, backlog=BACKLOG)
        async with _serving(bound, server):
            yield


def _told(error: OSError) -> OSError:
    """Why no socket could be made of any family, which asyncio does not tell; else ``error``."""
    if error.errno is not None:
        return error
    try:
        socket.socket().close()
    except OSError as lacking:
        return lacking
    return OSError(errno.EAFNOSUPPORT, "")


def _server(listener: Listener, table: WebTable) -> Server:
    times = Deadlines(table.header_seconds, table.body_seconds, table.idle_seconds)
    return Server(listener.answer, times, table.max_connections)


@asynccontextmanager
async def _serving(bound: asyncio.AbstractServer, server: Server) -> AsyncIterator[None]:
    """Close ``bound`` at the end, and let the requests that are being answered finish."""
    try:
        yield
    finally:
        bound.close()
        server.pre_shutdown()
        await server.shutdown(STOP_SECONDS / 2)


def _response(answer: Answer) -> web.Response:
    headers = CIMultiDict(_JSON_HEADERS)
    if answer.content_type != _JSON:
        headers["Content-Type"] = answer.content_type
    if answer.headers:
        headers.update(answer.headers)
    return web.Response(status=answer.status, body=answer.body, headers=headers)
