"""The protocol for one client over a pair of file descriptors, such as standard input and output.

Threads pass the bytes on, since a descriptor may be a file or a terminal, which no event loop can watch or
should make non-blocking. Nothing of such a session outlives it, so its steps are not stored.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from bridge.protocol import ours
from bridge.sessions.contract import ControlError, Services
from bridge.sessions.live import LiveSessions
from bridge.sessions.server import serve_client
from bridge.store.contract import Query, Step

CHUNK_BYTES = 65_536
_STORED_NOTHING: Any = None  # the result of every step and the answer to every question of a session's


class ForgetfulStore:
    """A ``Store`` for what nobody will ask for again. It takes the steps of sessions, and no others."""

    async def do(self, step: Step[Any]) -> Any:
        return _STORED_NOTHING

    async def get(self, query: Query[Any]) -> Any:
        return _STORED_NOTHING

    def backlog(self) -> int:
        return 0


class NoDaemon:
    """A ``Control`` where no daemon runs."""

    async def handle(self, command: ours.Command) -> NoReturn:
        raise ControlError("unsupported", "no daemon runs here: ask one on its socket")


async def serve_stdio(
    services: Services, version: str, source: int, sink: int, stop: asyncio.Future[int]
) -> None:
    """Serve whoever writes to ``source`` and reads from ``sink``, until its end or until ``stop`` is set."""
    with piped(source, sink, services.deadlines.writer) as client:
        async with asyncio.TaskGroup() as tasks:
            agents = tasks.create_task(services.agents.run())
            task = tasks.create_task(serve_client(client, services, LiveSessions(), version))
            stop.add_done_callback(lambda _: task.cancel())
            task.add_done_callback(lambda _: agents.cancel())


@contextmanager
def piped(source: int, sink: int, seconds: float) -> Iterator[socket.socket]:
    """A socket that stands for the two. Leaving waits up to ``seconds`` until all is in ``sink``; blocking.

    Whoever gets the socket closes it.
    """
    inner, outer = socket.socketpair()
    inner.setblocking(False)
    with outer:
        threading.Thread(target=_take_in, args=(source, outer), daemon=True).start()
        giving = threading.Thread(target=_give_out, args=(outer, sink), daemon=True)
        giving.start()
        try:
            yield inner
        finally:
            giving.join(seconds)


def _take_in(source: int, outer: socket.socket) -> None:
    """Until the source ends, or nobody takes what it brings."""
    with suppress(OSError):
        while data := os.read(source, CHUNK_BYTES):
            outer.sendall(data)
    with suppress(OSError):
        outer.shutdown(socket.SHUT_WR)


def _give_out(outer: socket.socket, sink: int) -> None:
    """Until the server has closed its end. A sink that is closed is a client that has gone."""
    try:
        while data := outer.recv(CHUNK_BYTES):
            while data:
                data = data[os.write(sink, data) :]
    except OSError:
        with suppress(OSError):
            outer.shutdown(socket.SHUT_RDWR)
