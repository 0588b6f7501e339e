"""``turnbridge reload``: have the daemon read its settings again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home
from bridge.cli.status import now

if TYPE_CHECKING:
    from bridge.cli.common import Commands


def register(commands: Commands) -> None:
    parser = commands.add_parser("reload", help="have the daemon read its accounts' settings again")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when all of it could be used; accounts that did not change are never touched."""
    asked_seconds = now()
    status = ask_daemon(home(args), {"action": "reload"})
    anew = started(status, asked_seconds)
    print(f"read; started anew: {', '.join(anew)}" if anew else "read; nothing new for any account that runs")
    return 0


def started(status: dict[str, Any], since_seconds: int) -> list[str]:
    """The accounts that are in their state since then, for what changed begins anew."""
    return [one["id"] for one in status["components"] if one.get("since_unix_seconds", 0) >= since_seconds]
