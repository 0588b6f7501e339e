"""Sending one request: where to connect, which hops to follow, and what its failures mean.

No error of this module holds an address beyond its host name, as paths and queries carry secrets. For the
same reason a library's error, which may hold the address, is cut off with ``from None``.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeVar, cast

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from bridge.channel.answer import HttpAnswer, lost, parse_json
from bridge.channel.multipart import disposition_name
from bridge.channel.websocket import Socket
from bridge.clock import Clock
from bridge.errors import ChannelError, UnreachableError
from bridge.guard import Guard

T = TypeVar("T")
Origin = tuple[str, str, int]  # scheme, host, port
Body = bytes | Callable[[], aiohttp.FormData] | None
"""A form is built anew for each try, as it can be sent once."""

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
_SILENT_SECONDS = 60.0  # no byte for so long: the connection is dead
_CLOSE_SECONDS = 2.0
_MOVED = frozenset({301, 302, 303, 307, 308})
_WEB = {"ws": "http", "wss": "https"}
_NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_THEIRS = (aiohttp.ClientError, OSError, UnicodeError)


class TooLargeError(ChannelError):
    """A body went past the limit of its reader, whatever it had announced."""


@asynccontextmanager
async def http_session(tls: ssl.SSLContext | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """The one pool of connections: no cookies, no proxy from the environment, no limit of its own."""
    connector = aiohttp.TCPConnector(limit=0, ssl=tls or ssl.create_default_context())
    async with _session(connector) as session:
        yield session


def _session(connector: aiohttp.BaseConnector, **more: Any) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=True,
        headers={"User-Agent": "turnbridge"},
        **more,
    )


@asynccontextmanager
async def _upgrading(session: aiohttp.ClientSession) -> AsyncIterator[aiohttp.ClientSession]:
    """For a handshake, with the same pool: what waits for an answer does without the check."""
    connector = cast(aiohttp.BaseConnector, session.connector)
    async with _session(connector, connector_owner=False, middlewares=[_refuse_moved_upgrade]) as own:
        yield own


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``headers`` are for this address's origin; ``deadline`` is by the loop's clock."""

    method: str
    url: URL
    headers: Mapping[str, str] = field(repr=False)
    body: Body = field(repr=False)
    deadline: float
    strayed: bool = False  # a redirect led away from the first origin: nothing is trusted any more

    @property
    def host(self) -> str:
        return self.url.raw_host or ""


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer whose body has not been read: its head, and a way to read it once."""

    status: int
    headers: CIMultiDictProxy[str]
    method: str
    host: str
    received: datetime
    _response: aiohttp.ClientResponse = field(repr=False)

    @property
    def mime(self) -> str:
        """The announced type in lower case without parameters, or ``""``."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def name(self) -> str:
        """The announced file name as it came, neither safe nor short, or ``""``."""
        return disposition_name(self.headers.get("Content-Disposition", ""))

    @property
    def size(self) -> int | None:
        """The announced bytes, of the packed body where it is packed; they may lie."""
        return self._response.content_length

    async def chunks(self, max_bytes: int) -> AsyncGenerator[bytes, None]:
        """The body piece by piece.

        Raises:
            TooLargeError: more than ``max_bytes`` came or were announced.
            UnreachableError, OutcomeUnknownError: the connection broke.
        """
        self._check(self.size or 0, max_bytes)
        seen = 0
        while chunk := await self._chunk(seen, max_bytes):
            seen += len(chunk)
            yield chunk

    async def _chunk(self, seen: int, max_bytes: int) -> bytes:
        """The next piece, after ``seen`` bytes; empty at the end; errors as ``chunks``."""
        try:
            chunk = await self._response.content.readany()
        except _THEIRS as error:
            raise ours(error, self.method, self.host) from None
        self._check(seen + len(chunk), max_bytes)
        return chunk

    def _check(self, seen: int, max_bytes: int) -> None:
        if seen > max_bytes:
            self._response.close()
            raise TooLargeError(f"{self.method} {self.host}: over {max_bytes} bytes")

    async def read(self, max_bytes: int, cut: bool = False) -> bytes:
        """The whole body; with ``cut`` what came of it, where it is longer or broke off.

        Raises:
            As ``chunks``.
        """
        raw = bytearray()
        try:
            self._check(self.size or 0, max_bytes)
            while chunk := await self._chunk(len(raw), max_bytes):
                raw += chunk
        except ChannelError:
            if not cut:
                raise
        return bytes(raw)

    async def answer(self, max_bytes: int = MAX_ANSWER_BYTES, cut: bool = False) -> HttpAnswer:
        """The whole body as an answer; errors as ``chunks``, a too large one being as good as none."""
        try:
            raw = await self.read(max_bytes, cut)
        except TooLargeError:
            raise lost(self.method, self.host, "the answer is too large") from None
        body = parse_json(raw)
        return HttpAnswer(self.status, self.headers, body, raw, self.method, self.host, self.received)

    def close(self) -> None:
        """Give up what was not read; a connection read to its end is kept."""
        self._response.close()


@dataclass(frozen=True, slots=True)
class _Way:
    """Where to connect, and what TLS is to expect where that is a bare address."""

    url: URL
    headers: Mapping[str, str]
    server_hostname: str | None = None


