"""One HTTP connection under deadlines, which aiohttp's server has none of.

The one place that leans on near-private parts of aiohttp: its ``RequestHandler`` is extended by a timer until
a whole header has come, one for a client that does not read, an answer for half-closed clients, and error
answers that repeat nothing of what was received.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.http import RawRequestMessage

from bridge.logs import get_logger

SERVER_HEADERS = {"Server": "turnbridge"}

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """All in seconds.

    ``body`` also bounds how long a client may not read; ``linger``: how long what follows a refusal is read
    and dropped, so that its sender gets to see why.
    """

    header: float = 10.0
    body: float = 15.0
    idle: float = 75.0
    linger: float = 1.0


class Connection(web.RequestHandler):
    __slots__ = (
        "_header_timer", "_last_body", "_pool", "_reader_timer", "_times", "has_hung_up", "is_broken",
    )  # fmt: skip

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, times: Deadlines) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=times.idle,
            lingering_time=times.linger,
            access_log=None,  # type: ignore[arg-type] # none per request: a log line costs a third of it
            auto_decompress=False,  # signatures are over the raw bytes, and a small body stays small
        )
        self._pool, self._times = server.pool, times
        self._last_body: StreamReader | None = None
        self.is_broken = False  # the body that was coming turned into something that is no HTTP
        self.has_hung_up = False  # its client says nothing more: it has left, or closed its half
        self._header_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """No request is being answered: a header is awaited, or the rest of one."""
        waiter = self._waiter
        return waiter is not None and not waiter.done()

    def begun(self) -> None:
        """The handler has the whole header."""
        self._pool.waiting.pop(self, None)
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def ended(self) -> None:
        """The handler has its answer."""
        if self.transport is not None:
            self._pool.waiting[self] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._await_header()
        self._pool.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.has_hung_up = True
        self.begun()
        self.resume_reader()
        self._pool.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._messages:
            self._note(*self._messages[-1])
        if self._header_timer is None and self.is_waiting:
            self._await_header()  # the first bytes of a header after an earlier request

    def _note(self, message: object, body: StreamReader) -> None:
        """Remember the newest request's body. What cannot be read ends one that was still coming."""
        if not isinstance(message, RawRequestMessage) and self._last_body and not self._last_body.is_eof():
            self.is_broken = True
            self._last_body.feed_eof()  # the parser tells it nothing, and its reader would wait in vain
        self._last_body = body

    def eof_received(self) -> bool | None:  # type: ignore[override] # True keeps our half open
        """A client that has said everything still gets its answer; one that stopped midway does not."""
        self.has_hung_up = True
        if self.is_waiting or self._last_body is None or not self._last_body.is_eof():
            return None
        self.close()
        return True

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Aiohttp resumes for every body; where nothing is paused, there is nothing to resume."""
        if self._reading_paused or self._buffer_paused:
            super().resume_reading(resume_parser)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader_timer = self._loop.call_later(self._times.body, self._abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.resume_reader()

    def resume_reader(self) -> None:
        """Forget the timer of a client that did not read."""
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """An answer to what could not be read, or to what a handler raised; the connection ends with it."""
        if isinstance(exc, ConnectionError) or request.writer.output_size > 0:
            raise ConnectionError("the client is gone, or has half an answer")
        if status >= 500:
            log.error("web.failed", method=request.method, error=exc)
        error = b'{"error":"internal"}' if status >= 500 else b'{"error":"bad_request"}'
        response = web.Response(
            status=500 if status >= 500 else status,
            body=error,
            headers={"Content-Type": "application/json", **SERVER_HEADERS},
        )
        response.force_close()
        return response

    def _await_header(self) -> None:
        self._header_timer = self._loop.call_later(self._times.header, self._cut)

    def _cut(self) -> None:
        if self.is_waiting:
            self.force_close()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Pool:
    """All connections, at most ``limit``: over it, the one that has waited longest makes room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: set[Connection] = set()
        self.waiting: dict[Connection, None] = {}  # in the order in which they began to wait

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> None:
        if len(self._open) >= self._limit:
            self._make_room(connection)
        self._open.add(connection)
        self.waiting[connection] = None

    def remove(self, connection: Connection) -> None:
        self._open.discard(connection)
        self.waiting.pop(connection, None)

    def _make_room(self, new: Connection) -> None:
        longest = next((connection for connection in self.waiting if connection.is_waiting), new)
        self.waiting.pop(longest, None)
        longest.force_close()


class Server(web.Server):
    """Makes a ``Connection`` for each client."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        times: Deadlines,
        max_connections: int,
        **options: Any,
    ) -> None:
        super().__init__(handler, **options)
        self.pool = Pool(max_connections)
        self._times = times

    def __call__(self) -> Connection:
        return Connection(self, self._loop, self._times)
