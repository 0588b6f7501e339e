"""``turnbridge config check``: everything that is wrong with the settings, before a daemon finds out."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, home
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.config import Config
    from bridge.paths import Home


def register(commands: Commands) -> None:
    parser = commands.add_parser("config", help="check the settings")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="print every problem, and what to do")
    add_home(check)
    check.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when all is well, 2 when anything is wrong; each problem is a line."""
    where = home(args)
    found = problems(where)
    for line in found:
        print(line)
    if not found:
        print(f"{where.config}: good")
    return 2 if found else 0


def problems(where: Home) -> list[str]:
    """Every problem of the file, of each account with its credentials, and of the chosen agent."""
    from bridge import registry
    from bridge.accounts import BrokenAccount, accounts
    from bridge.config import load
    from bridge.tables import TableError

    try:
        config = load(where.config)
        found = accounts(config, where, registry.channels(), os.environ)
    except TableError as error:
        return list(error.lines)
    except ConfigError as error:
        return [str(error)]
    lines = [reason for account in found if isinstance(account, BrokenAccount) for reason in account.reasons]
    return lines + agent_problems(config, where)


def agent_problems(config: Config, where: Home) -> list[str]:
    from bridge import registry
    from bridge.tables import TableError, validate

    agents = registry.agents()
    lines: list[str] = []
    for name in {config.daemon.agent, *config.agents}:
        try:
            table = config.agents.get(name, {})
            validate(agents.load(name).settings, table, where.config, f"agents.{name}")
        except TableError as error:
            lines += error.lines
        except ConfigError as error:
            lines.append(f"{where.config}: agents.{name}: {error}")
    return sorted(lines)
