"""``turnbridge skills``: the packages of instructions there are, and why others do not count."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, home, visible
from bridge.cli.status import table, wrapped

if TYPE_CHECKING:
    from pathlib import Path

    from bridge.cli.common import Commands
    from bridge.paths import Home
    from bridge.tools.skills import Found

HEAD = ("SKILL", "FROM", "WHAT FOR")


def register(commands: Commands) -> None:
    parser = commands.add_parser("skills", help="the skills that agents are told of in an owner's chat")
    parser.add_argument(
        "--workspace", metavar="DIR", help="with those of this folder (default: the one of [daemon])"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when all packages count, 1 when any does not."""
    from bridge.tools.skills import find

    where = home(args)
    found = find(where, _workspace(args, where))
    if args.json:
        print(json.dumps(as_json(found), ensure_ascii=False))
    else:
        print("\n".join(lines(found, where)))
    return 1 if found.faults else 0


def _workspace(args: argparse.Namespace, where: Home) -> Path:
    from pathlib import Path

    from bridge.config import Config, load
    from bridge.tools.mcp.servers import workspace_of

    if args.workspace:
        return Path(args.workspace).expanduser().resolve()
    return workspace_of(where, load(where.config) if where.config.exists() else Config())


def as_json(found: Found) -> dict[str, object]:
    return {
        "skills": [
            {
                "name": one.name,
                "description": one.description,
                "origin": one.origin.value,
                "path": str(one.root),
            }
            for one in found.skills
        ],
        "faults": [{"path": str(each.path), "reason": each.reason} for each in found.faults],
    }


def lines(found: Found, where: Home) -> list[str]:
    told = table([HEAD, *((one.name, one.origin.value, one.description) for one in found.skills)])
    if not found.skills:
        told = [f"no skills: make {where.root}/skills/NAME/SKILL.md, see docs/skills.md"]
    for each in found.faults:
        told += wrapped(visible(f"! {each.path}: {each.reason}"), "")
    return told
