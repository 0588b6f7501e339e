"""``turnbridge try``: a signed message with a picture to the running daemon, and its reply, over HTTP alone.

It is the other side of a webhook account whose replies are asked for, so it takes the whole way.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, NamedTuple

from bridge.cli.common import add_home, existing, home, nearer, typed, visible
from bridge.errors import BridgeError, ConfigError
from bridge.media.sizes import shown_size

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.cli.webhook_client import File, WebhookClient

CHANNEL = "webhook"
WAIT_SECONDS = 120.0
MOST_NAMES = 10_000
QUESTION = "What did I send you?"
LABEL = "answer   "
_APPROVE = re.compile(r"/(?:approve|批准) ([2-9a-z]{5})\b")
MAKE = "picture 回声.png 480x300"  # a word that the echo agent knows


def register(commands: Commands) -> None:
    parser = commands.add_parser("try", help="send the running daemon a picture, and get one back")
    parser.add_argument("picture", nargs="?", metavar="PICTURE", help="a picture (default: one of ours)")
    parser.add_argument(
        "--file", action="append", default=[], metavar="PATH", help="a file to add; repeatable"
    )
    parser.add_argument("--text", help="what to write (default: a question, then a wish for a picture)")
    parser.add_argument(
        "--account", default="demo", metavar="NAME", help="the webhook account (default: demo)"
    )
    parser.add_argument(
        "--wait", type=float, default=WAIT_SECONDS, metavar="SECONDS", help="for each answer (default: 120)"
    )
    parser.add_argument("--out", metavar="DIR", help="where reply files go (default: replies/ in the home)")
    parser.add_argument(
        "--waiting", action="store_true", help="only show all replies that wait, and settle them"
    )
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 once every message was answered."""
    from bridge.cli.webhook_client import File

    names = ([args.picture] if args.picture else []) + args.file
    files = [File.read(existing(name)) for name in names] or ([] if args.text else [_ours()])
    other = _other_side(args)
    if args.waiting:
        return _show_waiting(other)
    _tell_others(other.client)
    _ask(other, args.text or QUESTION, files)
    if not args.text:
        _ask(other, MAKE, [])
    return 0


class OtherSide(NamedTuple):
    """Of the account: whom it writes as, and by which port it may serve files; None: by none."""

    client: WebhookClient
    sender: str
    file_port: int | None
    out: Path
    wait_seconds: float
    config: Path
    account: str


def _ask(other: OtherSide, text: str, files: list[File]) -> None:
    print(f"you      {visible(text)}")
    for file in files:
        print(f"         {visible(file.name)} ({file.mime}, {shown_size(len(file.data))})")
    question = ""
    with _sendable(other, files) as ready:
        message_id = other.client.send(other.sender, text, ready)
        for part in other.client.replies(message_id, other.wait_seconds):
            _show(other, part)
            if part.get("notice") == "approval":
                question = part["text"]
    if question:
        raise BridgeError(_how_to_answer(other, question))
    print()


@contextmanager
def _sendable(other: OtherSide, files: list[File]) -> Iterator[list[File]]:
    """``files``, those that are too large for a message by an address of this machine.

    Raises:
        BridgeError: the account fetches nothing from there.
    """
    from bridge.cli.file_server import served
    from bridge.cli.starter import FILE_HOST
    from bridge.cli.webhook_client import too_large

    large = too_large(files)
    if not large:
        yield files
        return
    if other.file_port is None:
        raise BridgeError(
            f"{large[0].name} is too large to travel inside a message; to have it fetched from here, add to "
            f'[channels.{CHANNEL}.{other.account}] in {other.config}: file_hosts = ["{FILE_HOST}"] '
            f'and private_hosts = ["{FILE_HOST}"]; or give it an https address, see docs/webhook.md'
        )
    with served(large, other.file_port) as addressed:
        yield [file for file in files if file not in large] + addressed


