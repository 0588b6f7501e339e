"""``turnbridge reload``: have the daemon read its settings again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home

if TYPE_CHECKING:
    from bridge.cli.common import Commands

WORDS = {"started": "started", "anew": "started anew", "stopped": "stopped"}  # by their keys
NOTHING = "nothing new: what changes on disk is also taken up by itself, within two seconds"


def register(commands: Commands) -> None:
    parser = commands.add_parser("reload", help="have the daemon read its accounts' settings again")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when all of it could be used; accounts that did not change are never touched."""
    status = ask_daemon(home(args), {"action": "reload"})
    print("; ".join(["read", *(told(status.get("reloaded") or {}) or [NOTHING])]))
    return 0


def told(reloaded: dict[str, Any]) -> list[str]:
    """What became of the accounts that are not as they were, in words."""
    return [f"{words}: {', '.join(ids)}" for key, words in WORDS.items() if (ids := reloaded.get(key))]
