"""``turnbridge exec``: one question to the running daemon's agent, for scripts."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.cli.chat import FILES, add_account, client_for, now, places
from bridge.cli.common import add_home, home, signals_exit, visible
from bridge.errors import BridgeError, ConfigError

if TYPE_CHECKING:
    from bridge.cli.chat_client import LocalFile, Part
    from bridge.cli.chat_record import Record
    from bridge.cli.chat_turn import Turns
    from bridge.cli.common import Commands


def register(commands: Commands) -> None:
    parser = commands.add_parser("exec", help="put one question to the agent and print the answer")
    parser.add_argument(
        "prompt", nargs="?", default="", metavar="PROMPT", help="what to ask; - or nothing: standard input"
    )
    parser.add_argument(
        "--file", action="append", default=[], metavar="PATH", help="a file to send along; repeatable"
    )
    parser.add_argument(
        "--out",
        default=FILES,
        metavar="DIR",
        help=f"where files that arrive are kept (default: {FILES} here)",
    )
    parser.add_argument(
        "--conversation",
        default="",
        metavar="NAME",
        help="go on with this one (default: a new one each time)",
    )
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="stop the turn after so long")
    parser.add_argument("--json", action="store_true", help="print one object: text, files, notice")
    add_account(parser)
    add_home(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 once it is answered, 1 when it is not."""
    from bridge.cli.chat_record import Record, alone_in
    from bridge.cli.chat_turn import StoppedError, Turns, new_id

    where, message_id = home(args), new_id()
    client = client_for(where, args.account, args.conversation or message_id)
    files = _files(args.file, client.most_bytes)
    text = _prompt(args.prompt)
    if not text.strip() and not files:
        raise ConfigError('there is nothing to ask: give a text, as in turnbridge exec "What is new?"')
    transcript, lock = places(where, args.account)
    with signals_exit(), alone_in(lock, args.conversation) if args.conversation else nullcontext():
        record = Record(transcript, args.conversation) if args.conversation else None
        if record is not None:
            record.add("you", message_id, text, args.file, now())
        answer = Answer(Path(args.out), message_id, record)
        try:
            answer.take(Turns(client), text, files, args.timeout)
        except StoppedError as error:
            print(f"turnbridge: {error}", file=sys.stderr)
            answer.notice = answer.notice or "stopped"
    answer.told(args.json)
    return 0 if answer.is_good else 1


class Answer:
    """What came back."""

    def __init__(self, out: Path, message_id: str, record: Record | None) -> None:
        self._out, self._message_id, self._record = out, message_id, record
        self.text, self.notice = "", ""
        self.files: list[dict[str, object]] = []
        self._trouble = False

    @property
    def is_good(self) -> bool:
        from bridge.cli.chat_turn import ANSWERS

        return self.notice in ANSWERS and not self._trouble

    def take(self, turns: Turns, text: str, files: list[LocalFile], seconds: float | None) -> None:
        """Take what comes. What answers an earlier message of the conversation is told, and no part of it."""
        for part in turns.answer(text, files, self._message_id, seconds):
            if self._record is not None and self._record.has(part.id):
                continue
            saved = self._saved(part)
            if part.reply_to == self._message_id:
                self.text += part.text
                self.notice = self.notice or part.notice
                self.files += [saved] if saved else []
            else:
                print(part.text or (saved and saved["path"]) or "", file=sys.stderr)
            if self._record is not None and part.id:
                kept = [str(saved["path"])] if saved else []
                self._record.add(part.notice or "agent", part.id, part.text, kept, now())

    def _saved(self, part: Part) -> dict[str, object] | None:
        from bridge.cli import chat_files

        if part.file is None:
            return None
        try:
            saved = chat_files.save(part.file, self._out)
        except BridgeError as error:
            print(f"turnbridge: {visible(str(error))}", file=sys.stderr)
            self._trouble = True
            return None
        path = os.path.abspath(saved.path)
        return {"path": path, "name": saved.path.name, "mime": part.file.mime, "size": saved.size}

    def told(self, as_json: bool) -> None:
        """Print it: the answer to standard output, all else to standard error."""
        from bridge.cli import chat_files

        if as_json:
            print(
                json.dumps(
                    {"text": self.text, "files": self.files, "notice": self.notice}, ensure_ascii=False
                )
            )
            return
        if self.text:
            print(self.text, file=sys.stdout if self.is_good else sys.stderr)
        for file in self.files:
            path = Path(str(file["path"]))
            about = chat_files.described(path, path.stat().st_size)
            print(f"{chat_files.shown(path)} ({about})", file=sys.stderr)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{visible(text)} is no number of seconds over 0")
    return seconds


def _files(names: list[str], most_bytes: int | None) -> list[LocalFile]:
    """The files to send along.

    Raises:
        ConfigError: one is none, or too large: the command is wrong.
    """
    from bridge.cli import chat_files

    try:
        return chat_files.fitting([chat_files.local(name) for name in names], most_bytes)
    except BridgeError as error:
        raise ConfigError(str(error)) from error


def _prompt(given: str) -> str:
    """What to ask: ``given``, and behind it what is piped in; that this was nothing is told."""
    if given == "-" or (not given and not sys.stdin.isatty()):
        return sys.stdin.read()
    if not _is_piped():
        return given
    piped = sys.stdin.read()
    if piped.strip():
        return f"{given}\n\n{piped}"
    print("turnbridge: standard input was empty: only the text of the command was asked", file=sys.stderr)
    return given


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file. What is neither, as in a service, is never waited for."""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISREG(kind)
