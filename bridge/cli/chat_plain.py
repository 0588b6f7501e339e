"""A chat without a terminal: each line is a message, and its answer is printed before the next is read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bridge.cli import chat_files
from bridge.cli.chat_client import LocalFile, Part
from bridge.cli.chat_record import Record
from bridge.cli.chat_turn import ANSWERS, StoppedError, Turns, new_id
from bridge.cli.chat_typing import Lines
from bridge.cli.common import visible
from bridge.errors import BridgeError


@dataclass(slots=True)
class Printer:
    """Answers go to standard output, all else to standard error. ``failed``: some message had no answer."""

    folder: Path
    record: Record
    now: Callable[[], str]
    failed: bool = field(default=False)

    def show(self, part: Part) -> None:
        if self.record.has(part.id):
            return
        text, files = part.text, []
        if part.file is not None:
            try:
                saved = chat_files.save(part.file, self.folder)
                files = [str(saved.path)]
                text = f"{chat_files.shown(saved.path)} ({chat_files.described(saved.path, saved.size)})"
            except BridgeError as error:
                text, self.failed = visible(str(error)), True
        is_answer = part.file is None and part.notice in ANSWERS
        print(text, file=sys.stdout if is_answer else sys.stderr, flush=True)
        self.failed = self.failed or part.notice not in ANSWERS
        if part.id:
            self.record.add(part.notice or "agent", part.id, part.text, files, self.now())


def talk(turns: Turns, source: Iterable[str], printer: Printer) -> int:
    """Answer every line of ``source``. Exit code 1 when a message had no answer."""
    for part in turns.waiting():
        printer.show(part)
    attached: list[LocalFile] = []
    for text in _messages(source):
        command, _, rest = text.strip().partition(" ")
        if command == "/quit":
            break
        if command == "/file":
            attached += chat_files.fitting(chat_files.named(rest), turns.most_bytes)
        elif text.strip() or attached:
            _ask(turns, text, attached, printer)
            attached = []
    if attached:
        _ask(turns, "", attached, printer)
    return 1 if printer.failed else 0


def _messages(source: Iterable[str]) -> Iterable[str]:
    lines = Lines()
    for line in source:
        if (text := lines.feed(line.rstrip("\r\n"))) is not None:
            yield text
    if lines.unfinished:
        yield lines.take()


def _ask(turns: Turns, text: str, files: list[LocalFile], printer: Printer) -> None:
    message_id = new_id()
    printer.record.add("you", message_id, text, [str(file.path) for file in files], printer.now())
    try:
        for part in turns.answer(text, files, message_id):
            printer.show(part)
    except StoppedError as error:
        print(str(error), file=sys.stderr)
        printer.failed = True
