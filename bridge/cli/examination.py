"""All that ``turnbridge doctor`` looks at, in the order in which one fault follows from another."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from bridge.cli import agent_checks, doctor_accounts, doctor_daemon, doctor_machine, doctor_service
from bridge.cli.agent_room import narrow
from bridge.cli.common import typed, visible
from bridge.cli.findings import Finding, fault, good, warning
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from typing import Any

    from bridge.accounts import AccountSetup
    from bridge.config import Config
    from bridge.paths import Home

NO_VARIABLE = "the environment has no "


def examined(where: Home) -> list[Finding]:
    """Every finding, without secrets. It asks the daemon, the platforms and systemd, and changes nothing."""
    from bridge.logs import clean

    config = _config(where)
    findings = [*doctor_machine.machine(where, config)]
    if where.root.exists() and not os.access(where.root, os.R_OK | os.X_OK):
        return findings  # all else is in there
    status, of_daemon = doctor_daemon.status(where)
    findings += settings(where, status)
    findings += asyncio.run(outside(where, config, runs=status is not None))
    findings += answering(where, config, runs=status is not None)
    findings += of_daemon
    if status is not None:
        findings += doctor_daemon.accounts(status, where)
        findings += doctor_daemon.servers(where)
    findings.append(doctor_service.examined(where))
    return [replace(each, text=clean(visible(each.text))) for each in findings]


def _config(where: Home) -> Config:
    """The tables that are right; what is wrong is told with the settings."""
    from bridge.config import Config, load_all

    try:
        return load_all(where.config)[0]
    except ConfigError:
        return Config()


def settings(where: Home, status: dict[str, Any] | None) -> list[Finding]:
    """What ``config check`` finds. A variable may be missing in this shell alone: then the daemon has it."""
    from bridge.cli.config_check import findings

    if not where.config.exists():
        return [fault("settings", f"{where.config} is not there", f"make it: {typed(where, 'init')}")]
    wrong, odd = findings(where)
    cure = f"do what it says, then see: {typed(where, 'config check')}"
    running = status["components"] if status else []
    well = [f"channels.{one['id'].replace(':', '.')}" for one in running if one["state"] != "failed"]
    well += [f"{where.config}: mcp"] if status else []  # told of below, as they are
    found = [good("settings", str(where.config))] if not wrong else []
    for line in wrong:
        if NO_VARIABLE in line and any(f"{name}." in line for name in well):
            found.append(warning("settings", line, "the daemon has it: set it in this shell, too"))
        else:
            found.append(fault("settings", line, cure))
    return found + [warning("settings", line, cure) for line in odd]


async def outside(where: Home, config: Config, *, runs: bool) -> list[Finding]:
    """What is asked over the network: the platforms and, while the daemon ``runs``, itself from outside."""
    from bridge.channel import Http
    from bridge.channel.http import http_session

    url = config.web.public_url
    async with http_session() as session:
        http = Http(session)
        made, findings = doctor_accounts.made(enabled(where, config), http, url)
        findings += await doctor_accounts.platforms(made, where, http.clock)
        pushed = [one.account for one in made if runs and one.is_pushed]
        findings += await doctor_daemon.public(pushed, config, http)
    return findings


def answering(where: Home, config: Config, *, runs: bool) -> list[Finding]:
    """Each agent that answers somebody, who transcribes voice, and packages of instructions."""
    profiles = agent_checks.profiles_of(config, where)
    accounts = enabled(where, config)
    names = agent_checks.named(profiles, accounts)
    found = asyncio.run(agent_checks.examined(profiles, names, where, runs=runs))
    found += asyncio.run(narrow(profiles, names, where, config, accounts))
    voice = agent_checks.voice(where, config)
    found += [agent_checks.elsewhere(each) for each in voice] if runs else voice
    return [*found, *agent_checks.skills(where, config)]


def enabled(where: Home, config: Config) -> list[AccountSetup]:
    """The accounts that can run and are switched on."""
    from bridge import registry
    from bridge.accounts import AccountSetup, accounts

    found = accounts(config, where, registry.channels(), os.environ)
    return [one for one in found if isinstance(one, AccountSetup) and one.enabled]
