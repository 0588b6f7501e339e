"""Our own server as a target: in this process, under a clock that the rules move.

``python -m tests.conformance.server --home FOLDER [--variant NAME]`` serves it, or a broken variant of it, on
the socket of that folder until it is stopped, for ``python -m tests.conformance --socket`` to look at. With
``--stdio`` it serves one client on standard input and output instead.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bridge.agents.echo import Echo
from bridge.channel.testing.clock import FakeClock, settle
from bridge.clock import Clock, SystemClock
from bridge.config import SessionsTable
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.protocol import commands
from bridge.protocol import ours as ours_protocol
from bridge.protocol.shared import ComponentState
from bridge.sessions import stdio
from bridge.sessions.contract import ControlError, Deadlines, Services
from bridge.sessions.server import SessionServer
from bridge.store.sqlite import open_store
from bridge.store.step import Store
from bridge.store.workers import InlineWorker
from bridge.tools.choose import tools_for
from tests.conformance.client import READ_LIMIT, Client
from tests.conformance.rules import Need, Rule
from tests.conformance.target import Target
from tests.sessions.wire import agents_of

VERSION, STATE = "0.0", ComponentState.CONNECTED
DEADLINES = Deadlines(reply=0.2, turn=0.2, writer=0.2, stop=0.5)
STDIO_SECONDS = 0.02  # its bytes pass through threads
ABILITIES = frozenset(need for need in Need if need is not Need.STDIO)


class Ours(Target):
    """A server that lives and dies with this process, which answers at once or never."""

    abilities = ABILITIES
    reply_seconds, stop_seconds = DEADLINES.reply, DEADLINES.stop

    home: Path

    def __init__(self, folder: Path, settings: Mapping[str, Any], patience_seconds: float) -> None:
        self.patience_seconds = patience_seconds
        self.home, self.user = folder / "home", folder / "user"
        self.workspace = folder / "work"
        for made in (self.home, self.user, self.workspace):
            made.mkdir(mode=0o700)
        self._folder, self._table = folder, SessionsTable(**settings)
        self._clock = FakeClock()
        self._clients: list[Client] = []
        self._running: AsyncExitStack | None = None

    @property
    def socket(self) -> Path:
        return Home(self.home).socket

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_unix_connection(self.socket, limit=READ_LIMIT)
        self._clients.append(Client(self, reader, writer, writer.transport))  # type: ignore[arg-type]  # reads too
        return self._clients[-1]

    async def close(self) -> None:
        for client in self._clients:
            client.abort()
        await self.stop()
        await settle(20)  # what was dropped is closed

    async def settle(self) -> None:
        await settle(60)

    async def pass_time(self, seconds: float) -> None:
        await self._clock.advance(seconds)

    def now(self) -> float:
        return self._clock.monotonic()

    async def start(self) -> None:
        assert self._running is None
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(serving(self.home, self._clock, self._table, self.user))
            self._running = stack.pop_all()

    async def stop(self) -> None:
        running, self._running = self._running, None
        if running:
            await running.aclose()

    async def kill(self) -> None:
        """What is on the disk now is what the next server finds, whatever the end of this one writes."""
        db = Home(self.home).db
        kept = {path: path.read_bytes() for path in db.parent.glob(f"{db.name}*") if path.suffix != ".db-shm"}
        await self.stop()
        for path in db.parent.glob(f"{db.name}*"):
            path.unlink()
        for path, data in kept.items():
            path.write_bytes(data)

    async def starts(self, prepare: Callable[[Path], None] | None = None) -> bool:
        path = self.socket
        if prepare:
            path = Path(tempfile.mkdtemp(prefix="more-", dir=self._folder)) / "state" / "server.sock"
            prepare(path)
        async with open_store(self._folder / "more.db", workers=InlineWorker) as store:
            services = services_of(self.home, self._clock, self._table, store)
            started = False
            try:
                async with _running(SessionServer(path, services, VERSION)):
                    started = True
            except* ConfigError:
                pass
        return started


class OursOnStdio(Target):
    """The server that speaks to one client over two descriptors, here one end of a pair of sockets."""

    abilities = frozenset({Need.STDIO, Need.ECHO})

    def __init__(self, folder: Path, settings: Mapping[str, Any], patience_seconds: float) -> None:
        self.patience_seconds = patience_seconds
        self.workspace = folder / "work"
        self.workspace.mkdir()
        self._home, self._table = folder, SessionsTable(**settings)
        self._tasks = asyncio.TaskGroup()
        self._serving: dict[Client, asyncio.Task[int]] = {}

    async def start(self) -> None:
        await self._tasks.__aenter__()

    async def connect(self) -> Client:
        outer, inner = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=outer, limit=READ_LIMIT)
        client = Client(self, reader, writer, writer.transport)  # type: ignore[arg-type]  # it reads, too
        self._serving[client] = self._tasks.create_task(self._serve(inner))
        return client

    async def _serve(self, inner: socket.socket) -> int:
        with inner:
            try:
                await _on_stdio(self._home, FakeClock(), self._table, inner.fileno(), inner.fileno())
            except (RuntimeError, BaseExceptionGroup):
                return 1
            return 0

    async def exit_code(self, client: Client) -> int:
        done, _ = await asyncio.wait([self._serving[client]], timeout=self.patience_seconds)
        return done.pop().result() if done else -1

    async def close(self) -> None:
        for client in self._serving:
            client.abort()
        await self._tasks.__aexit__(None, None, None)

    async def settle(self) -> None:
        await asyncio.sleep(STDIO_SECONDS)


@asynccontextmanager
async def ours(rule: Rule, patience_seconds: float = 20.0) -> AsyncIterator[Target]:
    """A running server as ``rule`` needs it, in a folder of its own, short as a socket's path must be."""
    kind = OursOnStdio if Need.STDIO in rule.needs else Ours
    with tempfile.TemporaryDirectory(prefix="tb-") as made:
        target = kind(Path(made).resolve(), rule.settings, patience_seconds)
        try:
            await target.start()
            yield target
        finally:
            await target.close()


