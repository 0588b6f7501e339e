"""One server of tools: connected in the background, kept connected, and never said to be what it is not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.clock import Clock
from bridge.config import McpTable
from bridge.errors import BridgeError, ConfigError
from bridge.logs import get_logger
from bridge.retry import Backoff, Randomness
from bridge.supervisor import PARKED_SECONDS, isolated
from bridge.tools.contract import CallPlace, ToolResult
from bridge.tools.mcp.access import Access
from bridge.tools.mcp.catalog import Catalog, Listed, Offered, catalog
from bridge.tools.mcp.errors import RefusedError, ServerError

if TYPE_CHECKING:
    from bridge.tools.mcp.connection import Connection

STOP_SECONDS = 3.0
LOOK_SECONDS = 60.0  # between two looks whether it is still there, and has the same tools
SETTLE_SECONDS = 0.5  # what changes, often changes more than once
PROVEN_SECONDS = 60.0  # of connection, after which the waits begin anew
INSTALL = "the library for it is not installed: run pip install '.[llm]' in a clone"

log = get_logger(__name__)


class State(StrEnum):
    STARTING = "starting"
    CONNECTED = "connected"
    BACKOFF = "backoff"  # it is tried again
    FAILED = "failed"  # the operator must act; what refuses us is tried again, after long waits
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Status:
    """How the server is. ``catalog`` is the last known one; ``says`` is what it says that it is."""

    name: str
    kind: str  # stdio, http
    state: State
    since: datetime
    reason: str = ""
    next_try: datetime | None = None
    says: str = ""
    catalog: Catalog = field(default_factory=Catalog)


class Server:
    """``access`` may be what is wrong with it. ``told`` hears of each change."""

    def __init__(
        self,
        name: str,
        table: McpTable,
        access: Access | BridgeError,
        roots: Path,
        clock: Clock,
        rng: Randomness | None = None,
        told: Callable[[Status], None] = lambda _: None,
    ) -> None:
        self._told = told
        self._table, self._access, self._roots = table, access, roots
        self._clock, self._rng = clock, rng or random.SystemRandom()
        self._connection: Connection | None = None
        self._calls = 0
        self._listed: list[Listed] | None = None
        self.said: Sequence[str] = ()  # its last lines of standard error
        self._wake = asyncio.Event()
        first = State.STARTING if table.enabled else State.DISABLED
        self.status = Status(name, "http" if table.url else "stdio", first, clock.now())

    def _change(self, **changes: Any) -> None:
        self.status = replace(self.status, **changes)
        self._told(self.status)

    @property
    def name(self) -> str:
        return self.status.name

    async def run(self) -> None:
        """Keep it connected, until cancelled, or until the operator must act."""
        if not self._table.enabled:
            return
        waits = Backoff(self._clock, self._rng, floor_seconds=1.0)
        parked = Backoff(self._clock, self._rng, bounds=PARKED_SECONDS, floor_seconds=PARKED_SECONDS[0])
        while True:
            began = self._clock.monotonic()
            error = await self._once()
            if isinstance(error, ConfigError):
                self._tell(State.FAILED, str(error))
                return
            if self._clock.monotonic() - began >= PROVEN_SECONDS:
                waits.reset()
                parked.reset()
            refused = isinstance(error, RefusedError)
            seconds = (parked if refused else waits).next_seconds()
            self._tell(State.FAILED if refused else State.BACKOFF, str(error), seconds)
            await self._clock.sleep(seconds)
            self._change(next_try=None)

    async def _once(self) -> BridgeError:
        """One connection, from its beginning to its end, and what ended it."""
        if isinstance(self._access, BridgeError):
            return self._access
        try:
            module = await asyncio.to_thread(import_module, "bridge.tools.mcp.connection")
        except ImportError:
            return ConfigError(INSTALL)
        self._wake = asyncio.Event()
        connection: Connection = module.Connection(
            self._access, self._table, self._roots, self._clock, self._wake
        )
        self.said = connection.said
        try:
            error = await isolated(self._connected(connection), f"mcp/{self.name}", STOP_SECONDS)
        finally:
            self._connection = None
        return connection.explained(error)

    async def _connected(self, connection: Connection) -> None:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._table.start_seconds):
                await stack.enter_async_context(connection.opened())
                listed = await connection.listed()
            self._connection = connection
            self._take(listed)
            self._tell(State.CONNECTED, says=connection.server)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            tasks.create_task(self._tick(self._wake))
            while True:
                await self._wake.wait()
                await self._clock.sleep(SETTLE_SECONDS)
                self._wake.clear()
                if connection.broken:
                    raise ServerError(connection.broken)
                self._take(await connection.listed())

    async def _tick(self, wake: asyncio.Event) -> None:
        """Look now and then, unless it is at work: then its calls' own limits tell."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            if not self._calls:
                wake.set()

    def _take(self, listed: list[Listed]) -> None:
        if listed == self._listed:  # the tools stay the same objects
            return
        self._listed = listed
        found = catalog(self.name, self._table, listed)
        self._change(catalog=found)
        log.info("mcp.tools", server=self.name, tools_count=len(found.tools), left_out=len(found.notes))

    def _tell(
        self, state: State, reason: str = "", next_seconds: float | None = None, says: str = ""
    ) -> None:
        now, before = self._clock.now(), self.status
        due = None if next_seconds is None else now + timedelta(seconds=next_seconds)
        is_new = (before.state, before.reason) != (state, reason)
        since = now if is_new else before.since
        self._change(state=state, reason=reason, since=since, next_try=due, says=says)
        if is_new:
            tell = log.info if state is State.CONNECTED else log.warning
            tell("mcp.changed", server=self.name, state=state.value, reason=reason)

    # --- calls ------------------------------------------------------------------------------------

    async def call(self, tool: Offered, arguments: dict[str, Any], place: CallPlace) -> ToolResult:
        """Call it; that the server is gone, or does not answer, is a result, too."""
        connection = self._connection
        if connection is None:
            why = self.status.reason or "it is being started"
            return ToolResult(False, f"The server {self.name} of this tool is not there now: {why}.")
        from bridge.tools.mcp import results
        from bridge.tools.mcp.connection import CallError

        async def show(progress: float, total: float | None, message: str | None) -> None:
            await place.progress(shown(progress, total, message))

        self._calls += 1
        try:
            answer = await connection.call(tool.own, arguments, show)
        except CallError as error:
            return ToolResult(False, f"The server {self.name}: {error}")
        finally:
            self._calls -= 1
        return await results.in_thread(answer, self.name, place.cwd)


def shown(progress: float, total: float | None, message: str | None) -> str:
    """A line that tells how far a call has come."""
    far = f"{progress:g} of {total:g}" if total else f"{progress:g}"
    return f"{message} ({far})" if message else far
