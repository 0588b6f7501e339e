"""Our own server as a target: in this process, under a clock that the rules move.

``python -m tests.conformance.server --socket PATH [--variant NAME]`` serves it, or a broken variant of it, for
others to look at.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from bridge.agents.echo import Echo
from bridge.channel.testing.clock import FakeClock, settle
from bridge.clock import Clock
from bridge.config import SessionsTable
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.protocol import commands
from bridge.protocol import ours as ours_protocol
from bridge.protocol.shared import ComponentState
from bridge.sessions.contract import ControlError, Deadlines, Services
from bridge.sessions.server import SessionServer
from bridge.store.sqlite import open_store
from bridge.store.step import Store
from bridge.store.workers import InlineWorker
from bridge.tools.choose import tools_for
from tests.conformance.client import READ_LIMIT, Client
from tests.conformance.rules import Need
from tests.conformance.target import Target

VERSION, STATE = "0.0", ComponentState.CONNECTED
DEADLINES = Deadlines(reply=0.2, turn=0.2, writer=0.2, stop=0.5)
ABILITIES = frozenset(need for need in Need if need is not Need.STDIO)


class Ours(Target):
    """A server that lives and dies with this process, which answers at once or never."""

    abilities = ABILITIES
    reply_seconds, stop_seconds = DEADLINES.reply, DEADLINES.stop

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
        assert self.home
        db = Home(self.home).db
        kept = {path: path.read_bytes() for path in db.parent.glob(f"{db.name}*") if path.suffix != ".db-shm"}
        await self.stop()
        for path in db.parent.glob(f"{db.name}*"):
            path.unlink()
        for path, data in kept.items():
            path.write_bytes(data)

    async def starts(self, prepare: Callable[[Path], None] | None = None) -> bool:
        assert self.home
        path = self.socket
        if prepare:
            path = Path(tempfile.mkdtemp(prefix="more-", dir=self._folder)) / "state" / "server.sock"
            prepare(path)
        async with open_store(self._folder / "more.db", workers=InlineWorker) as store:
            services = _services(self.home, self._clock, self._table, store)
            started = False
            try:
                async with _running(SessionServer(path, services, VERSION)):
                    started = True
            except* ConfigError:
                pass
        return started


@asynccontextmanager
async def ours(settings: Mapping[str, Any] | None = None, patience_seconds: float = 20.0) -> AsyncIterator[Ours]:
    """A running server in a folder of its own. The folder's path is short, as sockets want it."""
    with tempfile.TemporaryDirectory(prefix="tb-") as made:
        target = Ours(Path(made).resolve(), settings or {}, patience_seconds)
        try:
            await target.start()
            yield target
        finally:
            await target.close()


@asynccontextmanager
async def serving(home: Path, clock: Clock, table: SessionsTable, user: Path | None = None) -> AsyncIterator[None]:
    """Serve on the socket of ``home``, whose store goes on where it was. ``user`` is whose credentials are safe."""
    Home(home).private_dir(Home(home).state)
    async with open_store(Home(home).db, workers=InlineWorker) as store:
        services = _services(home, clock, table, store, user)
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


def _services(
    home: Path, clock: Clock, table: SessionsTable, store: Store, user: Path | None = None
) -> Services:
    return Services(
        agent=Echo(clock),
        tools=partial(_tools, home, clock, user),
        store=store,
        clock=clock,
        control=Daemon(),
        table=table,
        deadlines=DEADLINES,
    )


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
