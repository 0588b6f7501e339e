"""Switching accounts on and off, and signing them out: ``channel_set`` and ``channel_logout``.

One such change at a time; whoever only asks for the status waits for none of them.
"""

from __future__ import annotations

import asyncio
import os.path
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridge import registry
from bridge.accounts import is_signed_in
from bridge.config import load
from bridge.credentials import remove
from bridge.editing import remove_account, set_keys
from bridge.errors import BridgeError
from bridge.ids import AccountId
from bridge.paths import Home, plain_name
from bridge.protocol import commands, ours
from bridge.relay.asked import remove_copies
from bridge.relay.outbox import copies_of
from bridge.sessions.contract import ControlError
from bridge.store.contract import Forget, Store
from bridge.supervisor import Supervisor
from bridge.tables import validate

LOGGED_OUT = {
    "enabled": False,
    "remote_tools": "none",
    "senders": "owner",
}  # so a later login inherits nothing


class Switches:
    """Changes settings, credentials and state.

    ``reconcile`` makes the accounts as the settings say, and tries the one that it is given again if it is
    parked: no other is touched.

    A command raises ControlError when it was not done, or not wholly: doing it again goes on from there.
    """

    def __init__(
        self,
        home: Home,
        supervisor: Supervisor,
        store: Store,
        reconcile: Callable[[AccountId], Awaitable[object]],
    ) -> None:
        self._home, self._supervisor, self._store = home, supervisor, store
        self._reconcile = reconcile
        self._changing = asyncio.Lock()

    async def set(self, command: ours.ChannelSet) -> None:
        """Write what ``command`` says into the account's table, and make the account so."""
        async with self._changing:
            try:
                keys = await asyncio.to_thread(self._keys, command)
                await self._edit(command.channel, command.account, keys)
                await self._reconcile(AccountId(f"{command.channel}:{command.account}"))
            except ControlError:
                raise
            except BridgeError as error:
                raise ControlError("component_error", str(error)) from error

    async def own(self, account: AccountId, owner: str) -> None:
        """Write down who owns the account, and make it so.

        Raises:
            BridgeError: it could not be written, or the account does not run any more, or with such an owner.
        """
        async with self._changing:
            if self._supervisor.component(account) is None:
                raise BridgeError(f"{account} does not run any more: look at the status")
            channel, _, name = account.partition(":")
            await asyncio.to_thread(self._check, channel, name, {"owner": owner})
            await self._edit(channel, name, {"owner": owner})
            await self._reconcile(account)

    async def logout(self, command: commands.ChannelLogout) -> None:
        """Stop the account, then remove its credentials, its state and its table, in this order.

        The platform is told nothing. What is not there is removed already.
        """
        async with self._changing:
            try:
                await self._stop(command.channel, command.account)
                await self._remove(command.channel, command.account)
                await self._reconcile(AccountId(f"{command.channel}:{command.account}"))
            except BridgeError as error:
                raise ControlError("component_error", str(error)) from error

    # --- setting ----------------------------------------------------------------------------------

    def _keys(self, command: ours.ChannelSet) -> dict[str, Any]:
        """What to write. Blocking.

        Raises:
            BridgeError: there is no such account, or it cannot be set so.
        """
        channel, account = command.channel, plain_name(command.account)
        spec = registry.channels().load(channel)
        table = load(self._home.config).channels.get(channel, {}).get(account)
        is_ready = is_signed_in(self._home, spec, account, table or {})
        if not is_ready and (command.enabled or table is None):
            login = f"turnbridge channels login {channel}:{account}"
            raise ControlError("unknown_account", f"{channel}:{account} is not signed in: {login}")
        keys: dict[str, Any] = {"enabled": command.enabled}
        if command.workspace is not None:
            keys["workspace"] = _directory(command.workspace)
        if command.remote_tools is not None:
            keys["remote_tools"] = command.remote_tools.value
        if command.senders is not None and not _is_kept(command.senders, table or {}):
            keys["senders"] = command.senders.value
        defaults = {name: field.default for name, field in spec.settings.model_fields.items()}
        written = {key: None if value == defaults[key] else value for key, value in keys.items()}
        return written if table is not None else written | {"enabled": command.enabled}  # so there is a table

    def _check(self, channel: str, account: str, keys: dict[str, Any]) -> None:
        """Raises BridgeError when the account could not run with ``keys``. Blocking."""
        table = load(self._home.config).channels.get(channel, {}).get(account, {})
        own = {key: value for key, value in table.items() if key != "credentials"}
        spec = registry.channels().load(channel)
        validate(spec.settings, own | keys, self._home.config, f"channels.{channel}.{account}")

    async def _edit(self, channel: str, account: str, keys: dict[str, Any]) -> None:
        await asyncio.to_thread(set_keys, self._home.config, channel, account, keys)

    # --- signing out ------------------------------------------------------------------------------

    async def _stop(self, channel: str, account: str) -> None:
        """Switch it off durably, and return once nothing of it runs.

        Raises:
            BridgeError: the settings cannot be changed, or it does not stop.
        """
        config = await asyncio.to_thread(load, self._home.config)
        if account in config.channels.get(channel, {}):
            await self._edit(channel, account, LOGGED_OUT)
        await self._reconcile(AccountId(f"{channel}:{account}"))
        if self._supervisor.component(f"{channel}:{account}") is not None:
            raise BridgeError("it is switched off, but did not stop: restart the daemon, then log out again")

    async def _remove(self, channel: str, account: str) -> None:
        await asyncio.to_thread(remove, self._home, channel, account)
        id_, after = AccountId(f"{channel}:{account}"), 0
        while True:
            forgotten = await self._store.do(Forget(id_, after))
            await remove_copies(copies_of(forgotten.copies), self._home.outbox)
            if forgotten.after is None:
                break
            after = forgotten.after
        await asyncio.to_thread(_remove_folder, self._home.inbox(channel, account, "any").parent)
        await asyncio.to_thread(remove_account, self._home.config, channel, account)


def _directory(workspace: str) -> str:
    """Raises BridgeError when it is no directory that can be named from anywhere."""
    path = Path(workspace)
    if not path.is_absolute() or not os.path.isdir(path):
        raise BridgeError("the workspace must be an existing directory, by its absolute path")
    return str(path.resolve())


def _is_kept(senders: ours.Senders, table: dict[str, Any]) -> bool:
    """A list can be kept, and is edited in the settings.

    Raises:
        BridgeError: there is none.
    """
    if senders is not ours.Senders.LIST:
        return False
    if not isinstance(table.get("senders"), list):
        raise BridgeError("a list of senders is written into the settings: set senders there, then reload")
    return True


def _remove_folder(path: Path) -> None:
    """Raises BridgeError when something stays."""
    with suppress(FileNotFoundError):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise BridgeError(f"cannot remove {path}: {error.strerror}") from error
