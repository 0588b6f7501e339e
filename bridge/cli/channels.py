"""``turnbridge channels``: accounts listed, signed in and out, switched on and off, and set."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

from bridge.cli import login
from bridge.cli.account import NotRunningError, add_account, named, not_running, of_status, taken_up, tell
from bridge.cli.common import add_home, ask_daemon, home, typed, visible
from bridge.cli.status import table
from bridge.errors import BridgeError, ConfigError

if TYPE_CHECKING:
    from bridge.accounts import AccountSetup, BrokenAccount
    from bridge.cli.common import Commands
    from bridge.paths import Home

HEAD = ("ACCOUNT", "STATE", "SENDERS", "TOOLS", "OWNER")


def register(commands: Commands) -> None:
    parser = commands.add_parser("channels", help="list, sign in and out, switch and set accounts")
    add_home(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="show all accounts, and what is installed")
    listing.add_argument("--json", action="store_true", help="print them as JSON")
    listing.set_defaults(run=show)
    login.register(actions)
    out = actions.add_parser("logout", help="stop an account; remove its secrets, settings, stored messages")
    on = actions.add_parser("enable", help="switch an account on")
    off = actions.add_parser("disable", help="switch an account off, and keep all that it has")
    setting = actions.add_parser("set", help="change settings of an account")
    for action, does in ((out, logout), (on, enable), (off, disable), (setting, change)):
        add_account(action)
        action.set_defaults(run=does)
    setting.add_argument(
        "settings", metavar="KEY=VALUE", nargs="+", help="a setting, such as senders=anyone; KEY= unsets it"
    )
    for action in (listing, out, on, off, setting):
        add_home(action, is_action=True)


# --- list -----------------------------------------------------------------------------------------


def show(args: argparse.Namespace) -> int:
    """All accounts of the settings with their states, where a daemon runs."""
    from bridge import registry
    from bridge.accounts import accounts
    from bridge.config import load

    where, channels = home(args), registry.channels()
    found = accounts(load(where.config), where, channels, os.environ) if where.config.exists() else []
    rows = [_row(account, _status(where)) for account in found]
    if args.json:
        print(json.dumps({"accounts": rows, "channels": channels.names()}, ensure_ascii=False))
        return 0
    if rows:
        cells = [tuple(visible(str(row[key.lower()] or "-")) for key in HEAD) for row in rows]
        print("\n".join(table([HEAD, *cells])))
    installed = ", ".join(channels.names())
    print(f"Installed channels: {installed}. To add an account: {typed(where, 'channels login CHANNEL')}")
    return 0


def _daemon(where: Home) -> dict[str, Any]:
    return ask_daemon(where, {"action": "status"})


def _status(where: Home) -> dict[str, Any] | None:
    try:
        return _daemon(where)
    except NotRunningError:
        return None


def _row(account: AccountSetup | BrokenAccount, status: dict[str, Any] | None) -> dict[str, Any]:
    from bridge.accounts import BrokenAccount

    row: dict[str, Any] = {"account": account.id, "state": _state(account, status)}
    if isinstance(account, BrokenAccount):
        return row | {"senders": "", "tools": "", "owner": "", "reasons": list(account.reasons)}
    senders = account.settings.senders
    listed = senders if isinstance(senders, str) else f"list of {len(senders)}"
    tools = str(account.settings.remote_tools)
    return row | {"senders": listed, "tools": tools, "owner": account.settings.owner}


def _state(account: AccountSetup | BrokenAccount, status: dict[str, Any] | None) -> str:
    from bridge.accounts import BrokenAccount

    if status is not None and (found := of_status(status, account.id)) is not None:
        return str(found["state"])
    if not account.enabled:
        return "disabled"
    return "broken" if isinstance(account, BrokenAccount) else "not running"


# --- switching ------------------------------------------------------------------------------------


def enable(args: argparse.Namespace) -> int:
    """Exit 0 when it is connected, or when no daemon runs; 1 when it is switched on and does not work."""
    return _switched(args, is_on=True)


def disable(args: argparse.Namespace) -> int:
    return _switched(args, is_on=False)


def _switched(args: argparse.Namespace, *, is_on: bool) -> int:
    where = home(args)
    channel, account = named(args)
    try:
        found = taken_up(where, channel, account, enabled=is_on)
    except NotRunningError:
        _write_switch(where, channel, account, is_on=is_on)
        not_running(where, f"{channel}:{account} is switched {'on' if is_on else 'off'}")
        return 0
    if found is None:
        raise BridgeError(f"{channel}:{account} is gone: somebody else changed the settings meanwhile")
    return tell(where, found)


def _write_switch(where: Home, channel: str, account: str, *, is_on: bool) -> None:
    from bridge import registry
    from bridge.accounts import is_signed_in
    from bridge.config import load
    from bridge.editing import set_keys

    spec, own = registry.channels().load(channel), load(where.config).channels.get(channel, {}).get(account)
    if (is_on or own is None) and not is_signed_in(where, spec, account, own or {}):
        again = typed(where, f"channels login {channel}:{account}")
        raise ConfigError(f"{channel}:{account} is not signed in: {again}")
    set_keys(where.config, channel, account, {"enabled": is_on})


def logout(args: argparse.Namespace) -> int:
    """Exit 0 when nothing of the account is left, 3 when no daemon runs, which has to do it."""
    channel, account = named(args)
    where, id_ = home(args), f"{channel}:{account}"
    is_known = where.credentials(channel, account).exists() or of_status(_daemon(where), id_) is not None
    ask_daemon(where, {"action": "channel_logout", "channel": channel, "account": account})
    if not is_known:
        print(
            f"there is no account {id_}, and nothing is left of one: see all with: {typed(where, 'status')}"
        )
        return 0
    print(f"{id_} is signed out: its secrets, settings and stored messages are gone.")
    print("Its platform was told nothing: revoke its secrets there if nobody is to use them any more.")
    return 0


# --- setting --------------------------------------------------------------------------------------


def change(args: argparse.Namespace) -> int:
    """Exit 0 when it is written and, where a daemon runs, in effect; 2 when a setting is wrong."""
    from bridge.editing import set_keys
    from bridge.setting_words import checked

    where = home(args)
    channel, account = named(args)
    keys, is_on = checked(where, channel, account, args.settings)
    set_keys(where.config, channel, account, keys)
    try:
        found = taken_up(where, channel, account, enabled=is_on)
    except NotRunningError:
        not_running(where, f"{channel}:{account} is set")
        return 0
    if found is None:
        raise BridgeError(f"{channel}:{account} is gone: somebody else changed the settings meanwhile")
    return tell(where, found, wants_tools=keys.get("remote_tools") == "owner")
