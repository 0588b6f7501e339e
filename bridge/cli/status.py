"""``turnbridge status``: each account's health, or all about one, from the daemon's own snapshot."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home, typed, visible
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.paths import Home

HEAD = ("ACCOUNT", "STATE", "SINCE", "CONTACT", "WAITING", "DEAD", "TOOLS", "REASON")
COLUMNS = 80  # a reason that makes a line longer goes below it
DEAD = "{} of replies given up: {}"
UNREAD = "the settings are those read before: {}"
WAITING = "what changed in {} waits for a restart"
SKEW_SECONDS = 30.0  # a platform's clock that differs by less is no trouble
LATE_SECONDS = 60  # a message that waits for less is on its way
INDENT = 12  # of what is told of one account
ANSWERS = {"owner": "its owner", "list": "its owner and the senders of a list", "anyone": "anyone"}
UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def register(commands: Commands) -> None:
    parser = commands.add_parser("status", help="show each account's health, or all about one")
    parser.add_argument(
        "account", nargs="?", metavar="CHANNEL:ACCOUNT", help="show all about this one, such as feishu:main"
    )
    parser.add_argument("--json", action="store_true", help="print the daemon's status as JSON")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the health: exit 0 when all that are enabled are connected, 1 when any is not.

    With an account, only that one counts. Settings on disk that cannot be read are a 1, too.
    """
    where = home(args)
    status = ask_daemon(where, {"action": "status"})
    if args.account:
        status["components"] = [one(status, args.account, where)]
    accounts = status["components"]
    enabled = [account for account in accounts if account["enabled"]]
    connected = [account for account in enabled if account["state"] == "connected"]
    if args.json:
        print(json.dumps(status, ensure_ascii=False))
    elif args.account:
        print("\n".join(screen(accounts[0], now(), where)))
    else:
        head = f"turnbridge {status['version']}, pid {status['pid']}"
        print(f"{head}: {len(connected)} of {len(enabled)} connected")
        if accounts:
            print("\n".join(overview(accounts, now())))
        if dead := sum(account.get("dead_letters") or 0 for account in accounts):
            print(DEAD.format(_parts(dead), typed(where, "dead list")))
    if not args.json:
        print("".join(f"{line}\n" for line in not_in_effect(status)), end="")
    return 0 if len(connected) == len(enabled) and not status.get("settings_error") else 1


def not_in_effect(status: dict[str, Any]) -> list[str]:
    """What of the settings on disk the daemon does not act on."""
    lines = wrapped(UNREAD.format(visible(error)), "") if (error := status.get("settings_error")) else []
    if tables := status.get("waits_for_restart"):
        lines += wrapped(WAITING.format(", ".join(f"[{table}]" for table in tables)), "")
    return lines


def one(status: dict[str, Any], id_: str, where: Home) -> dict[str, Any]:
    """Raises ConfigError when the daemon has no such account."""
    for account in status["components"]:
        if account["id"] == id_:
            found: dict[str, Any] = account
            return found
    raise ConfigError(f"the daemon has no account {id_}: see all with: {typed(where, 'status')}")


# --- all accounts ---------------------------------------------------------------------------------


def overview(accounts: list[dict[str, Any]], now_seconds: int) -> list[str]:
    """The table; what is out of the ordinary stands below its row."""
    first, *rows = grouped([HEAD, *(row(account, now_seconds) for account in accounts)])
    lines = list(first)
    for account, shown in zip(accounts, rows, strict=True):
        lines += shown
        lines += wrapped("; ".join(notes(account, now_seconds)), "  ")
    return lines


def notes(account: dict[str, Any], now_seconds: int) -> list[str]:
    """What has no column and is worth a look."""
    found = []
    if (next_try := account.get("next_try_unix_seconds")) is not None:
        found.append(f"next try {ahead(next_try, now_seconds)}")
    if (restarts := account.get("restarts") or 0) and account["state"] != "connected":
        found.append(f"restarted {_times(restarts)}")
    oldest = account.get("oldest_waiting_unix_seconds")
    if oldest is not None and now_seconds - oldest >= LATE_SECONDS:
        found.append(f"the oldest message waits since {ago(oldest, now_seconds)}")
    if abs(account.get("clock_skew_seconds") or 0.0) >= SKEW_SECONDS:
        found.append(_skew(account["clock_skew_seconds"]))
    if refused := unproven(account, now_seconds):
        found.append(f"{refused}: check its keys")
    return found


def unproven(account: dict[str, Any], now_seconds: int) -> str:
    """Which requests did not prove that its platform sent them; "" while the last one did."""
    if not (count := account.get("unproven_requests") or 0):
        return ""
    told = "1 request" if count == 1 else f"{count} requests"
    last = ago(account.get("last_unproven_unix_seconds"), now_seconds)
    return f"{told} refused as unproven, the last {last}, none accepted since"


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
    return [line for group in grouped(rows) for line in group]


