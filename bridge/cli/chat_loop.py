"""A chat at a terminal: what is typed goes out, what arrives is shown, and nothing waits for anything else.

One thread draws, types and decides; the feed's threads only bring events. What was shown is written down
before it is settled, so that a chat that is killed loses nothing and shows nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from bridge.cli import chat_files
from bridge.cli.chat_client import AWAY, ConsoleClient, LocalFile, Part, Progress
from bridge.cli.chat_feed import Back, Came, Event, Failed, Feed, Lost, Moved
from bridge.cli.chat_inbox import Inbox
from bridge.cli.chat_record import Record
from bridge.cli.chat_show import MORE, Screen, Work
from bridge.cli.chat_typing import Ended, Entered, Interrupted, Keys, Lines
from bridge.cli.chat_words import Word, Words
from bridge.cli.common import NotRunningError, visible
from bridge.errors import BridgeError

TICK_SECONDS = 0.1
RETRY_SECONDS = 0.5
HISTORY_LINES, HISTORY_DIGITS = 20, 9
QUESTION = "approval"  # the notice whether a tool may run


class Keyboard(Protocol):
    """What is typed: ``Terminal`` says what each does."""

    def line(self, prompt: str, typed: str = "") -> str | None: ...
    def remember(self, text: str) -> None: ...
    def keys(self) -> AbstractContextManager[None]: ...
    def typed(self, seconds: float) -> str: ...


@dataclass(slots=True)
class Sent:
    """A message that is not answered yet. ``maybe``: it may have arrived, ``taken``: it has."""

    id: str
    text: str
    files: list[LocalFile]
    since: float
    maybe: bool = False
    taken: bool = False
    recalled: bool = False  # it shall be taken back
    told: bool = False  # the daemon knows that


@dataclass(slots=True)
class Desk:
    """What a chat is made of."""

    client: ConsoleClient
    feed: Feed
    keyboard: Keyboard
    screen: Screen
    record: Record
    words: Words
    folder: Path
    again: str  # the command that opens this conversation once more
    status: Callable[[], str]
    now: Callable[[], str]
    monotonic: Callable[[], float] = field(default=time.monotonic)


class Chat:
    def __init__(self, desk: Desk) -> None:
        self._desk, self._screen, self._words = desk, desk.screen, desk.words
        self._inbox = Inbox(desk.screen, desk.record, desk.folder, desk.now)
        self._pending: list[Sent] = []
        self._attached: list[LocalFile] = []
        self._lines, self._keys = Lines(), Keys()
        self._first, self._progress = "", Progress()  # the message whose turn is followed, and how far it is
        self._gone = self._leaving = self._warned = False
        self._asked = False  # whether the last that was said is a question that a turn waits for
        self._retry_at = 0.0
        self._stopped = 0  # turns, since it was last said

    def run(self) -> None:
        """Until the person leaves.

        Raises:
            BridgeError: the daemon refuses to be asked.
        """
        client = self._desk.client
        self._screen.title(self._say(Word.HELLO, account=client.account, conversation=client.conversation))
        waiting = client.replies(0, 0)
        if any(not self._desk.record.has(part.id) for part in waiting):
            self._screen.note(self._say(Word.AWAY))
        self._show(waiting)
        self._desk.feed.start()
        try:
            while not self._leaving:
                self._work() if self._pending else self._prompt()
        finally:
            self._desk.feed.close()
            self._settle()

    def _say(self, word: Word, **values: object) -> str:
        return self._words.say(word, **values)

    def _settle(self) -> None:
        """What was shown last is over, too; where nobody is there to hear it, the record knows."""
        try:
            self._desk.client.replies(self._desk.feed.settled, 0)
        except BridgeError:
            return

    # --- typing -----------------------------------------------------------------------------------

    def _prompt(self) -> None:
        """Nothing runs: let a line be typed, and show what comes meanwhile."""
        self._screen.gap()
        typed, self._keys = self._keys.text, Keys()
        try:
            line = self._desk.keyboard.line(MORE if self._lines.unfinished else self._screen.prompt, typed)
        except KeyboardInterrupt:
            self._lines.take()
            self._leaving, self._warned = self._warned, True
            self._screen.note("" if self._leaving else self._say(Word.LEAVE))
            return
        except EOFError:
            self._leaving = True
            self._screen.note("")
            return
        if line is not None:
            self._warned = False
            self._enter(line)
        self._take()

    def _enter(self, line: str) -> None:
        text = self._lines.feed(line)
        if text is None:
            return
        self._desk.keyboard.remember(text)
        text = text.encode(errors="replace").decode()
        try:
            self._do(text)
        except BridgeError as error:
            self._screen.error(visible(self._words.told(error)))

    def _do(self, text: str) -> None:
        """A command of ours, files that were dragged in, or a message."""
        command, _, rest = text.strip().partition(" ")
        match command:
            case "/help":
                self._screen.note(self._say(Word.HELP))
            case "/quit":
                self._leaving = True
            case "/stop":
                self._stop()
            case "/status":
                self._screen.note(visible(self._desk.status()))
            case "/history":
                self._history(rest.strip() or str(HISTORY_LINES))
            case "/file":
                self._attach(chat_files.named(rest))
            case _:
                if (dragged := chat_files.dragged(text)) and self._is_meant():
                    self._attach(dragged)
                else:
                    self._send(text.removeprefix("/") if text.startswith("//") else text)

    def _is_meant(self) -> bool:
        """Ask whether a line that is only paths stands for the files. While something runs it does."""
        if self._pending:
            return True
        try:
            answer = self._desk.keyboard.line(self._say(Word.OFFER), " ")
        except (KeyboardInterrupt, EOFError):
            return False
        return (answer or "").strip().lower() not in ("n", "no", "否", "不")

    def _attach(self, files: list[LocalFile]) -> None:
        self._attached += chat_files.fitting(files, self._desk.client.most_bytes)
        self._list(self._attached)
        self._screen.note(self._say(Word.ATTACHED if self._attached else Word.NO_FILE))

    def _list(self, files: list[LocalFile]) -> None:
        for file in files:
            self._screen.file(visible(file.path.name), chat_files.described(file.path, file.size))

    def _history(self, count: str) -> None:
        if not (count.isdecimal() and len(count) <= HISTORY_DIGITS and int(count)):
            self._screen.note(self._say(Word.HISTORY))
            return
        self._inbox.above = ""
        lines = self._desk.record.lines[-int(count) :]
        for line in lines:
            if line.text and line.who == "you":
                self._screen.you(line.text, old=True)
            elif line.text:
                self._screen.answer(line.text) if line.who == "agent" else self._screen.notice(line.text)
            for file in line.files:
                self._screen.file(visible(file), "")
        if not lines:
            self._screen.note(self._say(Word.NO_HISTORY))

    # --- out ----------------------------------------------------------------------------------------

    def _send(self, text: str) -> None:
        if not text.strip() and not self._attached:
            return
        files, self._attached = self._attached, []
        sent = Sent(f"console-{token_hex(12)}", text, files, self._desk.monotonic())
        self._desk.record.add("you", sent.id, text, [str(file.path) for file in files], self._desk.now())
        self._inbox.above = sent.id
        self._pending.append(sent)
        self._push()

    def _push(self) -> None:
        """Bring to the daemon what it has not got yet; while it is gone, now and then."""
        if self._gone and self._desk.monotonic() < self._retry_at:
            return
        try:
            for sent in [one for one in self._pending if one.recalled and one.maybe and not one.told]:
                self._desk.client.recall(sent.id)
                self._found()
                sent.taken = sent.told = True  # it is not sent any more, and ends as one that was
            for sent in [one for one in self._pending if not one.taken and not one.recalled]:
                self._push_one(sent)
        except AWAY:
            self._lost()
        self._follow()

    def _push_one(self, sent: Sent) -> None:
        try:
            outcome = self._desk.client.send(sent.id, sent.text, sent.files)
        except AWAY as error:
            sent.maybe = sent.maybe or not isinstance(error, NotRunningError)
            raise
        except BridgeError as error:
            self._screen.error(visible(str(error)))
            self._forget(sent.id)
            return
        self._found()
        sent.taken = sent.maybe = True
        if outcome == "busy":
            self._screen.notice(self._say(Word.BUSY))
            self._forget(sent.id)

    def _stop(self) -> None:
        """Take back all that is not answered."""
        if not self._pending:
            self._screen.note(self._say(Word.IDLE))
        unsent = [sent for sent in self._pending if not sent.maybe]
        for sent in self._pending:
            sent.recalled = True
        for sent in unsent:
            self._forget(sent.id)
        if unsent:
            self._screen.note(self._say(Word.UNSENT))
        self._push()

    def _forget(self, message_id: str) -> None:
        """The message is over, however it ended."""
        self._pending = [sent for sent in self._pending if sent.id != message_id]
        self._follow()
        if self._stopped and not any(sent.recalled for sent in self._pending):
            several = self._stopped > 1
            text = self._say(Word.ALL_STOPPED, count=self._stopped) if several else self._say(Word.STOPPED)
            self._stopped = 0
            self._tell("stopped", message_id, text)

    def _tell(self, notice: str, message_id: str, text: str) -> None:
        """Say how the message ended, and write it down."""
        self._screen.notice(text)
        self._desk.record.add(notice, f"{message_id}-{notice}", text, at=self._desk.now())

    def _follow(self) -> None:
        first = next((sent.id for sent in self._pending if sent.taken), "")
        if first != self._first:
            self._first, self._progress, self._asked = first, Progress(), False
        if first != self._desk.feed.followed:
            self._desk.feed.follow(first)

    # --- in -----------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Something runs: show how far it is, and let keys be typed meanwhile."""
        with self._desk.keyboard.keys(), self._screen.working():
            while self._pending and not self._leaving:
                self._screen.draw(self._standing())
                try:
                    typed = self._keys.feed(self._desk.keyboard.typed(TICK_SECONDS))
                except EOFError:
                    self._leaving = True
                    return
                for each in typed:
                    self._key(each)
                self._take()
                self._push()
        if any(not sent.told for sent in self._pending):
            self._screen.note(self._say(Word.UNTIL_LATER, again=self._desk.again))
        elif self._pending:
            self._screen.note(self._say(Word.LEFT))

    def _standing(self) -> Work:
        first = self._pending[0]
        return Work(
            progress=self._progress,
            seconds=self._desk.monotonic() - first.since,
            more=len(self._pending) - 1,
            stopping=first.recalled,
            asked=self._asked,
            gone=self._gone,
            typed=self._keys.text,
        )

    def _key(self, typed: Entered | Interrupted | Ended) -> None:
        match typed:
            case Entered(text):
                if text.strip():
                    self._screen.you(visible(text))
                self._enter(text)
            case Interrupted():
                if any(sent.recalled for sent in self._pending):
                    self._leaving = True
                else:
                    self._stop()
            case Ended():
                self._leaving = True

    def _take(self) -> None:
        for event in self._desk.feed.take():
            self._happened(event)

    def _happened(self, event: Event) -> None:
        match event:
            case Came(parts):
                self._show(parts)
            case Moved(message_id, progress):
                if progress.over:
                    self._ended(message_id)
                elif message_id == self._first:
                    self._progress = progress
            case Lost():
                self._lost()
            case Back():
                self._found()
                self._push()
            case Failed(error):
                raise error

    def _found(self) -> None:
        if self._gone:
            self._gone, self._retry_at = False, 0.0
            self._screen.note(self._say(Word.BACK))

    def _lost(self) -> None:
        self._retry_at = self._desk.monotonic() + RETRY_SECONDS
        if not self._gone:
            self._gone = True
            self._screen.note(self._say(Word.GONE))

    def _ended(self, message_id: str) -> None:
        """Its turn is over: its reply, if it has one, was stored before that."""
        try:
            self._show(self._desk.client.replies(self._desk.feed.settled, 0))
        except AWAY:
            self._lost()
        sent = next((one for one in self._pending if one.id == message_id), None)
        if sent is not None and not self._gone:
            self._keep_unfinished(sent)
            if sent.recalled:
                self._stopped += 1
            else:
                self._tell("nothing", message_id, self._say(Word.NOTHING))
            self._forget(message_id)
        self._follow()

    def _keep_unfinished(self, sent: Sent) -> None:
        """What was said so far would go with the preview."""
        if text := self._progress.text.strip():
            self._screen.unfinished(text)
            self._desk.record.add("agent", f"{sent.id}-unfinished", text, at=self._desk.now())
        self._progress = Progress()

    def _show(self, parts: list[Part]) -> None:
        """Show what was not shown yet, and settle it all."""
        for message_id in self._inbox.show(parts):
            self._forget(message_id)
        if parts:
            self._asked = parts[-1].notice == QUESTION
            self._desk.feed.settle(parts[-1].cursor)
