"""The only HTTP client of adapters: bounded in time and size, and careful with secrets and addresses."""

import asyncio
import json as jsonlib
import re
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final, TypedDict, Unpack
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDict
from pydantic import SecretStr
from yarl import URL

from bridge.channel.answer import HttpAnswer, failure
from bridge.channel.multipart import UploadFile, disposition, disposition_name, form, open_content
from bridge.channel.transport import (
    MAX_ANSWER_BYTES,
    Body,
    Origin,
    Request,
    Stream,
    TooLargeError,
    Transport,
    http_session,
    origin,
)
from bridge.channel.websocket import Closed, Socket
from bridge.clock import Clock, SystemClock
from bridge.errors import ChannelError, ConfigError, CredentialsError, UnreachableError
from bridge.guard import Guard
from bridge.logs import register_borne

__all__ = [
    "Closed", "Http", "HttpAnswer", "Options", "Query", "Socket", "Stream", "TooLargeError", "UploadFile",
    "disposition", "disposition_name", "failure", "http_session",
]  # fmt: skip

Query = Mapping[str, str | int | float | bool | None]
Answering = Coroutine[Any, Any, HttpAnswer]

TIMEOUT_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5.0
STREAM_SECONDS: Final = 180.0
_NONE: Final[CIMultiDict[str]] = CIMultiDict()
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class Options(TypedDict, total=False):
    """What any request may be given.

    ``headers`` go to the origin of the first address alone. ``timeout_seconds`` bounds all of the request,
    ``max_bytes`` its answer; with ``cut`` one that is longer or breaks off is cut there rather than unusable,
    for whom the status is all that counts. ``follow`` is how many redirects of a GET are followed, none by
    default.
    """

    headers: Mapping[str, str] | None
    timeout_seconds: float
    max_bytes: int
    cut: bool
    follow: int


@dataclass(frozen=True, slots=True)
class _Bound:
    """What one ``Http`` is bound to. ``base`` may have a path."""

    base: str = ""
    origin: Origin | None = None
    trusted: bool = False
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict, repr=False)
    timeout_seconds: float = TIMEOUT_SECONDS


