"""What arrives in a chat: each part is shown once, kept where it is a file, and then written down."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import takewhile
from pathlib import Path

from bridge.cli import chat_files
from bridge.cli.chat_client import Part
from bridge.cli.chat_record import Record
from bridge.cli.chat_show import Screen
from bridge.cli.common import visible
from bridge.errors import BridgeError

QUESTION_CHARACTERS = 200


class Inbox:
    """``folder`` is where files are kept, ``now`` the time that is written down."""

    def __init__(self, screen: Screen, record: Record, folder: Path, now: Callable[[], str]) -> None:
        self._screen, self._record, self._folder, self._now = screen, record, folder, now
        self.above = ""  # the message that stands right above; an answer to another comes with its question

    def show(self, parts: list[Part]) -> list[str]:
        """Show what was not shown yet. Returns the messages that are answered with it."""
        new = [part for part in parts if not self._record.has(part.id)]
        while new:
            first = new[0]
            same = list(takewhile(partial(_goes_with, first), new)) or [first]
            self._show_text(same) if first.file is None else self._show_file(first)
            new = new[len(same) :]
        return [part.reply_to for part in parts if part.final and part.reply_to]

    def _show_text(self, parts: list[Part]) -> None:
        first, text = parts[0], "".join(part.text for part in parts)
        question = self._record.question(first.reply_to)
        if first.notice != "busy" or not question:  # else it was said when that was sent
            if question and first.reply_to != self.above:
                self._screen.you(question[:QUESTION_CHARACTERS], old=True)
                self.above = first.reply_to
            self._screen.notice(text) if first.notice else self._screen.answer(text)
        for part in parts:
            self._record.add(part.notice or "agent", part.id, text, at=self._now())
            text = ""  # all of it stands in the first line

    def _show_file(self, part: Part) -> None:
        assert part.file is not None  # noqa: S101 - by whoever calls it
        files = []
        try:
            saved = chat_files.save(part.file, self._folder)
            files = [str(saved.path)]
            self._screen.file(chat_files.shown(saved.path), chat_files.described(saved.path, saved.size))
        except BridgeError as error:
            self._screen.error(visible(str(error)))
        self._record.add("agent", part.id, "", files, self._now())


def _goes_with(first: Part, part: Part) -> bool:
    """Whether it is more of the same text."""
    return part.file is None and (part.reply, part.notice) == (first.reply, first.notice)
