"""``turnbridge agents``: the profiles that can answer, and whether each of them could."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, home, visible
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.paths import Home
    from bridge.profiles import Profiles

HEAD = ("AGENT", "TYPE", "MODEL", "TOOLS", "STATE")
Row = dict[str, object]


def register(commands: Commands) -> None:
    parser = commands.add_parser("agents", help="who can answer, and whether each is ready")
    add_home(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the profiles of the settings, and whether they are installed")
    check = actions.add_parser("check", help="ask each for its key, endpoint, program and sign-in")
    check.add_argument("name", metavar="NAME", nargs="?", help="only this one, of [agents.NAME]")
    for action, run in ((listing, run_list), (check, run_check)):
        action.add_argument("--json", action="store_true", help="print JSON")
        add_home(action, is_action=True)
        action.set_defaults(run=run)


def run_list(args: argparse.Namespace) -> int:
    """By the settings on disk; the daemon need not run. Exit 1 when one of them cannot be used."""
    from bridge.cli.status import table

    profiles = _profiles(home(args))
    rows = [row(profiles, name) for name in profiles.names()]
    if args.json:
        print(json.dumps(rows, ensure_ascii=False))
    else:
        print("\n".join(table([HEAD, *map(_cells, rows)])))
    return 1 if any(one["problem"] for one in rows) else 0


def run_check(args: argparse.Namespace) -> int:
    """Exit 0 when all is well, 1 when there is a fault. Nothing is spent, and nothing changed."""
    import asyncio

    from bridge.cli.agent_checks import examined, profiles_of
    from bridge.cli.agent_room import narrow
    from bridge.cli.examination import enabled
    from bridge.cli.findings import Level, fault, lines
    from bridge.config import load

    where = home(args)
    config = load(where.config)
    profiles = profiles_of(config, where)
    names = [args.name] if args.name else profiles.names()
    unread = [row(profiles, name) for name in names]
    found = [
        fault("agent", f"{one['name']}: {one['problem']}", "do what it says")
        for one in unread
        if one["type"] is None
    ]
    found += asyncio.run(examined(profiles, names, where, runs=False))
    found += asyncio.run(narrow(profiles, names, where, config, enabled(where, config)))
    well = not any(each.level is Level.FAULT for each in found)
    if args.json:
        print(json.dumps({"ok": well, "findings": [each.as_json() for each in found]}, ensure_ascii=False))
    else:
        print("\n".join(visible(line) for line in lines(found)))
    return 0 if well else 1


def _profiles(where: Home) -> Profiles:
    from bridge.cli.agent_checks import profiles_of
    from bridge.config import load

    return profiles_of(load(where.config), where)


def row(profiles: Profiles, name: str) -> Row:
    """One profile; ``type`` is None, and ``problem`` says why, where it cannot be read."""
    found: Row = {"name": name, "type": None, "model": "", "own_tools": False, "problem": ""}
    found["is_default"] = name == profiles.default
    try:
        profile = profiles.read(name)
    except ConfigError as error:
        return {**found, "problem": str(error)}
    return {
        **found,
        "type": profile.spec.name,
        "model": getattr(profile.settings, "model", "") or getattr(profile.settings, "preset", ""),
        "own_tools": profile.spec.own_tools,
        "problem": profile.spec.lacks(),
    }


def _cells(one: Row) -> tuple[str, ...]:
    name = f"{one['name']} (default)" if one["is_default"] else str(one["name"])
    tools = "its own" if one["own_tools"] else "ours"
    words = (name, one["type"] or "-", one["model"] or "-", tools, one["problem"] or "installed")
    return tuple(visible(str(word)) for word in words)