@asynccontextmanager
async def serving(
    home: Path,
    clock: Clock,
    table: SessionsTable,
    user: Path | None = None,
    deadlines: Deadlines | None = None,
) -> AsyncIterator[None]:
    """Serve on the socket of ``home``, whose store goes on where it was, for a user whose home is ``user``.

    ``deadlines`` are, by default, short ones.
    """
    Home(home).private_dir(Home(home).state)
    async with open_store(Home(home).db, workers=InlineWorker) as store:
        services = services_of(home, clock, table, store, user)
        services = replace(services, deadlines=deadlines or services.deadlines)
        async with _running(SessionServer(Home(home).socket, services, VERSION)):
            yield


class Daemon:
    """A daemon with one account, which can tell its status and do nothing."""

    async def handle(self, command: ours_protocol.Command) -> ours_protocol.DaemonStatus:
        match command:
            case commands.Status() | commands.Reload():
                account = ours_protocol.ComponentHealth(
                    id="feishu:demo", channel="feishu", account="demo", enabled=True, state=STATE, restarts=0
                )
                return ours_protocol.DaemonStatus(version=VERSION, pid=os.getpid(), components=(account,))
            case commands.Delegations() | commands.DelegationKill():
                raise ControlError("delegation_error", "this server delegates nothing")
            case commands.RestartWhenIdle():
                raise ControlError("restart_error", "this server is not restarted")
        raise ControlError("component_error", "this server has no accounts to change")


def services_of(
    home: Path, clock: Clock, table: SessionsTable, store: Store, user: Path | None = None
) -> Services:
    tools = partial(_tools, home, clock, user)
    return Services(agents_of(Echo(clock)), tools, store, clock, Daemon(), table, DEADLINES)


async def _on_stdio(home: Path, clock: Clock, table: SessionsTable, source: int, sink: int) -> None:
    services = replace(services_of(home, clock, table, stdio.ForgetfulStore()), control=stdio.NoDaemon())
    never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    await stdio.serve_stdio(services, VERSION, source, sink, never)


def _tools(home: Path, clock: Clock, user: Path | None, no_tools: bool, channel: str) -> Any:
    """The product's tools, as they are for a user whose home is ``user``."""
    before = os.environ.get("HOME", "")
    try:
        os.environ["HOME"] = str(user or before)
        return tools_for(Home(home), clock, no_tools, channel)
    finally:
        os.environ["HOME"] = before


@asynccontextmanager
async def _running(server: SessionServer) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(server.run())
        ready = tasks.create_task(server.ready.wait())
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if task.done():
            return  # the group raises what ended it
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _serve(home: Path) -> None:
    async with serving(home.resolve(), SystemClock(), SessionsTable(), deadlines=Deadlines()):
        print(f"serving on {Home(home).socket}", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    from tests.conformance.variants import load

    parser = argparse.ArgumentParser(prog="python -m tests.conformance.server")
    parser.add_argument("--home", type=Path, required=True, metavar="FOLDER", help="where it keeps its state")
    parser.add_argument("--stdio", action="store_true", help="serve one client on standard input and output")
    parser.add_argument("--variant", choices=sorted(load()), metavar="NAME", help="in which way it is broken")
    options = parser.parse_args()
    options.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with load()[options.variant]() if options.variant else nullcontext(), suppress(KeyboardInterrupt):
        if options.stdio:
            asyncio.run(_on_stdio(options.home.resolve(), SystemClock(), SessionsTable(), 0, 1))
        else:
            asyncio.run(_serve(options.home))


if __name__ == "__main__":
    main()
