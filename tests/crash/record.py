"""What is known of a run from outside: what was seen, which turns ran, and the database at rest."""

import sqlite3
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bridge.relay.texts import Language, Text, say
from tests.crash.journal import Journal, Message, Seen
from tests.crash.place import Place
from tests.crash.saying import SAID, like
from tests.crash.trace import Trace
from tests.crash.wishes import TOKEN

MARK, EARLIER, LATEST, MISSED, CRASHED = (
    say(text, Language.EN) for text in (Text.REPEAT, Text.EARLIER, Text.LATEST, Text.MISSED, Text.CRASHED)
)
SETUP = say(Text.SETUP, Language.EN, cure="...")  # whatever a program that does not start lacks
NOTICES = {
    SETUP: Text.SETUP.value,
    **{
        say(text, Language.EN): text.value
        for text in (Text.BUSY, Text.INTERRUPTED, Text.FAILURE, Text.UNREADABLE_DOWNLOAD, Text.REPLACED)
    },
}
_FIXED = (
    Text.REPEAT, Text.EARLIER, Text.LATEST, Text.MISSED, Text.CRASHED, Text.BUSY, Text.INTERRUPTED,
    Text.FAILURE, Text.UNREADABLE_DOWNLOAD, Text.REPLACED,
)  # fmt: skip
_IN_ENGLISH = {say(text, Language.ZH): say(text, Language.EN) for text in _FIXED}
GIVEN_UP = frozenset({"refused", "skipped", "expired", "unknown"})
_SHOWN_TWICE = "(2) "


@dataclass
class Row:
    """A stored message, and the states of its reply's parts."""

    id: int
    conversation: str
    state: str
    reason: str
    revision: int
    parts: list[str] = field(default_factory=list)


@dataclass
class Verdict:
    breaches: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def breach(self, kind: str, message: Message | None = None, more: str = "") -> None:
        about = f" {message.account} {message.message_id} {message.token}" if message else ""
        self.breaches.append(f"{kind}:{about} {more}".rstrip())


@dataclass
class Replies:
    """What was seen in reply to one message. ``marked`` are texts and names that were visibly repeated."""

    notices: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    first: int = -1
    last_at: float = 0.0


@dataclass(frozen=True)
class Record:
    """``replies`` by account and handle; ``carried``: tokens of earlier replies, in later ones."""

    place: Place
    journal: Journal
    rows: dict[tuple[str, str], Row]
    replies: dict[tuple[str, str], Replies]
    carried: set[str]
    trace: Trace
    verdict: Verdict

    def row(self, message: Message) -> Row | None:
        return self.rows.get((message.account, message.message_id))

    def replies_to(self, message: Message) -> Replies:
        return self.replies.get((message.account, message.handle), Replies())

    def after(self, message: Message, row: Row) -> list[tuple[Message, Row]]:
        """The messages of its conversation that were claimed later, in their order, without commands."""
        return [one for one in self._conversations[message.account, row.conversation] if one[1].id > row.id]

    @cached_property
    def _conversations(self) -> dict[tuple[str, str], list[tuple[Message, Row]]]:
        found: dict[tuple[str, str], list[tuple[Message, Row]]] = defaultdict(list)
        for message in self.journal.messages.values():
            row = self.row(message)
            if row is not None and row.reason != SAID:
                found[message.account, row.conversation].append((message, row))
        for messages in found.values():
            messages.sort(key=lambda one: one[1].id)
        return found

    def text_to(self, message: Message) -> str:
        """All that was said in reply to it, however often."""
        replies = self.replies_to(message)
        return "\n".join([*replies.texts, *replies.marked])

    def is_given_up(self, message: Message) -> bool:
        """Whether a part of its reply was."""
        row = self.row(message)
        return row is not None and bool(set(row.parts) & GIVEN_UP)


def stored(path: Path, verdict: Verdict) -> dict[tuple[str, str], Row]:
    """All messages by account and id; also judges whether the database is sound and at rest."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        check = [row[0] for row in db.execute("PRAGMA integrity_check")]
        if check != ["ok"]:
            verdict.breach("the database is damaged", more=str(check[:3]))
        rows = {}
        by_id = {}
        for id_, account, message_id, *fields in db.execute(
            "SELECT id, account, message_id, conversation, state, reason, revision FROM messages ORDER BY id"
        ):
            by_id[id_] = row = Row(id_, *fields)
            if (account, message_id) in rows:
                verdict.breach("stored twice", more=f"{account} {message_id}")
            rows[account, message_id] = row
        for id_, state in db.execute("SELECT message, state FROM parts"):
            if id_ in by_id:
                by_id[id_].parts.append(state)
            if state in ("pending", "sending"):
                verdict.breach("a part that is not over", more=f"of message {id_}")
    finally:
        db.close()
    return rows


def read_replies(journal: Journal) -> tuple[dict[tuple[str, str], Replies], set[str]]:
    """What was seen, by message; and the tokens of earlier replies that later ones carried along."""
    found: dict[tuple[str, str], Replies] = defaultdict(Replies)
    carried: set[str] = set()
    for account, seen in journal.seen.items():
        for number, one in enumerate(seen):
            replies = found[account, one.to]
            replies.first = number if replies.first < 0 else replies.first
            replies.last_at = one.at
            _sort(one, replies, carried)
    return found, carried


def _sort(one: Seen, replies: Replies, carried: set[str]) -> None:
    text, file = _in_english(one.text), one.file
    if file:
        (replies.marked if file.startswith(_SHOWN_TWICE) else replies.files).append(
            file.removeprefix(_SHOWN_TWICE)
        )
        return
    marked = text.startswith(f"{MARK}\n")
    text = text.removeprefix(f"{MARK}\n")
    if like(Text.SETUP, text):
        text = SETUP
    if EARLIER in text or text.startswith(LATEST):
        before, latest, after = text.rpartition(LATEST)
        carried.update(TOKEN.findall(before if latest else text))
        if not latest:  # it went ahead of the next reply, in a message of its own
            return
        text = after.strip()
    if text == CRASHED:  # about no message
        return
    if marked:
        replies.marked.append(text)
    elif text in NOTICES or text.startswith(MISSED):
        replies.notices.append(text)
    else:
        replies.texts.append(text)


def _in_english(text: str) -> str:
    for chinese, english in _IN_ENGLISH.items():
        text = text.replace(chinese, english)
    return text
