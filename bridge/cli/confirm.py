"""``turnbridge confirm``: asks an owner yes or no in the chat, and answers by its exit code."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, explain, home, signals_exit
from bridge.errors import BridgeError, ConfigError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.paths import Home

YES, NO, NOT_ASKED = 0, 1, 2
CODES = (
    "Exit codes: 0 yes; 1 no, or no answer in time; 2 not asked, or nobody knows the answer; "
    "3 no daemon runs."
)
MOST_SECONDS = 14_400
ENDS = {
    "yes": (YES, "yes"),
    "no": (NO, "no"),
    "unanswered": (NO, "nobody answered in time: that is a no"),
    "failed": (NOT_ASKED, "it could not be asked: the platform refused it, or was not reached in time"),
    "withdrawn": (NOT_ASKED, "it was withdrawn: nobody followed it for a minute"),
}


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "confirm",
        help="ask an owner yes or no in the chat",
        epilog=CODES,
    )
    parser.add_argument("question", metavar="QUESTION", help="what is asked; one message")
    parser.add_argument(
        "--account",
        default="",
        metavar="CHANNEL:ACCOUNT",
        help="by this account (default: as notices are told)",
    )
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=1800,
        metavar="SECONDS",
        help="for an answer, up to 14400 (default: 1800)",
    )
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 for yes, 1 for no, 2 or 3 for whatever else: only what an owner agreed to may go on."""
    where = home(args)
    command = {
        "action": "confirm",
        "text": args.question,
        "account": args.account,
        "wait_seconds": args.wait,
    }
    if any("\ud800" <= letter <= "\udfff" for letter in args.question):
        raise ConfigError("the question is not UTF-8: look at the terminal's encoding")
    try:
        question = ask_daemon(where, command)["question"]
    except (BridgeError, OSError) as error:
        return max(explain(error), NOT_ASKED)
    try:
        print(f"asked by {question['account']}; it waits for the answer", file=sys.stderr)
        state = followed(where, question)["state"]
    except (BridgeError, OSError) as error:
        explain(error)
        return NOT_ASKED
    code, said = ENDS[state]
    print(said, file=sys.stderr if code == NOT_ASKED else sys.stdout)
    return code


def followed(where: Home, question: dict[str, Any]) -> dict[str, Any]:
    """The question once it is over. Whoever ends this command withdraws it."""
    try:
        with signals_exit():
            while question["state"] not in ENDS:
                question = _state(where, question["id"])
    except (KeyboardInterrupt, SystemExit):
        with suppress(BridgeError, OSError):
            _state(where, question["id"], withdraw=True)
        raise
    return question


def _state(where: Home, id_: str, *, withdraw: bool = False) -> dict[str, Any]:
    command = {"action": "question_state", "id": id_, "withdraw": withdraw}
    question: dict[str, Any] = ask_daemon(where, command)["question"]
    return question


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:6]) <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"give 1 to {MOST_SECONDS} seconds")
    return int(text)
