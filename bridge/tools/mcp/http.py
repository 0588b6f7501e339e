"""A server at an address of the operator's choice, over streamable HTTP: what it may send is bounded."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from bridge.tools.mcp.access import Access
from bridge.tools.mcp.errors import ServerError

MESSAGE_BYTES = 8_388_608
CONNECT_SECONDS = 15.0
LEAVE_SECONDS = 1.0  # for saying goodbye


class Wire(httpx2.AsyncBaseTransport):
    """All requests to one server. ``status`` is that of the last message, 0 where that was not refused."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self.status = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            hurry = dict.fromkeys(("connect", "read", "write", "pool"), LEAVE_SECONDS)
            request.extensions = {**request.extensions, "timeout": hurry}
        request.headers["Accept-Encoding"] = "identity"  # or a few bytes could fill the memory
        is_message = request.method == "POST"
        self.status = 0 if is_message else self.status
        answer = await self._inner.handle_async_request(request)
        if is_message and answer.status_code >= 400:
            self.status = answer.status_code
        if answer.headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()
            raise ServerError("its answers are compressed, which was not asked for")
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(answer.stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            answer.stream = _Bounded(answer.stream)
        return answer

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MESSAGE_BYTES
        async for data in self._inner:
            left -= len(data)
            if left < 0:
                raise httpx2.StreamError("an answer is too large")
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()


def wire() -> Wire:
    """With what this machine trusts, and no proxy: the address is reached as it is written."""
    return Wire(httpx2.AsyncHTTPTransport(trust_env=True))


@asynccontextmanager
async def address(access: Access, wire: Wire, call_seconds: float) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a session there. ``call_seconds`` is how long a call may be silent."""
    patience = httpx2.Timeout(CONNECT_SECONDS, read=call_seconds + CONNECT_SECONDS)
    async with httpx2.AsyncClient(transport=wire, headers=dict(access.headers), timeout=patience) as client:
        session: AbstractAsyncContextManager[tuple[Any, Any]] = streamable_http_client(
            access.url, http_client=client, max_sse_event_size=MESSAGE_BYTES
        )
        async with session as streams:
            yield streams


def explained(status: int) -> str:
    """What a refusal with ``status`` means, and what to do."""
    if status in (401, 403):
        return f"it refuses us ({status}): correct its headers and bearer, or their private file"
    return f"it answers with status {status}: look at its url"
