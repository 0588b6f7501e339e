"""``turnbridge send``: a message from an account, through the daemon's outbox."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, existing, home, typed
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from bridge.cli.common import Commands


def register(commands: Commands) -> None:
    parser = commands.add_parser("send", help="send a message from an account")
    parser.add_argument("account", metavar="CHANNEL:ACCOUNT", help="the account, such as feishu:main")
    parser.add_argument("to", metavar="TO", help="the platform's id of the chat or person")
    parser.add_argument("text", help="the message; may be empty with a file", metavar="TEXT")
    parser.add_argument(
        "--file", action="append", default=[], metavar="PATH", help="a file to send; repeatable"
    )
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 once the message is stored for delivery, 2 for what cannot be a recipient's id."""
    if not all(args.account.partition(":")):
        args.command.error(f"{args.account!r} names no account: write CHANNEL:ACCOUNT, such as feishu:main")
    if any("\ud800" <= letter <= "\udfff" for letter in args.account + args.to + args.text):
        raise ConfigError("what is to be sent is not UTF-8: look at the terminal's encoding")
    refuse_a_name(args.account, args.to)
    files = [str(existing(file)) for file in args.file]
    command = {"action": "send", "account": args.account, "to": args.to, "text": args.text, "files": files}
    where = home(args)
    status = ask_daemon(where, command)
    print(f"stored; {prospect(args.account, status)}. Whether it arrived is not known yet: what is refused")
    print(f"is listed by: {typed(where, 'dead list')}")
    return 0


def refuse_a_name(account: str, to: str) -> None:
    """Raises ConfigError: the account's platform has no recipient of that form. The unknown is let be."""
    from bridge import registry

    channel, channels = account.partition(":")[0], registry.channels()
    beginnings = channels.load(channel).settings.recipients if channel in channels.names() else ()
    if beginnings and not to.startswith(beginnings):
        form = " or ".join(beginnings)
        raise ConfigError(
            f"{to!r} is no recipient of {account}: give the platform's id, which begins with {form}"
        )


def prospect(account: str, status: dict[str, Any]) -> str:
    """When ``account`` delivers, by its state after the message was stored."""
    state = next((one["state"] for one in status["components"] if one["id"] == account), "connected")
    if state == "connected":
        return f"{account} delivers it now"
    return f"{account} has no contact with its platform ({state}), and delivers it once it has"