def grouped(rows: list[tuple[str, ...]]) -> list[list[str]]:
    """The lines of each row, as in ``table``."""
    widths = [max(map(len, column)) for column in zip(*(one[:-1] for one in rows), strict=True)]
    return [_lines(one, widths) for one in rows]


def _lines(cells: tuple[str, ...], widths: list[int]) -> list[str]:
    *first, last = cells
    line = "  ".join([*(cell.ljust(width) for cell, width in zip(first, widths, strict=True)), last])
    if len(line.rstrip()) <= columns():
        return [line.rstrip()]
    return [line[: len(line) - len(last)].rstrip(), *wrapped(last, "  ")]


def columns() -> int:
    """As many as the terminal has; ``COLUMNS`` where that is narrower, or none."""
    from shutil import get_terminal_size

    return max(COLUMNS, get_terminal_size().columns) if sys.stdout.isatty() else COLUMNS


def wrapped(text: str, indent: str) -> list[str]:
    """``text`` in lines of at most ``columns()``, unless a word is longer."""
    from textwrap import wrap

    return wrap(
        text, columns(), initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


# --- one account ----------------------------------------------------------------------------------


def screen(account: dict[str, Any], now_seconds: int, where: Home) -> list[str]:
    """Every field of its snapshot, in words."""
    id_, dead = account["id"], account.get("dead_letters") or 0
    refused = unproven(account, now_seconds)
    told = {
        "state": _since(account, now_seconds),
        "reason": account.get("error") or "",
        "next try": ahead(account.get("next_try_unix_seconds"), now_seconds),
        "contact": ago(account.get("last_success_unix_seconds"), now_seconds).replace("-", "none yet"),
        "restarts": _times(account.get("restarts") or 0),
        "waiting": _waiting(account, now_seconds),
        "dead": f"{_parts(dead)} given up: {typed(where, f'dead list {id_}')}" if dead else "nothing",
        "answers": ANSWERS.get(account.get("senders") or "", ""),
        "tools": "nobody" if account.get("remote_tools") != "owner" else "the owner, in their direct chat",
        "owner": account.get("user_id") or _no_owner(account, where),
        "bot": account.get("bot_id") or "",
        "clock": _skew(account.get("clock_skew_seconds")),
        "refused": f"{refused}: check its keys" if refused else "",
    }
    lines = [id_]
    for name, text in told.items():
        for line in wrapped(visible(text), " " * INDENT):
            lines.append(line if name == "" else f"  {name:<{INDENT - 2}}{line[INDENT:]}")
            name = ""
    return lines


def _no_owner(account: dict[str, Any], where: Home) -> str:
    """Nothing while the settings cannot be read, which may name one."""
    return f"none yet: {typed(where, 'pair ' + str(account['id']))}" if account.get("senders") else ""


def _since(account: dict[str, Any], now_seconds: int) -> str:
    since = account.get("since_unix_seconds")
    return str(account["state"]) + ("" if since is None else f", since {ago(since, now_seconds)}")


def _waiting(account: dict[str, Any], now_seconds: int) -> str:
    depth, oldest = account.get("queue_depth") or 0, account.get("oldest_waiting_unix_seconds")
    told = "1 message or part" if depth == 1 else f"{depth} messages and parts"
    return (
        "nothing"
        if not depth
        else told + ("" if oldest is None else f", the oldest {ago(oldest, now_seconds)}")
    )


def _skew(seconds: float | None) -> str:
    if seconds is None:
        return ""
    side = "ahead of" if seconds >= 0 else "behind"
    return f"the platform's clock is {abs(seconds):.0f}s {side} this machine's"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _parts(count: int) -> str:
    return "1 part" if count == 1 else f"{count} parts"


# --- times ----------------------------------------------------------------------------------------


def now() -> int:
    from time import time  # noqa: TID251 - a command, which has no other clock

    return int(time())


def ago(unix_seconds: int | None, now_seconds: int) -> str:
    """How long ago, in the largest unit of which it is at least one; a dash for never."""
    return "-" if unix_seconds is None else f"{_long(now_seconds - unix_seconds)} ago"


def ahead(unix_seconds: int | None, now_seconds: int) -> str:
    """In how long; "" for never."""
    if unix_seconds is None:
        return ""
    left = unix_seconds - now_seconds
    return f"in {_long(left)}" if left > 0 else "now"


def _long(seconds: int) -> str:
    age = max(0, seconds)
    size, unit = next(((size, unit) for size, unit in UNITS if age >= size), UNITS[-1])
    return f"{age // size}{unit}"
