"""``turnbridge status``: each account's health, from the daemon's own snapshot."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home

if TYPE_CHECKING:
    from bridge.cli.common import Commands

HEAD = ("ACCOUNT", "STATE", "SINCE", "LAST CONTACT", "WAITING", "DEAD", "TOOLS", "REASON")


def register(commands: Commands) -> None:
    parser = commands.add_parser("status", help="show each account's health")
    parser.add_argument("--json", action="store_true", help="print the daemon's status as JSON")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print each account's health: exit 0 when all that are enabled are connected, 1 when any is not."""
    status = ask_daemon(home(args), {"action": "status"})
    accounts = status["components"]
    enabled = [account for account in accounts if account["enabled"]]
    connected = [account for account in enabled if account["state"] == "connected"]
    if args.json:
        print(json.dumps(status, ensure_ascii=False))
    else:
        head = f"turnbridge {status['version']}, pid {status['pid']}"
        print(f"{head}: {len(connected)} of {len(enabled)} connected")
        if accounts:
            print("\n".join(table([HEAD, *(row(account) for account in accounts)])))
    return 0 if len(connected) == len(enabled) else 1


def row(account: dict[str, Any]) -> tuple[str, ...]:
    """One account's cells."""
    return (
        account["id"],
        account["state"],
        clock(account.get("since_unix_seconds")),
        clock(account.get("last_success_unix_seconds")),
        str(account.get("queue_depth", 0)),
        str(account.get("dead_letters", 0)),
        account.get("remote_tools", "none"),
        account.get("error") or "",
    )


def table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(one, widths, strict=True)).rstrip() for one in rows]


def clock(unix_seconds: int | None) -> str:
    """Local time to the second, or a dash."""
    from time import localtime, strftime

    return "-" if unix_seconds is None else strftime("%m-%d %H:%M:%S", localtime(unix_seconds))
