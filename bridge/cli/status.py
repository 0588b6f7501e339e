"""``turnbridge status``: each account's health, from the daemon's own snapshot."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home, typed

if TYPE_CHECKING:
    from bridge.cli.common import Commands

HEAD = ("ACCOUNT", "STATE", "SINCE", "CONTACT", "WAITING", "DEAD", "TOOLS", "REASON")
COLUMNS = 80  # a reason that makes a line longer goes below it
DEAD = "{} of replies given up: {}"
UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


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
            print("\n".join(table([HEAD, *(row(account, now()) for account in accounts)])))
        if dead := sum(account.get("dead_letters") or 0 for account in accounts):
            parts = "1 part" if dead == 1 else f"{dead} parts"
            print(DEAD.format(parts, typed(home(args), "dead list")))
    return 0 if len(connected) == len(enabled) else 1


def row(account: dict[str, Any], now_seconds: int) -> tuple[str, ...]:
    """One account's cells."""
    return (
        account["id"],
        account["state"],
        ago(account.get("since_unix_seconds"), now_seconds),
        ago(account.get("last_success_unix_seconds"), now_seconds),
        str(account.get("queue_depth", 0)),
        str(account.get("dead_letters", 0)),
        account.get("remote_tools", "none"),
        account.get("error") or "",
    )


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Aligned lines; the last cell stands below its row where it would make that too long."""
    widths = [max(map(len, column)) for column in zip(*(one[:-1] for one in rows), strict=True)]
    lines = []
    for *cells, last in rows:
        line = "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)), last])
        if len(line.rstrip()) > COLUMNS:
            lines += [line[: len(line) - len(last)].rstrip(), f"  {last}"]
        else:
            lines.append(line.rstrip())
    return lines


def now() -> int:
    from time import time  # noqa: TID251 - a command, which has no other clock

    return int(time())


def ago(unix_seconds: int | None, now_seconds: int) -> str:
    """How long ago, in the largest unit of which it is at least one; a dash for never."""
    if unix_seconds is None:
        return "-"
    age = max(0, now_seconds - unix_seconds)
    size, unit = next(((size, unit) for size, unit in UNITS if age >= size), UNITS[-1])
    return f"{age // size}{unit} ago"
