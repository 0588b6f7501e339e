"""``turnbridge pair``: makes an owner by a code, sent in a direct chat."""

from __future__ import annotations

import argparse
import secrets
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home, signals_exit, typed, visible
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.paths import Home

GOES_ON = ("waiting", "saving")
ENDS = {
    "failed": "the code came, but the owner could not be saved: {reason}",
    "expired": "nobody sent the code in time",
    "guessed": "too many wrong codes came, so this one is worth nothing any more",
    "shown": "the code was sent in a group, where others saw it, so it is worth nothing any more",
    "changed": "the settings name another owner since: nothing was changed",
    "replaced": "another code was shown for this account since: this one is worth nothing any more",
    "withdrawn": "the code was withdrawn",
}


def register(commands: Commands) -> None:
    parser = commands.add_parser("pair", help="make somebody the owner of an account, by a code")
    parser.add_argument("account", metavar="CHANNEL:ACCOUNT", help="the account, such as feishu:main")
    parser.add_argument("--replace", action="store_true", help="also if it has an owner: in their place")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 once there is an owner, 1 when the code was not sent in time, or too many wrong ones were."""
    if not all(args.account.partition(":")):
        args.command.error(f"{args.account!r} names no account: write CHANNEL:ACCOUNT, such as feishu:main")
    where, code = home(args), f"{secrets.randbelow(10**8):08d}"
    ask = {"action": "pair", "account": args.account, "code": code, "replace": args.replace}
    status = ask_daemon(where, ask)
    _show(args.account, code, status)
    pairing = followed(where, status["pairing"])
    if pairing["state"] == "paired":
        _welcome(where, args.account, pairing["owner"])
        return 0
    again = typed(where, f"pair {args.account}" + (" --replace" if args.replace else ""))
    why = ENDS[pairing["state"]].format(reason=pairing.get("reason", ""))
    print(f"turnbridge: {visible(why)}; for a new one: {again}", file=sys.stderr)
    return 1


def followed(where: Home, pairing: dict[str, Any]) -> dict[str, Any]:
    """The pairing once it is over. Whoever ends this command withdraws the code."""
    tries = pairing["tries_left"]
    try:
        with signals_exit():
            while pairing["state"] in GOES_ON:
                pairing = _ask(where, pairing["id"])
                if pairing["state"] == "waiting" and pairing["tries_left"] < tries:
                    tries = pairing["tries_left"]
                    print(f"a wrong code came; {tries} more and this one is worth nothing", flush=True)
    except (KeyboardInterrupt, SystemExit):
        with suppress(BridgeError, OSError):
            _ask(where, pairing["id"], withdraw=True)
        raise
    return pairing


def _ask(where: Home, id_: str, *, withdraw: bool = False) -> dict[str, Any]:
    pairing: dict[str, Any] = ask_daemon(where, {"action": "pair_state", "id": id_, "withdraw": withdraw})[
        "pairing"
    ]
    return pairing


def _show(account: str, code: str, status: dict[str, Any]) -> None:
    from bridge.cli import qr

    print(f"Whoever shall own {account} sends this code to it, alone, in a direct chat:\n")
    print(f"    {code[:4]}-{code[4:]}\n")
    qr.show(code)
    minutes = round(status["pairing"]["seconds_left"] / 60)
    print(f"It is good once and for {minutes} minutes, while this command runs. Show it to nobody else.")
    state = next(one["state"] for one in status["components"] if one["id"] == account)
    if state != "connected":
        print(f"{account} has no contact with its platform right now ({state}): see turnbridge status.")
    sys.stdout.flush()


def _welcome(where: Home, account: str, owner: str) -> None:
    """Who it is, and what they may do: told by the daemon, since the settings were read anew."""
    components = ask_daemon(where, {"action": "status"})["components"]
    tools = next((one["remote_tools"] for one in components if one["id"] == account), "none")
    print(f"{visible(owner)} is the owner of {account} now.")
    if tools == "owner":
        print("They may use tools in their direct chat: remote_tools is owner.")
    else:
        print(
            f"They may use no tools; for that: {typed(where, f'channels set {account} remote_tools=owner')}"
        )
