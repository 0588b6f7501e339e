"""Servers that were not made here: one on a Unix socket, or a command that speaks on its standard input
and output."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.conformance.client import READ_LIMIT, Client
from tests.conformance.faults import BrokenError
from tests.conformance.rules import Need
from tests.conformance.target import Target

EXIT_SECONDS = 10.0


class Remote(Target):
    """Rules share the server; each has connections and a workspace of its own."""

    def __init__(self, workspace: Path, patience_seconds: float) -> None:
        self.workspace, self.patience_seconds = workspace, patience_seconds
        self.abilities = frozenset()
        self._clients: list[Client] = []

    async def probe(self) -> None:
        """Find out whether the echo agent answers here. Raises OSError where nobody is there."""
        client = await self.connect()
        with suppress(BrokenError):  # the rules will tell
            await client.initialize()
            if (await client.start()).get("model") == "echo":
                self.abilities |= {Need.ECHO}
        await self.close()

    async def close(self) -> None:
        clients, self._clients = self._clients, []
        for client in clients:
            client.abort()


class SocketServer(Remote):
    def __init__(self, path: Path, workspace: Path, patience_seconds: float) -> None:
        super().__init__(workspace, patience_seconds)
        self._path = path
        self.abilities = frozenset({Need.SHARED, Need.DAEMON, Need.FILES})

    @property
    def socket(self) -> Path:
        return self._path

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_unix_connection(self._path, limit=READ_LIMIT)
        client = Client(self, reader, writer, writer.transport)  # type: ignore[arg-type]  # it reads, too
        self._clients.append(client)
        return client


class CommandServer(Remote):
    """Each connection is a process of its own, so that what needs two of them at a time is not shown."""

    def __init__(self, command: Sequence[str], workspace: Path, patience_seconds: float) -> None:
        super().__init__(workspace, patience_seconds)
        self._command = command
        self.abilities = frozenset({Need.STDIO})
        self._processes: dict[Client, Process] = {}

    async def connect(self) -> Client:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=READ_LIMIT, loop=loop),
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=None,
        )
        process = Process(transport, protocol, loop)
        assert process.stdin
        assert process.stdout
        reading = transport.get_pipe_transport(1)
        assert isinstance(reading, asyncio.ReadTransport)
        client = Client(self, process.stdout, process.stdin, reading)
        self._clients.append(client)
        self._processes[client] = process
        return client

    async def exit_code(self, client: Client) -> int:
        try:
            async with asyncio.timeout(self.patience_seconds):
                return await self._processes[client].wait()
        except TimeoutError:
            raise BrokenError("the server does not end") from None

    async def close(self) -> None:
        await super().close()
        processes, self._processes = self._processes, {}
        for process in processes.values():
            try:
                async with asyncio.timeout(EXIT_SECONDS):
                    await process.wait()
            except TimeoutError:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
