"""``turnbridge fake feishu``: play the platform on this machine, to try its channel without an account."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.errors import ConfigError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.cli.fake_setup import Setup

PORT = 8471
WAIT_SECONDS = 60.0
EPILOG = """\
A line that you type is a message from the bot's owner, and so is what begins with a slash, but for these:
  /file PATH [TEXT]   send a file; a picture and its text are one message
  /as NAME TEXT       write as somebody else, such as: /as stranger hello
  /group TEXT         mention the bot in a group; both also send a file: /group /file PATH [TEXT]
  /repeat             deliver the last message again, as the platform does after a slow answer
  /recall             take the last message back
  /quote TEXT         reply to the bot's last message, or to the last of yours
  /thread TEXT        write into the thread on the last message
  /edit TEXT          change the last message
  /forward A | B      forward messages as one; those that begin with > are a bundle within it
  /card TITLE | TEXT  send a card
  /location NAME      send a place
  /send TYPE JSON     send any type, such as: /send sticker {"file_key": "x"}
  /throttle [SECONDS] refuse the bot's next message: too many requests
  /?                  show this
  /quit               end
Two slashes send one: //file is the message "/file".
"""


def register(commands: Commands) -> None:
    parser = commands.add_parser("fake", help="play a chat platform on this machine, to try a channel")
    platforms = parser.add_subparsers(title="platforms", metavar="PLATFORM", required=True)
    feishu = platforms.add_parser(
        "feishu",
        help="play Feishu",
        description="Play Feishu on this machine. When input is piped, each line waits for its answer.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    feishu.add_argument(
        "--port", type=int, default=PORT, help=f"where the platform listens (default: {PORT})"
    )
    feishu.add_argument(
        "--to",
        metavar="URL",
        help="the account's address (default: http://127.0.0.1:8470/channels/feishu/fake, or as in --write)",
    )
    feishu.add_argument(
        "--write", metavar="HOME", help="add the account to this home, and keep its secrets there"
    )
    feishu.add_argument(
        "--wait",
        type=float,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help="for each answer, when input is piped",
    )
    feishu.add_argument(
        "--out",
        metavar="DIR",
        help="where files of the bot go (default: replies/ in the home of --write, else a new folder)",
    )
    feishu.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 at the end; when input is piped, 1 if a message had no answer in time."""
    import asyncio

    from bridge.cli.fake_play import play
    from bridge.cli.fake_screen import Screen, typed_so_far
    from bridge.cli.fake_setup import prepare

    setup = prepare(args.write, args.to, args.port)
    screen = Screen(sys.stdout, sys.stdin.isatty() and sys.stdout.isatty(), EPILOG, typed_so_far)
    try:
        return asyncio.run(play(setup, _folder(args.out, setup), screen, sys.stdin, args.wait))
    except ExceptionGroup as group:
        raise first_of(group) from None


def first_of(error: Exception) -> Exception:
    """What a group of tasks ended by, so that a closed pipe is still told as one."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _folder(chosen: str | None, setup: Setup) -> Path:
    """Where the bot's files go; made now, so that its path can be told."""
    from tempfile import mkdtemp

    try:
        if chosen is None and setup.home is None:
            return Path(mkdtemp(prefix="turnbridge-fake-"))
        folder = Path(chosen) if chosen is not None else Path(setup.home or "") / "replies"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}: choose another folder with --out") from error
    return folder.absolute()
