"""``turnbridge usage``: what turns used, by account, sender, day or agent."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home, visible
from bridge.cli.status import table

if TYPE_CHECKING:
    from bridge.cli.common import Commands

BY = ("account", "sender", "day", "agent")
FIGURES = ("turns", "input_tokens", "output_tokens", "cost_micros", "uncounted", "unpriced")
HEAD = ("TURNS", "INPUT", "OUTPUT", "COST")
MICROS, CENTS = 1_000_000, 2
OTHERS = "(all others)"


def register(commands: Commands) -> None:
    parser = commands.add_parser("usage", help="what turns used: tokens and money")
    parser.add_argument("--account", default="", metavar="CHANNEL:ACCOUNT", help="only of this account")
    parser.add_argument(
        "--days", type=int, default=7, metavar="N", help="so many, 1: today (default: 7; UTC)"
    )
    parser.add_argument("--by", choices=BY, default="account", help="what is summed up (default: account)")
    parser.add_argument(
        "--json", action="store_true", help="print JSON, with money in millionths of a dollar"
    )
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0, 2 for an account of which there is nothing."""
    command = {"action": "usage", "account": args.account, "by": args.by}
    if args.days < 1:
        args.command.error("give a number of days, from 1")
    lines = ask_daemon(home(args), {**command, "days": args.days}).get("usage", [])
    total = {figure: sum(line[figure] for line in lines) for figure in FIGURES}
    if args.json:
        print(json.dumps({"usage": lines, "total": total}, ensure_ascii=False))
    elif not lines:
        print("nothing was used")
    else:
        print("\n".join([*overview(lines, total, args.by), *notes(total)]))
    return 0


def overview(lines: list[dict[str, Any]], total: dict[str, int], by: str) -> list[str]:
    """A line for each and, below several, one for all of them."""
    heads = (*HEAD, *(("ACCOUNT",) if by == "sender" else ()), by.upper())
    rows = [(*figures(line), *names(line, by)) for line in lines]
    if len(lines) > 1:
        rows.append((*figures(total), *(("",) if by == "sender" else ()), "total"))
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(HEAD))]
    return table([_to_the_right(row, widths) for row in (heads, *rows)])


def figures(line: dict[str, int]) -> tuple[str, ...]:
    counts = (line["turns"], line["input_tokens"], line["output_tokens"])
    is_unknown = not line["cost_micros"] and line["unpriced"] >= line["turns"] > 0
    return (*map(str, counts), "-" if is_unknown else dollars(line["cost_micros"]))


def names(line: dict[str, Any], by: str) -> tuple[str, ...]:
    name = visible(line["name"]) or OTHERS
    return (visible(line["account"]), name) if by == "sender" else (name,)


def dollars(micros: int) -> str:
    """All of it, with two digits behind the point at least."""
    fraction = f"{micros % MICROS:06}"
    return f"${micros // MICROS}.{fraction[:CENTS]}{fraction[CENTS:].rstrip('0')}"


def notes(total: dict[str, int]) -> list[str]:
    """What the sums lack."""
    has = "has" if total["unpriced"] == 1 else "have"
    lacking = (("uncounted", "told no tokens"), ("unpriced", f"{has} no known cost"))
    return [f"{total[key]} of the turns {what}: not in these sums" for key, what in lacking if total[key]]


def _to_the_right(row: tuple[str, ...], widths: list[int]) -> tuple[str, ...]:
    first = (cell.rjust(width) for cell, width in zip(row, widths, strict=False))
    return (*first, *row[len(widths) :])
