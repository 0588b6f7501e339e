"""``turnbridge dead``: replies that could not be delivered, listed, read, sent once more or forgotten."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home, typed, visible
from bridge.cli.status import ago, now, one, table

if TYPE_CHECKING:
    from bridge.cli.common import Commands

HEAD = ("ID", "ACCOUNT", "WHAT", "BYTES", "GIVEN UP", "HOW", "WHY")


def register(commands: Commands) -> None:
    parser = commands.add_parser("dead", help="list, show, retry or prune replies that were given up")
    add_home(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="one line for each part of a reply that was given up")
    listing.add_argument(
        "account",
        nargs="?",
        default="",
        metavar="CHANNEL:ACCOUNT",
        help="only of this account, such as feishu:main",
    )
    show = actions.add_parser("show", help="one of them with its text and recipient")
    show.add_argument("id", type=_id, help="its number in the list")
    for each in (listing, show):
        each.add_argument("--json", action="store_true", help="print JSON")
    retry = actions.add_parser("retry", help="send them once more")
    retry.add_argument("ids", type=_id, nargs="+", metavar="ID", help="a number in the list")
    prune = actions.add_parser("prune", help="forget them")
    prune.add_argument("ids", type=_id, nargs="*", metavar="ID", help="a number in the list")
    prune.add_argument(
        "--older-than-days", type=_days, metavar="DAYS", help="all that were given up before; 0: all"
    )
    runs = ((listing, run_list), (show, run_show), (retry, run_retry), (prune, run_prune))
    for action, run in runs:
        add_home(action, is_action=True)
        action.set_defaults(run=run)


def run_list(args: argparse.Namespace) -> int:
    """Exit 0 when there are none, 1 when there are some, 2 for an account of which there is nothing."""
    status = ask_daemon(home(args), {"action": "dead_list", "account": args.account})
    dead: list[dict[str, Any]] = status.get("dead", [])
    if args.account and not dead:
        one(status, args.account, home(args))
    if args.json:
        print(json.dumps(dead, ensure_ascii=False))
    elif not dead:
        print("no dead letters")
    else:
        print("\n".join(table([HEAD, *(row(letter, now()) for letter in dead)])))
        print(f"read one: {typed(home(args), 'dead show ID')}; {remedies(dead)}")
    return 1 if dead else 0


def remedies(dead: list[dict[str, Any]]) -> str:
    """What can be done about the letters of a list."""
    files = [letter for letter in dead if letter["kind"] == "file"]
    if not files:
        return "then: dead retry ID, or dead prune ID"
    if len(files) == len(dead):
        return "then: dead prune ID (no copy is kept of a file, so it cannot be retried: send it anew)"
    return "then: dead retry ID (a text alone: no copy is kept of a file), or dead prune ID"


def run_show(args: argparse.Namespace) -> int:
    """Exit 0 when it is there."""
    (letter,) = _ask(args, {"action": "dead_show", "id": args.id})
    if args.json:
        print(json.dumps(letter, ensure_ascii=False))
        return 0
    head = dict(zip(HEAD, row(letter, now()), strict=True)) | {"TO": visible(letter["to"])}
    print("\n".join(f"{name.lower():<9} {value}" for name, value in head.items()))
    print(f"\n{visible(letter['text'])}")
    return 0


def run_retry(args: argparse.Namespace) -> int:
    """Exit 0 when each of them is in the outbox again."""
    _ask(args, {"action": "dead_retry", "ids": args.ids})
    many = "it is" if len(args.ids) == 1 else f"{len(args.ids)} are"
    print(f"{many} in the outbox again; a running account delivers now. What is refused anew has a new id")
    return 0


def run_prune(args: argparse.Namespace) -> int:
    """Exit 0, 1 when none of those named is a dead letter (any more)."""
    if not args.ids and args.older_than_days is None:
        args.command.error("say which: their numbers, or --older-than-days")
    command: dict[str, Any] = {"action": "dead_prune", "ids": args.ids}
    if args.older_than_days is not None:
        command["older_than_days"] = args.older_than_days
    left = len(_ask(args, command))
    print("no dead letters are left" if not left else f"{left} left")
    return 0


def row(letter: dict[str, Any], now_seconds: int) -> tuple[str, ...]:
    """One letter's cells."""
    return (
        str(letter["id"]),
        letter["account"],
        letter["kind"],
        str(letter["size"]),
        ago(letter["ended_unix_seconds"], now_seconds),
        letter["state"],
        visible(letter["reason"]),
    )


def _ask(args: argparse.Namespace, command: dict[str, Any]) -> list[dict[str, Any]]:
    dead: list[dict[str, Any]] = ask_daemon(home(args), command).get("dead", [])
    return dead


def _id(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:19]) < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of the list")
    return int(text[:19])


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days")
    return int(text)
