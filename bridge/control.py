"""``daemon.control``: what the command line and other clients ask of the daemon itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, assert_never, runtime_checkable

from bridge.clock import from_unix_ms
from bridge.errors import BridgeError
from bridge.health import Health, Snapshot, to_wire
from bridge.letters import Letters
from bridge.logs import get_logger
from bridge.owners import Owners
from bridge.protocol import commands, ours
from bridge.sessions.contract import ControlError, unknown_account
from bridge.store.contract import CountsOf, IdentityOf, Store
from bridge.supervisor import Supervisor
from bridge.switching import Switches
from bridge.usage import Usages

MEASURE_SECONDS = 2.0  # a slow store delays no status: what was measured last is shown instead
MAX_FILES = 16
MAX_ID_CHARACTERS = 512  # of a recipient; no platform has longer ids

log = get_logger(__name__)


@runtime_checkable
class Posts(Protocol):
    """An account that takes unprompted messages."""

    async def send(self, to: str, text: str, files: Sequence[Path]) -> None:
        """Put a message into the outbox.

        Raises:
            BridgeError: it was not stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class OnDisk:
    """What of the settings on disk is not in effect.

    ``error``: why they cannot be read, "" when they can; ``waiting``: tables that wait for a restart.
    """

    error: str = ""
    waiting: tuple[str, ...] = ()


class Control:
    """Answers commands.

    ``reload`` reads the settings again, makes the accounts as they say, and returns the names of changed
    tables that take effect at the next start only. ``on_disk`` tells how it stood when they were read last,
    and ``mcp`` how the servers of tools are.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        store: Store,
        letters: Letters,
        switches: Switches,
        owners: Owners,
        usages: Usages,
        reload: Callable[[], Awaitable[Sequence[str]]],
        on_disk: Callable[[], OnDisk],
        version: str,
        mcp: Callable[[], Sequence[ours.McpServer]] = tuple,
    ) -> None:
        self._supervisor, self._store = supervisor, store
        self._letters, self._switches, self._owners, self._usages = letters, switches, owners, usages
        self._reload, self._on_disk, self._version, self._mcp = reload, on_disk, version, mcp

    async def handle(self, command: ours.Command) -> ours.DaemonStatus:
        """Do ``command`` and tell the state after it.

        Raises:
            ControlError: it was not done.
        """
        asked: Mapping[str, object] = {}  # what the status tells with it
        match command:
            case commands.Status() | ours.McpList():
                asked = {"mcp": tuple(self._mcp())} if isinstance(command, ours.McpList) else {}
            case commands.Reload():
                asked = {"reloaded": await self._reloaded()}
            case ours.ChannelSet():
                await self._switches.set(command)
            case commands.ChannelLogout():
                await self._switches.logout(command)
            case ours.Send():
                await self._send(command)
            case ours.DeadList() | ours.DeadShow() | ours.DeadRetry() | ours.DeadPrune():
                asked = {"dead": await self._letters.handle(command)}
            case ours.UsageList():
                asked = {"usage": await self._usages.handle(command)}
            case ours.Pair() | ours.PairState() | ours.Confirm() | ours.QuestionState():
                asked = await self._owners.handle(command)
            case commands.Delegations() | commands.DelegationKill() | commands.RestartWhenIdle():
                raise _not_here(command)
            case _:
                assert_never(command)
        return (await self.status()).model_copy(update=asked)

    async def status(self) -> ours.DaemonStatus:
        """The snapshot of now: states as they stand, figures measured where the store is quick enough."""
        components = tuple(to_wire(snapshot) for snapshot in await self.measured())
        on_disk = self._on_disk()
        return ours.DaemonStatus(
            version=self._version,
            pid=os.getpid(),
            components=components,
            settings_error=on_disk.error or None,
            waits_for_restart=on_disk.waiting,
        )

    async def measured(self) -> list[Snapshot]:
        """Every account's, with its figures of now, or the last ones where the store is slow."""
        healths = self._supervisor.healths()
        try:
            async with asyncio.timeout(MEASURE_SECONDS):
                for health in healths:
                    await self._measure(health)
        except (TimeoutError, BridgeError) as error:
            log.warning("status.not_measured", error=error)
        return self._supervisor.snapshots()

    async def _measure(self, health: Health) -> None:
        account = health.snapshot.id
        counts = await self._store.get(CountsOf(account))
        oldest = from_unix_ms(counts.oldest_ms) if counts.oldest_ms else None
        health.measured(counts.waiting + counts.open_parts, oldest, counts.dead)
        identity = await self._store.get(IdentityOf(account))
        if identity is not None:
            health.known(bot_id=identity.bot_id)

    async def _reloaded(self) -> ours.Reloaded:
        before = self._supervisor.healths()
        ran = {health.snapshot.id for health in before if health.snapshot.enabled}
        try:
            waiting = await self._reload()
        except BridgeError as error:
            raise ControlError("component_error", str(error)) from error
        if waiting:
            tables = ", ".join(f"[{table}]" for table in waiting)
            raise ControlError(
                "component_error",
                f"the accounts are as the settings say, but what changed in {tables} "
                "takes effect at the next start only: restart the daemon",
            )
        runs = {
            health.snapshot.id: health for health in self._supervisor.healths() if health.snapshot.enabled
        }
        begun = {id_ for id_, health in runs.items() if health not in before}
        return ours.Reloaded(
            started=tuple(sorted(begun - ran)),
            anew=tuple(sorted(begun & ran)),
            stopped=tuple(sorted(ran - runs.keys())),
        )

    async def _send(self, command: ours.Send) -> None:
        account = self._supervisor.component(command.account)
        if not any(one.id == command.account for one in self._supervisor.snapshots()):
            raise unknown_account(command.account)
        if not isinstance(account, Posts):
            raise ControlError("component_error", f"{command.account} is not running: look at the status")
        if not command.to.strip() or not command.to.isprintable() or len(command.to) > MAX_ID_CHARACTERS:
            raise ControlError("component_error", "that is no recipient's id: give the platform's")
        if not command.text.strip() and not command.files:
            raise ControlError("component_error", "there is nothing to send: give a text or a file")
        files = [Path(file) for file in command.files]
        if len(files) > MAX_FILES or not all(map(_is_path, command.files)):
            raise ControlError("component_error", f"give up to {MAX_FILES} files by their absolute paths")
        try:
            await account.send(command.to, command.text, files)
        except BridgeError as error:
            raise ControlError("component_error", str(error)) from error


def _not_here(
    command: commands.Delegations | commands.DelegationKill | commands.RestartWhenIdle,
) -> ControlError:
    if isinstance(command, commands.RestartWhenIdle):
        return ControlError("restart_error", "restart it with the service manager that runs it")
    return ControlError("delegation_error", "this agent delegates nothing")


def _is_path(file: str) -> bool:
    return os.path.isabs(file) and "\0" not in file