def _how_to_answer(other: OtherSide, question: str) -> str:
    """Whoever sees the question has this terminal alone: it is left here, and answered by its id."""
    from bridge.paths import Home

    found = _APPROVE.findall(question)
    text = f"/approve {found[-1]}" if found else "/approve"
    where = Home.resolve(str(other.config.parent))
    answer = f'try --account {other.account} --text "{text}"'
    return f"this waits for a yes or no; yes: {typed(where, answer)}; then: {typed(where, 'try --waiting')}"


def _show(other: OtherSide, part: dict[str, Any]) -> None:
    if part["text"]:
        print(indent(visible(part["text"]), " " * len(LABEL)).replace(" " * len(LABEL), LABEL, 1))
    for attachment in part["attachments"]:
        data = other.client.content(attachment)
        path = _save(data, attachment["name"], other.out)
        print(
            f"file     {nearer(path)} ({visible(attachment.get('mime_type', ''))}, {shown_size(len(data))})"
        )


def _place(part: dict[str, Any]) -> str:
    return visible(str(part.get("conversation_id", "?")))


def _tell_others(client: WebhookClient) -> None:
    """Replies that wait already are somebody else's, or of a run that had ended: they are left waiting."""
    left = sorted({_place(part) for part in client.waiting()})
    if left:
        print(
            f"(replies wait in: {', '.join(left)}; they are left there, --waiting shows and settles them)\n"
        )


def _show_waiting(other: OtherSide) -> int:
    count = 0
    for part in other.client.all_replies():
        count += 1
        print(f"in {_place(part)}:")
        _show(other, part)
    print(f"{count} {'part' if count == 1 else 'parts'} of replies" if count else "no reply waits")
    return 0


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


def _other_side(args: argparse.Namespace) -> OtherSide:
    """The other side of the account; it writes as its owner, where one is known.

    Raises:
        ConfigError: there is no such account, or it is not one that is asked for replies.
    """
    from bridge.cli.webhook_client import WebhookClient
    from bridge.config import load
    from bridge.paths import plain_name, read_private

    where = home(args)
    config = load(where.config)
    account = plain_name(args.account.removeprefix(f"{CHANNEL}:"))
    settings = config.channels.get(CHANNEL, {}).get(account)
    if settings is None:
        raise ConfigError(f"{where.config} has no [channels.{CHANNEL}.{account}]: name one with --account")
    path = where.credentials(CHANNEL, account)
    secrets = json.loads(read_private(path))
    if not secrets.get("ask_token") or settings.get("callback_url"):
        raise ConfigError(f"{CHANNEL}:{account} is not asked for replies: it needs an ask_token in {path}")
    secret = _signing(secrets.get("secrets") or [])
    if secret is None:
        raise ConfigError(f"{CHANNEL}:{account} has no secret that signs: {path} needs one, whsec_…")
    address = (config.web.host, config.web.port, f"/channels/{CHANNEL}/{account}")
    keys = (secret, secrets["ask_token"])
    return OtherSide(
        client=WebhookClient(*address, *keys, start=typed(where, "run")),
        sender=settings.get("owner") or "you",
        file_port=_file_port(settings),
        out=Path(args.out) if args.out else where.root / "replies",
        wait_seconds=args.wait,
        config=where.config,
        account=account,
    )


def _signing(entries: str | list[str | dict[str, str]]) -> str | None:
    """The first secret of the account that both sides know; the current one comes first."""
    listed = entries.split() if isinstance(entries, str) else entries
    texts = (one if isinstance(one, str) else one.get("secret", "") for one in listed)
    return next((text for text in texts if text.startswith("whsec_")), None)


def _file_port(settings: dict[str, Any]) -> int | None:
    """A port of this machine that the account fetches files from, also without encryption."""
    both = [host for host in settings.get("file_hosts", []) if host in settings.get("private_hosts", [])]
    ports = (host.partition("127.0.0.1:")[2] for host in both if host.startswith("127.0.0.1:"))
    return next((int(port) for port in ports if port.isdecimal()), None)


def _ours() -> File:
    from bridge.cli.picture import NAME, sunset
    from bridge.cli.webhook_client import File

    return File(NAME, "image/png", sunset())