class Http:
    """Requests of one account. ``session`` is one of ``http_session``'s.

    An address of the origin that the operator configured is requested as it is, with the account's secrets.
    Any other, also one that a redirect leads to, passes the guard and gets none of them.

    Thousands wait for their answers here: what asks hands over to one coroutine and holds nothing itself.
    """

    __slots__ = ("_bound", "_transport")

    def __init__(
        self,
        session: aiohttp.ClientSession,
        guard: Guard | None = None,
        clock: Clock | None = None,
        bound: _Bound | None = None,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._bound = bound or _Bound()
        trusted = self._bound.origin if self._bound.trusted else None
        self._transport = Transport(
            session, guard or Guard(), clock or SystemClock(), trusted, connect_seconds
        )

    @property
    def clock(self) -> Clock:
        """The account's time, for signatures and expiries: an adapter has no other."""
        return self._transport.clock

    def at(
        self,
        base: str,
        bearer: SecretStr | str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        allow: Iterable[str] = (),
        guarded: bool = False,
        timeout_seconds: float = TIMEOUT_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> "Http":
        """This client bound to ``base``, whose path precedes every path.

        ``bearer`` (a token) and ``headers`` go to ``base``'s origin only. ``allow`` holds more ``host`` or
        ``host:port`` entries that the guard lets pass; ``guarded`` lets it judge ``base`` itself too.

        Raises:
            ConfigError: ``base`` is not a web address.
            CredentialsError: ``bearer`` cannot be a header.
        """
        own = CIMultiDict(headers or {})
        if bearer is not None:
            own["Authorization"] = f"Bearer {_token(bearer)}"
        bound = _Bound(base.rstrip("/"), _base_origin(base), not guarded, own, timeout_seconds)
        here = self._transport
        return Http(here.session, here.guard.allowing(allow), here.clock, bound, connect_seconds)

    def get(self, path: str, query: Query | None = None, **options: Unpack[Options]) -> Answering:
        """``request("GET", …)``."""
        return self._ask("GET", self._url(path, query), None, "", options)

    def post(self, path: str, json: object = None, **options: Unpack[Options]) -> Answering:
        """``request("POST", …)`` with a JSON body."""
        return self.request("POST", path, json=json, **options)

    def post_form(self, path: str, fields: Mapping[str, str], **options: Unpack[Options]) -> Answering:
        """POST an ``application/x-www-form-urlencoded`` body."""
        body = urlencode(dict(fields), errors="replace").encode()
        kind = "application/x-www-form-urlencoded"
        return self.request("POST", path, body=body, content_type=kind, **options)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        json: object = None,
        body: bytes | None = None,
        content_type: str = "",
        **options: Unpack[Options],
    ) -> Answering:
        """Ask and read the whole answer, whatever its status.

        ``path`` is what follows the base, or an absolute address. The body is ``json`` as a value, ``None``
        being none, or ``body`` as bytes with its ``content_type``.

        Raises:
            UnreachableError: nothing was accepted, or the request only reads.
            OutcomeUnknownError: it may have been accepted.
        """
        if json is not None:
            body, content_type = _dump(json), content_type or "application/json"
        return self._ask(method, self._url(path, query), body, content_type, options)

    async def _ask(
        self, method: str, url: URL, body: Body, content_type: str, options: Options
    ) -> HttpAnswer:
        request = self._request(method, url, body, content_type, options)
        stream = await self._transport.send(request, options.get("follow", 0))
        try:
            return await stream.answer(options.get("max_bytes", MAX_ANSWER_BYTES), options.get("cut", False))
        finally:
            stream.close()

    async def upload(
        self, path: str, fields: Mapping[str, str], file: UploadFile, **options: Unpack[Options]
    ) -> HttpAnswer:
        """POST a multipart form with ``fields`` and then the file, streamed; errors as ``request``.

        Raises:
            ChannelError: the file cannot be read.
        """
        try:
            content = await _opened(file.content)
        except OSError:
            raise ChannelError("a file to send cannot be read") from None  # theirs holds its path

        def build() -> aiohttp.FormData:
            content.seek(0)
            return form(fields, file, content)

        with content:
            return await self._ask("POST", self._url(path), build, "", options)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query | None = None, **options: Unpack[Options]
    ) -> AsyncIterator[Stream]:
        """GET something large: yields the head, and the body is read by its ``chunks`` or ``answer``.

        Raises:
            UnreachableError: it cannot be had.
        """
        options.setdefault("timeout_seconds", STREAM_SECONDS)
        request = self._request("GET", self._url(path, query), None, "", options)
        stream = await self._transport.send(request, options.get("follow", 0))
        try:
            yield stream
        finally:
            stream.close()

    @asynccontextmanager
    async def websocket(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        protocols: Iterable[str] = (),
        heartbeat_seconds: float | None = None,
        max_message_bytes: int = MAX_ANSWER_BYTES,
    ) -> AsyncIterator[Socket | HttpAnswer]:
        """Open a WebSocket at ``path`` or a ``ws`` or ``wss`` address; it is closed at the end.

        Yields the platform's answer instead where it refused the upgrade, or moved. ``heartbeat_seconds``
        sends pings, and ends the socket when no pong comes in half that time.

        Raises:
            UnreachableError: no connection, or no usable answer.
        """
        request = self._request("GET", self._url(path), None, "", {"headers": headers})
        opened = await self._transport.upgrade(request, protocols, heartbeat_seconds, max_message_bytes)
        try:
            yield opened
        finally:
            if isinstance(opened, Socket):
                await opened.close()

    def _request(self, method: str, url: URL, body: Body, content_type: str, options: Options) -> Request:
        headers, given = _NONE, options.get("headers")
        if origin(url) == self._bound.origin:
            headers = self._bound.headers
            if self._bound.trusted and url.raw_query_string:
                register_borne(url.query.items())  # of an address that no remote party chose
        if content_type or given:
            own, headers = headers, CIMultiDict({"Content-Type": content_type} if content_type else {})
            headers.update(own)
            headers.update(given or {})
        register_borne(headers.items())
        seconds = options.get("timeout_seconds", self._bound.timeout_seconds)
        return Request(method, url, headers, body, asyncio.get_running_loop().time() + seconds)

    def _url(self, path: str, query: Query | None = None) -> URL:
        try:
            return _address(self._bound.base, path, tuple(_plain(query).items()) if query else ())
        except ValueError:
            raise UnreachableError("what is to be requested is not a web address") from None


async def _opened(content: Path | bytes) -> BinaryIO:
    """``open_content`` in a thread. Cancelled meanwhile, what is opened after all is closed."""
    opening = asyncio.get_running_loop().run_in_executor(None, open_content, content)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close)
        raise


def _close(opening: asyncio.Future[BinaryIO]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


@lru_cache(maxsize=1024)
def _address(base: str, path: str, query: tuple[tuple[str, str], ...]) -> URL:
    """The address to ask. An absolute one stays byte for byte, as its signature may cover it.

    Who polls asks for the same one again and again, and an address keeps what was found out about it.

    Raises:
        ValueError: it leads nowhere.
    """
    if _ABSOLUTE.match(path):
        url = URL(path, encoded=path.isascii() and path.isprintable() and " " not in path)
    else:
        url = URL(base + (path if path[:1] in ("/", "?", "") else f"/{path}"))
    origin(url)
    return url.extend_query(dict(query)) if query else url


def _plain(query: Query) -> dict[str, str]:
    """As text: true and false in lower case, ``None`` left out."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in query.items()
        if value is not None
    }


def _dump(value: object) -> bytes:
    return jsonlib.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _base_origin(base: str) -> Origin:
    try:
        found = origin(URL(base))
    except ValueError:
        raise ConfigError("the base address is not a web address") from None
    if found[0] not in ("http", "https"):
        raise ConfigError("the base address must start with https:// or http://")
    return found


def _token(bearer: SecretStr | str) -> str:
    """The token as a header takes it.

    Raises:
        CredentialsError: it is empty, or has spaces, controls or other characters that no token has.
    """
    token = (bearer.get_secret_value() if isinstance(bearer, SecretStr) else bearer).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialsError("the token is empty or has characters that no token has")
    return token
