"""``turnbridge reload``: have the daemon read its settings again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bridge.cli.common import add_home, ask_daemon, home

if TYPE_CHECKING:
    from bridge.cli.common import Commands


def register(commands: Commands) -> None:
    parser = commands.add_parser("reload", help="have the daemon read its accounts' settings again")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when all of it could be used; accounts that did not change are never touched."""
    ask_daemon(home(args), {"action": "reload"})
    print("read; accounts that changed are started anew")
    return 0
