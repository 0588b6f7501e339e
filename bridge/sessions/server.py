"""The session server: agent sessions behind protocol v3, one client per connection."""

import asyncio
import socket
from pathlib import Path

from bridge.logs import get_logger
from bridge.protocol.shared import Peer
from bridge.sessions.connection import Connection
from bridge.sessions.contract import Services
from bridge.sessions.isolate import Isolated
from bridge.sessions.listener import listening
from bridge.sessions.live import LiveSessions

log = get_logger(__name__)

ACCEPT_PAUSE_SECONDS = 0.5


class SessionServer:
    """Serves on the Unix socket ``path``. ``ready`` is set while clients can connect."""

    def __init__(self, path: Path, services: Services, version: str) -> None:
        self.ready = asyncio.Event()
        self._path, self._services, self._version = path, services, version
        self._live = LiveSessions()

    async def run(self) -> None:
        """Serve until cancelled: then every running turn ends as cancelled, within ``deadlines.stop``.

        Raises:
            ConfigError: another server runs here, or the socket cannot be made.
        ExhaustedError: the system lacks descriptors for it.
        """
        with listening(self._path) as server:
            self.ready.set()
            try:
                await self._accept(server)
            finally:
                self.ready.clear()

    async def _accept(self, server: socket.socket) -> None:
        async with asyncio.TaskGroup() as tasks:
            with server:  # closed before the clients' ends are awaited: nobody new is let in
                lacking = False
                while True:
                    await _readable(server)
                    try:
                        client, _ = server.accept()
                    except BlockingIOError:  # the client has gone again
                        continue
                    except OSError as error:  # out of file descriptors, most likely: the others go on
                        if not lacking:  # once until a client is accepted again
                            log.warning("sessions.not_accepted", error=error)
                        lacking = True
                        await self._services.clock.sleep(ACCEPT_PAUSE_SECONDS)
                        continue
                    lacking = False
                    client.setblocking(False)
                    serving = serve_client(client, self._services, self._live, self._version)
                    tasks.create_task(serving, name="sessions/client")


async def _readable(server: socket.socket) -> None:
    """Wait for a client. (``loop.sock_accept`` loses the one that it has when it is cancelled.)"""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(server, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(server)


async def serve_client(client: socket.socket, services: Services, live: LiveSessions, version: str) -> None:
    """Serve one client until it is gone; whatever goes wrong ends this connection alone."""
    try:
        reader, writer = await asyncio.open_unix_connection(sock=client)
    except OSError as error:
        log.warning("sessions.not_accepted", error=error)
        client.close()
        return
    except asyncio.CancelledError:
        client.close()
        raise
    connection = Connection(services, live, Peer(name="turnbridge", version=version), reader, writer)
    work = Isolated(connection.run(), "sessions/connection", services.deadlines.stop)
    ended = await work.ended()
    if ended is not None:
        log.warning("sessions.connection_ended", error=ended)
