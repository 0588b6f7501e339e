"""``turnbridge doctor``: everything that can keep an account from working, by name and with its cure."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, home

if TYPE_CHECKING:
    from bridge.cli.common import Commands


def register(commands: Commands) -> None:
    parser = commands.add_parser("doctor", help="find what is wrong, and say what to do about it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when there is no fault, 1 when there is one. It asks the platforms, and changes nothing."""
    from bridge.cli.examination import examined
    from bridge.cli.findings import Level, lines

    found = examined(home(args))
    well = not any(each.level is Level.FAULT for each in found)
    if args.json:
        print(json.dumps({"ok": well, "findings": [each.as_json() for each in found]}, ensure_ascii=False))
    else:
        print("\n".join(lines(found)))
    return 0 if well else 1
