"""One request's way to a model's endpoint, under our limits: sizes, silence, and which headers leave."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import httpx2

from bridge.agents.contract import AgentError
from bridge.agents.llm.mending import Mender
from bridge.agents.llm.sse import Event, EventDecoder
from bridge.clock import Clock
from bridge.version import VERSION

RESPONSE_BYTES = 4_194_304
ERROR_BYTES = 65_536  # of what a refusal may say; the rest is not read

_KEPT = frozenset(
    "host accept content-type content-length transfer-encoding anthropic-version anthropic-beta".split()
)
_AGENT = f"turnbridge/{VERSION}"
_R = TypeVar("_R")


class Watch:
    """Sees to one request: ends it when its endpoint keeps silent, and remembers what came of the answer.

    ``began``: something came; ``is_whole``: its end did, too; ``is_counted``: its tokens were told.
    """

    def __init__(self, clock: Clock, first_byte_seconds: float, silence_seconds: float) -> None:
        self._clock = clock
        self._first_byte_seconds, self._silence_seconds = first_byte_seconds, silence_seconds
        self._due = 0.0
        self._heard = asyncio.Event()
        self._is_paused = False
        self.began = self.is_whole = self.is_counted = False

    def heard(self) -> None:
        """The endpoint has shown itself: the time of its silence begins anew."""
        self._due = self._clock.monotonic() + self._silence_seconds
        self._heard.set()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The endpoint is not listened to meanwhile, so its silence is not its own."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False
            self.heard()

    async def limit(self, work: Coroutine[Any, Any, _R]) -> _R | None:
        """What ``work`` returns, which must not raise; None when it was ended, as silence grew too long."""
        result = None
        async with asyncio.TaskGroup() as tasks:
            scope = asyncio.timeout(None)
            guards = [tasks.create_task(guard(scope)) for guard in (self._first, self._silence)]
            try:
                async with scope:
                    result = await work
            except TimeoutError:
                if not scope.expired():
                    raise
            for guard in guards:
                guard.cancel()
        return result

    async def _first(self, scope: asyncio.Timeout) -> None:
        await self._clock.sleep(self._first_byte_seconds)
        if not self._heard.is_set():
            _end(scope)

    async def _silence(self, scope: asyncio.Timeout) -> None:
        await self._heard.wait()
        while (left := self._due - self._clock.monotonic()) > 0 or self._is_paused:
            await self._clock.sleep(max(left, 1.0))
        _end(scope)


def _end(scope: asyncio.Timeout) -> None:
    scope.reschedule(asyncio.get_running_loop().time())


class Wire(httpx2.AsyncBaseTransport):
    """Sends requests through ``pool``, which it leaves open, with ``secrets`` as their only private headers.

    The libraries above never hold the key, and tell nothing of this machine. ``mender`` mends an answer in
    events. Without ``streams`` the answer is asked for in one piece.
    """

    def __init__(
        self,
        pool: httpx2.AsyncBaseTransport,
        secrets: Mapping[str, str],
        watch: Watch,
        mender: Mender | None = None,
        *,
        streams: bool = True,
    ) -> None:
        self._pool, self._secrets, self._watch, self._mender = pool, secrets, watch, mender
        self._streams = streams

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers = httpx2.Headers([pair for pair in request.headers.multi_items() if pair[0] in _KEPT])
        request.headers.update({**self._secrets, "accept-encoding": "identity", "user-agent": _AGENT})
        response = await self._pool.handle_async_request(request if self._streams else _at_once(request))
        self._watch.heard()
        source = cast(httpx2.AsyncByteStream, response.stream)
        is_refusal = response.status_code >= 400
        stream = _Refusal(source) if is_refusal else _Answer(source, self._watch, self._mender)
        return httpx2.Response(
            response.status_code,
            headers=_plain(response.headers),
            stream=stream,
            extensions=response.extensions,
        )


def _at_once(request: httpx2.Request) -> httpx2.Request:
    """``request`` for a whole answer, in one piece."""
    body = {**json.loads(request.content), "stream": False}
    body.pop("stream_options", None)
    headers = [pair for pair in request.headers.multi_items() if pair[0] != "content-length"]
    return httpx2.Request(
        request.method, request.url, headers=headers, json=body, extensions=request.extensions
    )


def _plain(headers: httpx2.Headers) -> httpx2.Headers:
    """Without a packing that was not asked for: packed bytes would be let through uncounted."""
    return httpx2.Headers([pair for pair in headers.multi_items() if pair[0] != "content-encoding"])


class _Refusal(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = ERROR_BYTES
        async for data in self._stream:
            yield data[:left]
            left -= len(data)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Answer(httpx2.AsyncByteStream):
    """Counts the bytes of an answer, and mends its events; one that is JSON itself becomes events."""

    def __init__(self, stream: httpx2.AsyncByteStream, watch: Watch, mender: Mender | None) -> None:
        self._stream, self._watch, self._mender = stream, watch, mender
        self._decoder, self._json = EventDecoder(), bytearray()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._counted():
            if self._mender is None:
                yield data
                continue
            for event in self._mended(self._mender, data):
                yield event
        for event in self._rest(self._mender) if self._mender else ():
            yield event

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _counted(self) -> AsyncIterator[bytes]:
        count = 0
        async for data in self._stream:
            self._watch.heard()
            self._watch.began = self._watch.began or bool(data)
            count += len(data)
            if count > RESPONSE_BYTES:
                raise AgentError("response_limit", f"the model's answer is over {RESPONSE_BYTES} bytes")
            if data:
                yield data

    def _mended(self, mender: Mender, data: bytes) -> list[bytes]:
        if self._json or (not self._decoder.has_begun and data.lstrip().startswith(b"{")):
            self._json += data
            return []
        return self._told(mender, [one for event in self._decoder.feed(data) for one in mender.mend(event)])

    def _rest(self, mender: Mender) -> list[bytes]:
        late = mender.whole(bytes(self._json)) if self._json else []
        late += [one for event in self._decoder.rest() for one in mender.mend(event)]
        return self._told(mender, [*late, *mender.rest()])

    def _told(self, mender: Mender, events: list[Event]) -> list[bytes]:
        self._watch.is_whole, self._watch.is_counted = mender.is_whole, mender.is_counted
        return [event.encode() for event in events]
