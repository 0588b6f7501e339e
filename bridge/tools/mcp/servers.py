"""All servers of tools that the settings name: each runs by itself, and none is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridge.clock import Clock, unix_seconds
from bridge.config import Config, McpTable
from bridge.errors import BridgeError
from bridge.paths import Home
from bridge.protocol import ours
from bridge.tools.contract import Tool
from bridge.tools.mcp.access import Access, access, passed
from bridge.tools.mcp.catalog import Catalog
from bridge.tools.mcp.server import Server, State, Status
from bridge.tools.mcp.text import line
from bridge.tools.mcp.tool import McpTool

TOLD_BYTES = 200

Key = tuple[McpTable, Access | str, Path]
"""What a server is made of; equal: nothing changed, and a running one is left alone."""


class Servers:
    """``want`` says which there shall be; ``run`` makes it so."""

    def __init__(self, home: Home, clock: Clock, environ: Mapping[str, str]) -> None:
        self._home, self._clock, self._environ = home, clock, environ
        self._wanted = Config()
        self._changed = asyncio.Event()
        self._servers: dict[str, Server] = {}
        self._keys: dict[str, Key] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._made: dict[str, tuple[Catalog, dict[str, Tool]]] = {}

    def want(self, config: Config) -> None:
        """Let there be the servers of ``config``, as soon as may be; what failed is tried again."""
        self._wanted = config
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        self._keys.clear()
        self._changed.set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self._apply(tasks, self._wanted)

    async def _apply(self, tasks: asyncio.TaskGroup, config: Config) -> None:
        found = await asyncio.to_thread(self._read, config)
        kept = {name for name, key in self._keys.items() if found.get(name, (None,))[0] == key}
        kept -= {name for name in kept if self._servers[name].status.state is State.FAILED}
        await self._stop([name for name in self._servers if name not in kept])
        for name, (key, how) in found.items():
            if name not in kept:
                server = Server(name, key[0], how, key[2], self._clock)
                self._servers[name], self._keys[name] = server, key
                self._tasks[name] = tasks.create_task(server.run(), name=f"mcp/{name}/run")
        self._servers = {name: self._servers[name] for name in found}  # in the settings' order

    async def _stop(self, names: list[str]) -> None:
        stopping = [task for name in names if (task := self._tasks.pop(name, None))]
        for task in stopping:
            task.cancel()
        if stopping:
            await asyncio.wait(stopping)
        for name in names:
            del self._servers[name]
            self._keys.pop(name, None)
            self._made.pop(name, None)

    def _read(self, config: Config) -> dict[str, tuple[Key, Access | BridgeError]]:
        workspace = workspace_of(self._home, config)
        return {name: self._one(name, table, workspace) for name, table in config.mcp.items()}

    def _one(self, name: str, table: McpTable, workspace: Path) -> tuple[Key, Access | BridgeError]:
        try:
            how = access(name, table, self._home, workspace, self._environ)
        except BridgeError as error:
            return (table, str(error), workspace), error
        return (table, how, workspace), how

    # --- what there is ----------------------------------------------------------------------------

    def statuses(self) -> list[Status]:
        """In the settings' order."""
        return [server.status for server in self._servers.values()]

    def told(self) -> list[ours.McpServer]:
        """The same, for whoever asks the daemon."""
        return [to_wire(status) for status in self.statuses()]

    def tools(self) -> Mapping[str, Tool]:
        """The tools that are known now, by name. One that stays as it was is the same object."""
        found: dict[str, Tool] = {}
        for name, server in self._servers.items():
            known = server.status.catalog
            made = self._made.get(name)
            if made is None or made[0] is not known:
                made = known, {one.name: McpTool(server, one) for one in known.tools}
                self._made[name] = made
            found |= made[1]
        return found

    def passed(self) -> list[dict[str, Any]]:
        """The servers that are switched on, in the form of ``session/new`` of the Agent Client Protocol."""
        known = [key[1] for key in self._keys.values() if isinstance(key[1], Access) and key[0].enabled]
        return [passed(one) for one in known]


def to_wire(status: Status) -> ours.McpServer:
    return ours.McpServer(
        name=status.name,
        kind=status.kind,
        state=status.state.value,
        since_unix_seconds=unix_seconds(status.since),
        reason=status.reason,
        next_try_unix_seconds=unix_seconds(status.next_try) if status.next_try else None,
        says=status.says,
        notes=status.catalog.notes,
        tools=tuple(
            ours.McpTool(
                name=one.name,
                own=line(one.own, TOLD_BYTES),
                risk=one.risk.value,
                description=line(one.description, TOLD_BYTES),
            )
            for one in status.catalog.tools
        ),
    )


def workspace_of(home: Home, config: Config) -> Path:
    """Where the daemon's own sessions work, and what servers are told of as their root."""
    if not config.daemon.workspace:
        return home.root / "workspace"
    found = Path(config.daemon.workspace)
    with suppress(OSError):
        return found.resolve()
    return found
