"""``turnbridge try``: a signed message with a picture to the running daemon, and its reply, over HTTP alone.

It is the other side of a webhook account whose replies are asked for, so it takes the whole way.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, home, nearer
from bridge.errors import BridgeError, ConfigError

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.cli.webhook_client import File, WebhookClient

CHANNEL = "webhook"
WAIT_SECONDS = 120.0
MOST_NAMES = 10_000
QUESTION = "What did I send you?"
LABEL = "answer   "
MAKE = "picture 回声.png 480x300"  # a word that the echo agent knows


def register(commands: Commands) -> None:
    parser = commands.add_parser("try", help="send the running daemon a picture, and get one back")
    parser.add_argument("picture", nargs="?", metavar="PICTURE", help="a picture (default: one of ours)")
    parser.add_argument(
        "--file", action="append", default=[], metavar="PATH", help="a file to add; repeatable"
    )
    parser.add_argument("--text", help="what to write (default: a question, then a wish for a picture)")
    parser.add_argument("--account", default="demo", help="the webhook account (default: demo)")
    parser.add_argument("--wait", type=float, default=WAIT_SECONDS, metavar="SECONDS", help="for each answer")
    parser.add_argument("--out", metavar="DIR", help="where reply files go (default: replies/ in the home)")
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 once every message was answered."""
    from bridge.cli.webhook_client import File

    where = home(args)
    names = ([args.picture] if args.picture else []) + args.file
    files = [File.read(Path(name)) for name in names] or ([] if args.text else [_ours()])
    client, sender = _client(args)
    out = Path(args.out) if args.out else where.root / "replies"
    client.skip_old()
    _ask(client, sender, args.text or QUESTION, files, out, args.wait)
    if not args.text:
        _ask(client, sender, MAKE, [], out, args.wait)
    return 0


def _ask(
    client: WebhookClient, sender: str, text: str, files: list[File], out: Path, wait_seconds: float
) -> None:
    print(f"you      {text}")
    for file in files:
        print(f"         {file.name} ({file.mime}, {_size(len(file.data))})")
    message_id = client.send(sender, text, files)
    for part in client.replies(message_id, wait_seconds):
        _show(client, part, out)
    print()


def _show(client: WebhookClient, part: dict[str, Any], out: Path) -> None:
    if part["text"]:
        print(indent(part["text"], " " * len(LABEL)).replace(" " * len(LABEL), LABEL, 1))
    for attachment in part["attachments"]:
        data = client.content(attachment)
        path = _save(data, attachment["name"], out)
        print(f"file     {nearer(path)} ({attachment.get('mime_type', '')}, {_size(len(data))})")


def _save(data: bytes, name: str, out: Path) -> Path:
    """Write a file under a harmless form of ``name``; one that is there is kept."""
    from bridge.media.names import safe_name

    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    safe = Path(safe_name(name))
    for count in range(1, MOST_NAMES):
        path = out / (safe if count == 1 else f"{safe.stem} ({count}){safe.suffix}")
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
        return path
    raise BridgeError(f"{out} is full of files of that name: remove some")


def _client(args: argparse.Namespace) -> tuple[WebhookClient, str]:
    """The other side of the account, and whom it writes as: its owner, where one is known.

    Raises:
        ConfigError: there is no such account, or it is not one that is asked for replies.
    """
    from bridge.cli.webhook_client import WebhookClient
    from bridge.config import load
    from bridge.paths import plain_name, read_private

    where = home(args)
    config = load(where.config)
    account = plain_name(args.account)
    settings = config.channels.get(CHANNEL, {}).get(account)
    if settings is None:
        raise ConfigError(f"{where.config} has no [channels.{CHANNEL}.{account}]: name one with --account")
    path = where.credentials(CHANNEL, account)
    secrets = json.loads(read_private(path))
    if not secrets.get("ask_token") or settings.get("callback_url"):
        raise ConfigError(f"{CHANNEL}:{account} is not asked for replies: it needs an ask_token in {path}")
    address = (config.web.host, config.web.port, f"/channels/{CHANNEL}/{account}")
    client = WebhookClient(*address, secrets["secrets"][0], secrets["ask_token"])
    return client, settings.get("owner") or "you"


def _ours() -> File:
    from bridge.cli.picture import NAME, sunset
    from bridge.cli.webhook_client import File

    return File(NAME, "image/png", sunset())


def _size(count: int) -> str:
    return f"{count} bytes" if count < 1024 else f"{count / 1024:.1f} KiB"
