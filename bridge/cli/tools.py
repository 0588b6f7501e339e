"""``turnbridge tools``: what the owner's session may use, with its risk and whose it is."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, home, visible
from bridge.cli.status import table, wrapped

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.config import Config
    from bridge.paths import Home

HEAD = ("TOOL", "RISK", "OF", "WHAT IT DOES")
OURS = "turnbridge"
Row = dict[str, str]


def register(commands: Commands) -> None:
    parser = commands.add_parser("tools", help="what an owner's session may use, and what each tool risks")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """By the settings on disk; the daemon need not run. Exit 1 when an installed tool cannot be used."""
    from bridge.config import load

    where = home(args)
    config = load(where.config)
    rows, lacking = found(where, config)
    if args.json:
        print(json.dumps({"tools": rows, "not_loaded": lacking}, ensure_ascii=False))
    else:
        print("\n".join(shown(rows, lacking, config)))
    return 1 if lacking else 0


def found(where: Home, config: Config) -> tuple[list[Row], list[str]]:
    """The tools of a chat's session in which tools are granted, and what is to say of those left out.

    Raises:
        ConfigError: the settings disable what is not there.
    """
    from bridge.clock import SystemClock
    from bridge.tools.choose import ANY_CHANNEL, others_of, tools_for

    clock = SystemClock()
    others = others_of(where, clock, config.tools)
    tools = tools_for(where, clock, False, ANY_CHANNEL, table=config.tools, others=others.tools)
    rows = [
        {
            "name": tool.name,
            "risk": tool.risk.value,
            "origin": others.origins.get(tool.name, OURS),
            "description": tool.description,
        }
        for tool in tools.values()
    ]
    return rows, list(others.lacking)


def shown(rows: list[Row], lacking: list[str], config: Config) -> list[str]:
    """The table, and below it what is not in it."""
    lines = table(
        [HEAD, *((row["name"], row["risk"], row["origin"], _first(row["description"])) for row in rows)]
    )
    if config.tools.disabled:
        lines.append(f"disabled: {visible(', '.join(config.tools.disabled))}")
    servers = [name for name, one in config.mcp.items() if one.enabled]
    if servers:
        lines.append(f"and those of the servers {', '.join(servers)}: turnbridge mcp shows them")
    for line in lacking:
        lines += wrapped(f"! {visible(line)}", "  ")
    return lines


def _first(description: str) -> str:
    """Its first sentence."""
    return visible(description.partition(". ")[0].removesuffix("."))