@dataclass(frozen=True, slots=True)
class Transport:
    """Sends requests: to ``trusted`` as they are, to any other origin only as the guard allows."""

    session: aiohttp.ClientSession
    guard: Guard
    clock: Clock
    trusted: Origin | None
    connect_seconds: float

    async def send(self, request: Request, follow: int = 0) -> Stream:
        """Send, and return the answer's head, to be closed; a GET follows up to ``follow`` redirects.

        Raises:
            UnreachableError: not accepted, or the request only reads. OutcomeUnknownError: maybe accepted.
        """
        try:
            response = await self._each_way(request, self._sent)
        except _THEIRS as error:
            raise ours(error, request.method, request.host) from None
        if follow and request.method == "GET" and (moved := _moved(request, response)) is not None:
            return await self.send(moved, follow - 1)
        head = response.status, response.headers
        return Stream(*head, request.method, request.host, self.clock.now(), response)

    async def upgrade(
        self, request: Request, protocols: Iterable[str], heartbeat_seconds: float | None, max_bytes: int
    ) -> Socket | HttpAnswer:
        """Open a WebSocket; a refusal is the platform's answer.

        Raises:
            UnreachableError: no connection, or no usable answer.
        """

        def connect(_: Request, way: _Way) -> Awaitable[aiohttp.ClientWebSocketResponse]:
            return session.ws_connect(
                way.url,
                headers=way.headers,
                server_hostname=way.server_hostname,
                protocols=tuple(protocols),
                heartbeat=heartbeat_seconds,
                max_msg_size=max_bytes,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
            )

        try:
            async with asyncio.timeout_at(request.deadline), _upgrading(self.session) as session:
                return Socket(await self._each_way(request, connect), request.host)
        except aiohttp.WSServerHandshakeError as error:
            if error.status == 101:
                raise ours(error, request.method, request.host) from None
            head = CIMultiDictProxy(CIMultiDict(error.headers or {}))
            now = self.clock.now()
            return HttpAnswer(error.status, head, None, b"", request.method, request.host, now)
        except _THEIRS as error:
            raise ours(error, request.method, request.host) from None

    def _sent(self, request: Request, way: _Way) -> Awaitable[aiohttp.ClientResponse]:
        left = max(request.deadline - asyncio.get_running_loop().time(), 0.001)
        return self.session.request(
            request.method,
            way.url,
            headers=way.headers,
            data=request.body() if callable(request.body) else request.body,
            server_hostname=way.server_hostname,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                total=left,
                connect=self.connect_seconds,
                sock_read=_SILENT_SECONDS if left > _SILENT_SECONDS else None,  # else it is over before
            ),
        )

    async def _each_way(self, request: Request, attempt: Callable[[Request, _Way], Awaitable[T]]) -> T:
        """What ``attempt`` comes to, which is tried on the next way where nobody answers at one."""
        *first, last = await self._ways(request)
        for way in first:
            try:
                return await attempt(request, way)
            except _NOT_CONNECTED:
                continue
        return await attempt(request, last)

    async def _ways(self, request: Request) -> list[_Way]:
        """The name itself for the trusted origin; else the judged addresses, so none is looked up again."""
        if not request.strayed and origin(request.url) == self.trusted:
            return [_Way(request.url, request.headers)]
        try:
            async with asyncio.timeout(self.connect_seconds):
                addresses = await self.guard.addresses(request.url)
        except TimeoutError:
            raise UnreachableError(f"{request.host} was not looked up in time") from None
        headers = {**request.headers, "Host": request.url.host_port_subcomponent or ""}
        return [_Way(request.url.with_host(each), headers, request.host.rstrip(".")) for each in addresses]


def ours(error: Exception, method: str, host: str) -> ChannelError:
    """Our error for one of the library's."""
    match error:
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError() | UnicodeError():
            return UnreachableError(f"{method} {host}: no connection")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return UnreachableError(f"{method} {host}: no connection")
        case TimeoutError():
            return lost(method, host, "no answer in time")
        case _:
            return lost(method, host, "the connection broke")


def origin(url: URL) -> Origin:
    """Where ``url`` leads, a WebSocket's being that of the web.

    Raises:
        ValueError: it leads nowhere.
    """
    if not url.raw_host or url.port is None:
        raise ValueError("no web address")
    return _WEB.get(url.scheme, url.scheme), url.raw_host, url.port


def _moved(request: Request, response: aiohttp.ClientResponse) -> Request | None:
    """The request that a redirect, now closed, asks for; to another origin it goes without the headers."""
    location = response.headers.get("Location")
    if response.status not in _MOVED or not location:
        return None
    response.close()
    try:
        url = request.url.join(URL(location, encoded=location.isascii()))
        same = origin(url) == origin(request.url)
    except ValueError:
        raise UnreachableError(f"{request.method} {request.host}: it redirects to no web address") from None
    return replace(request, url=url) if same else replace(request, url=url, headers={}, strayed=True)


async def _refuse_moved_upgrade(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Stop the library from following a redirect of a WebSocket's handshake, which no guard would see."""
    response = await handler(request)
    if response.status in _MOVED and "Upgrade" in request.headers:
        response.close()
        raise aiohttp.WSServerHandshakeError(
            response.request_info, response.history, status=response.status, headers=response.headers
        )
    return response
