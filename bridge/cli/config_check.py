"""``turnbridge config check``: everything that is wrong with the settings, before a daemon finds out."""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from typing import TYPE_CHECKING

from bridge.cli.common import home
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bridge.accounts import AccountSetup
    from bridge.config import Config
    from bridge.paths import Home
    from bridge.profiles import Profiles


def run(args: argparse.Namespace) -> int:
    """Exit 0 when all is well, 2 when anything is wrong; each problem and each warning is a line."""
    where = home(args)
    wrong, odd = findings(where)
    odd += unmade_agents(where)
    if args.json:
        print(json.dumps({"wrong": wrong, "warnings": odd}, ensure_ascii=False))
        return 2 if wrong else 0
    for line in [*wrong, *(f"warning: {line}" for line in odd)]:
        print(line)
    if not wrong:
        print(f"{where.config}: good")
    return 2 if wrong else 0


def findings(where: Home) -> tuple[list[str], list[str]]:
    """What is wrong with the file, each account with its credentials and the agent; and what is odd."""
    from bridge import registry
    from bridge.accounts import AccountSetup, BrokenAccount, accounts, unused_credentials
    from bridge.config import load_all

    try:
        config, wrong = load_all(where.config)
    except ConfigError as error:
        return [str(error)], []
    channels = registry.channels()
    found = accounts(config, where, channels, os.environ)
    wrong += workspace_problems(config, where)
    wrong += [reason for account in found if isinstance(account, BrokenAccount) for reason in account.reasons]
    wrong += agent_problems(config, where)
    wrong += tool_problems(config, where)
    wrong += server_problems(config, where)
    ready = [account for account in found if isinstance(account, AccountSetup)]
    odd = [line for account in ready if (line := powerless(account, where))]
    odd += [line for account in ready for line in placeholders(account, where)]
    odd += unknown_accounts(config, where)
    if config.channels or not wrong:  # else their table may be what is wrong
        odd += unused_credentials(config, where, channels)
    return list(dict.fromkeys(wrong)), odd


def workspace_problems(config: Config, where: Home) -> list[str]:
    from bridge.accounts import check_workspace

    try:
        check_workspace(config.daemon.workspace, f"{where.config}: daemon.workspace")
    except ConfigError as error:
        return [str(error)]
    return []


def server_problems(config: Config, where: Home) -> list[str]:
    """A line for each server of tools that cannot be reached, as it is set."""
    from bridge.tools.mcp.access import access
    from bridge.tools.mcp.servers import workspace_of

    lines: list[str] = []
    for name, table in config.mcp.items():
        try:
            if table.enabled:
                access(name, table, where, workspace_of(where, config), os.environ)
        except ConfigError as error:
            lines.append(str(error))
    return lines


def unknown_accounts(config: Config, where: Home) -> list[str]:
    """A line for each account that notices are to go through and that is none."""
    there = {f"{channel}:{name}" for channel, tables in config.channels.items() for name in tables}
    return [
        f"{where.config}: notices.accounts: {name} is no account of the settings: correct it, or sign it in"
        for name in config.notices.accounts
        if name not in there
    ]


def powerless(account: AccountSetup, where: Home) -> str:
    """What is odd about whom the account answers or gives tools; "": nothing."""
    settings, table = account.settings, f"{where.config}: channels.{account.channel}.{account.account}"
    cure = f"turnbridge pair {account.id}, or set owner"
    if settings.owner:
        return ""
    if settings.remote_tools == "owner":
        return f"{table}: remote_tools is for the owner, and there is none: {cure}"
    if settings.senders == "owner":
        return f"{table}: it answers its owner alone, and there is none: {cure}, or senders"
    return ""


def placeholders(account: AccountSetup, where: Home) -> Iterator[str]:
    """A line for each value that still is what the guides show in its place."""
    from bridge.accounts import secrets_of

    path = where.credentials(account.channel, account.account)
    for key in type(account.credentials).model_fields:
        if any("…" in secret for secret in secrets_of(getattr(account.credentials, key))):
            yield f"{path}: {key} holds the guide's placeholder …: put the real one there"
    table = f"{where.config}: channels.{account.channel}.{account.account}"
    for key, value in account.settings.model_dump().items():
        if isinstance(value, str) and "…" in value:
            yield f"{table}.{key} holds the guide's placeholder …: put the real one there"


def agent_problems(config: Config, where: Home) -> list[str]:
    from bridge import registry
    from bridge.accounts import noted
    from bridge.profiles import Profiles

    profiles = Profiles(config, where, registry.agents())
    lines: list[str] = []
    for name in profiles.names():
        noted(lines, partial(profiles.read, name))
    return lines


def unmade_agents(where: Home) -> list[str]:
    """A line for each profile that is rightly set and could not be made here, as for want of its key.

    A warning: the daemon may have another environment than this shell.
    """
    from bridge.cli.agent_checks import profiles_of
    from bridge.config import load_all

    try:
        config, _ = load_all(where.config)
    except ConfigError:  # told as a whole
        return []
    profiles = profiles_of(config, where)
    return [line for name in profiles.names() if (line := _unmade(profiles, name, where))]


def _unmade(profiles: Profiles, name: str, where: Home) -> str:
    from bridge.agents.contract import AgentPlace
    from bridge.clock import SystemClock

    try:
        profile = profiles.read(name)
    except ConfigError:  # told with the settings
        return ""
    try:
        profile.spec.create(profile.settings, AgentPlace(name, where, SystemClock()))
    except ConfigError as error:
        does = "the daemon does not start" if name == profiles.default else "it does not answer"
        return f"{error}; until then {does}"
    return ""


def tool_problems(config: Config, where: Home) -> list[str]:
    """What is disabled and not there, and what is installed and cannot be used."""
    from bridge.clock import SystemClock
    from bridge.tools.choose import others_of

    try:
        return list(others_of(where, SystemClock(), config.tools).lacking)
    except ConfigError as error:
        return [str(error)]
