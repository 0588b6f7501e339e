"""``turnbridge fake PLATFORM``: play it on this machine, to try its channel without an account."""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import TextIO

    from bridge.cli.common import Commands
    from bridge.cli.fake_platforms import Platform
    from bridge.cli.fake_screen import Screen
    from bridge.cli.fake_setup import Setup

    Play = Callable[[Setup, Path, Screen, TextIO, float], Coroutine[None, None, int]]

WAIT_SECONDS = 60.0
EPILOG = """\
A line that you type is a message from the bot's owner, and so is what begins with a slash, but for these:
  /file PATH [TEXT]   send a file; a picture and its text are one message
  /as NAME TEXT       write as somebody else, such as: /as stranger hello
  /group TEXT         mention the bot in a group, also as somebody else: /as stranger /group hello
                      both also send a file: /group /file PATH [TEXT]
  /repeat             deliver the last message again, as the platform does after a slow answer
  /recall             take the last message back
  /quote TEXT         reply to the bot's last message, or to the last of yours
  /thread TEXT        write into the thread on the last message
  /edit TEXT          change the last message
  /forward A | B      forward messages as one; those that begin with > are a bundle within it
  /card TITLE | TEXT  send a card
  /press N [NAME]     press a button under the bot's last question, also as somebody else
  /location NAME      send a place
  /send TYPE JSON     send any type, such as: /send sticker {"file_key": "x"}
  /throttle [SECONDS] refuse the bot's next message: too many requests
  /?                  show this
  /quit               end
Two slashes send one: //file is the message "/file".
"""
WECHAT_EPILOG = """\
A line that you type is a message from the account's owner, and so is what begins with a slash, but for these:
  /file PATH          send a picture, a voice or a video; people can send no other files here
  /voice [WORDS]      say something, with the words that the platform recognized
  /location NAME      send a place
  /link TITLE | URL   send an article
  /as NAME TEXT       write as somebody else, such as: /as stranger hello
  /click KEY          press a button of the account's menu
  /repeat             deliver the last message again, as the platform does after a lost answer
  /subscribe          follow the account again
  /unsubscribe        leave it: nothing can be sent any more
  /no-kf, /kf         take the account's customer service away, and give it back
  /throttle           refuse the account's next message by itself: too many requests
  /check              check the account's address, as the console does
  /?                  show this
  /quit               end
Two slashes send one: //file is the message "/file".
The platform waits five seconds for an answer, and comes three times.
After that only customer service can send one, or the next message fetches it.
"""


def register(commands: Commands) -> None:
    from bridge.cli.fake_platforms import FEISHU, WECHAT_MP

    parser = commands.add_parser("fake", help="play a chat platform on this machine, to try a channel")
    platforms = parser.add_subparsers(title="platforms", metavar="PLATFORM", required=True)
    _add(platforms, FEISHU, EPILOG).set_defaults(run=run)
    wechat = _add(platforms, WECHAT_MP, WECHAT_EPILOG)
    wechat.add_argument(
        "--no-kf", action="store_true", help="an account without customer service, which may only answer"
    )
    wechat.add_argument(
        "--mode", choices=("secure", "compat", "plaintext"), default="secure", help="(default: secure)"
    )
    wechat.set_defaults(run=run_wechat)


def _add(platforms: Commands, platform: Platform, epilog: str) -> argparse.ArgumentParser:
    """The command of one platform, with what all have."""
    parser = platforms.add_parser(
        platform.channel,
        help=f"play {platform.title}",
        description=f"Play {platform.title} on this machine. "
        "When input is piped, each line waits for its answer.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--port",
        type=int,
        default=platform.port,
        help=f"where the platform listens (default: {platform.port})",
    )
    parser.add_argument(
        "--to",
        metavar="URL",
        help=f"the account's address (default: {platform.address}, or as in --write)",
    )
    parser.add_argument(
        "--write", metavar="HOME", help="add the account to this home, and keep its secrets there"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help=f"for each answer, when input is piped (default: {WAIT_SECONDS:g})",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="where files of the bot go, and without --write its secrets are kept "
        "(default: replies/ in the home of --write, else a new folder)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Exit 0 at the end; when input is piped, 1 if a message had no answer in time."""
    from bridge.cli.fake_play import play
    from bridge.cli.fake_setup import prepare

    return _played(args, prepare(args.write, args.to, args.port, keep=args.out), play, EPILOG)


def run_wechat(args: argparse.Namespace) -> int:
    """As ``run``."""
    from bridge.cli.fake_platforms import WECHAT_MP
    from bridge.cli.fake_setup import prepare
    from bridge.cli.fake_wechat import play

    chosen = {"customer_service": not args.no_kf, "mode": args.mode}
    platform = WECHAT_MP._replace(table={**WECHAT_MP.table, **chosen})
    return _played(args, prepare(args.write, args.to, args.port, platform, args.out), play, WECHAT_EPILOG)


def _played(args: argparse.Namespace, setup: Setup, play: Play, epilog: str) -> int:
    import asyncio

    from bridge.cli.common import signals_exit
    from bridge.cli.fake_screen import Screen, typed_so_far

    screen = Screen(sys.stdout, sys.stdin.isatty() and sys.stdout.isatty(), epilog, typed_so_far)
    try:
        with signals_exit(), _folder(args.out, setup) as folder:
            return asyncio.run(play(setup, folder, screen, sys.stdin, args.wait))
    except ExceptionGroup as group:
        raise first_of(group) from None


def first_of(error: Exception) -> Exception:
    """What a group of tasks ended by, so that a closed pipe is still told as one."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@contextmanager
def _folder(chosen: str | None, setup: Setup) -> Iterator[Path]:
    """Where the bot's files go; made now, so that its path can be told. A new one that stays empty goes."""
    from tempfile import mkdtemp

    from bridge.cli.fake_setup import made

    if chosen is not None or setup.home is not None:
        yield made(chosen if chosen is not None else Path(setup.home or "") / "replies")
        return
    folder = Path(mkdtemp(prefix="turnbridge-fake-"))
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()
