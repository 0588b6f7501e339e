"""``turnbridge chat``: talk to the running daemon's agent in this terminal."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.cli.common import NotRunningError, add_home, ask_daemon, home, signals_exit, typed
from bridge.errors import ConfigError

if TYPE_CHECKING:
    from bridge.cli.chat_client import ConsoleClient
    from bridge.cli.common import Commands
    from bridge.paths import Home

CHANNEL = "console"
FILES = "turnbridge-files"
NAME_CHARACTERS = 128


def register(commands: Commands) -> None:
    parser = commands.add_parser("chat", help="talk to the agent in this terminal")
    parser.add_argument(
        "--conversation", default="main", metavar="NAME", help="go on with this one (default: main)"
    )
    parser.add_argument(
        "--files",
        default=FILES,
        metavar="DIR",
        help=f"where files that arrive are kept (default: {FILES} here)",
    )
    add_account(parser)
    add_home(parser)
    parser.set_defaults(run=run)


def add_account(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--account", default="local", metavar="NAME", help="the console account (default: local)"
    )


def run(args: argparse.Namespace) -> int:
    """Exit 0 when the person leaves; through a pipe, 1 when a message had no answer."""
    from bridge.cli.chat_record import Record, alone_in

    where = home(args)
    client = client_for(where, args.account, args.conversation)
    transcript, lock = places(where, args.account)
    with signals_exit(), alone_in(lock, args.conversation):
        record = Record(transcript, args.conversation)
        if is_terminal():
            return _at_terminal(client, where, record, Path(args.files))
        return _through_pipe(client, record, Path(args.files))


def _through_pipe(client: ConsoleClient, record: Any, folder: Path) -> int:
    from bridge.cli.chat_plain import Printer, talk
    from bridge.cli.chat_turn import Turns

    return talk(Turns(client), sys.stdin, Printer(folder, record, now))


def _at_terminal(client: ConsoleClient, where: Home, record: Any, folder: Path) -> int:
    from bridge.cli.chat_feed import Feed
    from bridge.cli.chat_loop import Chat, Desk
    from bridge.cli.chat_show import screen_for
    from bridge.cli.chat_terminal import Terminal
    from bridge.cli.chat_words import words_for

    words, feed = words_for(os.environ), Feed(client)
    terminal = Terminal(feed.wakes)
    screen = screen_for(words)
    again = again_in(where, client)
    desk = Desk(client, feed, terminal, screen, record, words, folder, again, lambda: status(where), now)
    with terminal.opened(where.state / "console-history"):
        Chat(desk).run()
    return 0


def again_in(where: Home, client: ConsoleClient) -> str:
    """The command that opens this conversation again, as it can be typed here."""
    from shlex import quote

    named = (("account", client.account, "local"), ("conversation", client.conversation, "main"))
    own = "".join(f" --{option} {quote(value)}" for option, value, usual in named if value != usual)
    return typed(where, f"chat{own}")


def client_for(where: Home, account: str, conversation: str) -> ConsoleClient:
    """The other side of the account.

    Raises:
        ConfigError: there is no such account, or the conversation's name is none.
    """
    from bridge.cli.chat_client import ConsoleClient
    from bridge.config import load

    name = account.removeprefix(f"{CHANNEL}:")
    accounts = load(where.config).channels.get(CHANNEL, {}) if where.config.exists() else None
    if accounts is not None and name not in accounts:
        raise ConfigError(
            f"{where.config} has no account {CHANNEL}:{name}: "
            f"add the line [channels.{CHANNEL}.{name}] at its end"
        )
    if not conversation.isprintable() or not 1 <= len(conversation.strip()) <= NAME_CHARACTERS:
        raise ConfigError(f"a conversation's name has 1 to {NAME_CHARACTERS} printable characters")
    most_bytes = _most_bytes(accounts[name]) if accounts else None
    return ConsoleClient(where.console_socket, name, conversation.strip(), typed(where, "run"), most_bytes)


def _most_bytes(settings: dict[str, Any]) -> int | None:
    """How large a file the account takes in, where its settings tell."""
    from bridge.channel.spec import MediaSettings

    try:
        return MediaSettings.model_validate(settings.get("media", {})).owner_max_mib * 1_048_576
    except ValueError:  # the daemon says what is wrong
        return None


def places(where: Home, account: str) -> tuple[Path, Path]:
    """Where the account's chats are written down, and what locks them.

    Raises:
        NotRunningError: there is no such home, so none is made.
    """
    if not where.root.is_dir():
        raise NotRunningError(
            f"{where.root} does not exist: look at --home, or start a daemon with: "
            f"{typed(where, 'run --init')}"
        )
    where.private_dir(where.state)
    name = f"{CHANNEL}-{account.removeprefix(f'{CHANNEL}:')}"
    return where.state / f"{name}.jsonl", where.state / f"{name}.lock"


def is_terminal() -> bool:
    """Whether a person sits at both ends, at a terminal that can do more than print lines."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def now() -> str:
    from bridge.clock import SystemClock

    return SystemClock().now().isoformat(timespec="seconds")


def status(where: Home) -> str:
    """One line for each account."""
    found = ask_daemon(where, {"action": "status"})["components"]
    return "\n".join(
        f"{each['id']:<24} {each['state']:<14}{each.get('error') or ''}".rstrip() for each in found
    )
