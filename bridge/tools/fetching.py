"""One GET to an address that others may have chosen: each step is judged by the guard, and bounded."""

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from socket import AF_INET, AF_INET6, AF_UNSPEC, AddressFamily
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from bridge.errors import BridgeError, UnreachableError
from bridge.guard import Guard

MOST_BYTES = 5 * 1_048_576
MOST_REDIRECTS = 5
SECONDS = 30.0
CONNECT_SECONDS = 10.0
_MOVED = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": "turnbridge",
    "Accept": "text/html, text/plain, application/json, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}


class FetchError(BridgeError):
    """Nothing usable came; the text names the host at most, and is safe to show."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """``url`` is the last of the redirects; ``mime`` in lower case, "" for none. Whole: nothing is cut."""

    url: str
    status: int
    mime: str
    charset: str
    data: bytes
    is_whole: bool

    @property
    def said(self) -> str:
        """The status in words."""
        known = {each.value: each.phrase for each in HTTPStatus}
        return f"{self.status} {known.get(self.status, '')}".strip()


async def fetch(url: str, guard: Guard, tls: ssl.SSLContext) -> Fetched:
    """GET ``url``, following up to five redirects.

    Raises:
        FetchError: the guard refuses it, or there is no answer in time.
    """
    try:
        asked = URL(url)
    except ValueError:
        raise FetchError("that is no web address") from None
    host = asked.raw_host or "it"
    try:
        async with asyncio.timeout(SECONDS):
            return await _followed(asked, guard, tls)
    except UnreachableError as error:  # the guard's
        raise FetchError(str(error)) from None
    except TimeoutError:
        raise FetchError(f"{host} did not answer in {SECONDS:g} seconds") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:  # theirs may hold the address
        raise FetchError(f"{host} cannot be asked: {type(error).__name__}") from None


async def _followed(url: URL, guard: Guard, tls: ssl.SSLContext) -> Fetched:
    for _ in range(MOST_REDIRECTS + 1):
        found = await _step(url, guard, tls)
        if isinstance(found, Fetched):
            return found
        url = found
    raise FetchError(f"it redirects more than {MOST_REDIRECTS} times")


async def _step(url: URL, guard: Guard, tls: ssl.SSLContext) -> Fetched | URL:
    """The answer, or where it redirects. Connected is to the addresses that were judged, and to no other."""
    pinned = _Pinned(await guard.addresses(url))
    connector = aiohttp.TCPConnector(resolver=pinned, ssl=tls, force_close=True, use_dns_cache=False)
    timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS)
    async with (
        aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, timeout=timeout
        ) as session,
        session.get(url, allow_redirects=False, headers=_HEADERS) as response,
    ):
        location = response.headers.get("Location")
        if response.status in _MOVED and location:
            return url.join(URL(location))
        data, is_whole = await _body(response)
        mime = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        shown = str(url.with_fragment(None))
        return Fetched(shown, response.status, mime, response.charset or "", data, is_whole)


async def _body(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """Unpacked, as much as is taken, and whether that is all."""
    data = bytearray()
    async for piece in response.content.iter_any():
        data += piece
        if len(data) > MOST_BYTES:
            return bytes(data[:MOST_BYTES]), False
    return bytes(data), True


class _Pinned(AbstractResolver):
    """Gives out the addresses that were judged, whatever is asked."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: AddressFamily = AF_UNSPEC, **_: Any
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=AF_INET6 if ":" in address else AF_INET,
                proto=0,
                flags=0,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""
