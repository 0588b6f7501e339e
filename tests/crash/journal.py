"""What people sent and what they saw: the only things that the judge believes beside the database."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.crash.saying import asked
from tests.crash.wishes import TOKEN


@dataclass(slots=True)
class Message:
    """``message_id`` is what the daemon stores it under, ``handle`` what a reply to it refers to."""

    account: str
    token: str
    message_id: str
    handle: str
    sender: str
    wants_file: bool = False
    wants_long: bool = False
    brings: int = 0
    acknowledged: bool = False
    recalled_at: float = 0.0  # by the monotonic clock, when its recall was acknowledged
    recalled_first: bool = False  # before it was delivered
    anonymous: bool = False  # a notice about it does not say what it answers
    over: bool = False  # its sender expects nothing more
    command: str = ""  # what it is where it asks for no turn: see saying.py
    chooses: str = ""  # what it names, where it is a command that chooses: see choosing.py
    question: str = ""  # the one that it answers by its id
    approves: bool = False
    card: str = ""  # on which a button was pressed
    sent_at: float = 0.0  # by the monotonic clock, as the two below
    acknowledged_at: float = 0.0
    again: list[str] = field(default_factory=list)  # ids under which it was repeated after its 200

    def is_acknowledged(self, acknowledged: bool) -> None:
        self.acknowledged = acknowledged
        if acknowledged:
            self.acknowledged_at = time.monotonic()


@dataclass(frozen=True, slots=True)
class Seen:
    """One message of the bot's, in the order in which a person sees them. ``to`` is what it replies to."""

    to: str
    text: str
    file: str
    at: float = 0.0


@dataclass(slots=True)
class Question:
    """A call that was put to the owner, as it stood in the chat."""

    account: str
    id: str
    token: str
    shown_at: float


class Journal:
    """``messages`` by account and handle; ``seen`` by account, read from the fakes as they go."""

    def __init__(self) -> None:
        self.messages: dict[tuple[str, str], Message] = {}
        self.seen: dict[str, list[Seen]] = {}
        self.answered: set[tuple[str, str]] = set()
        self.told: set[str] = set()  # tokens of messages that some reply answers
        self.questions: dict[tuple[str, str], Question] = {}  # by account and id
        self.posted: dict[str, str] = {}  # unprompted messages that the daemon confirmed, and their account
        self.retried: Counter[str] = Counter()  # of these, how often the operator sent one once more
        self._read: dict[str, int] = {}
        self._by_token: dict[tuple[str, str], Message] = {}

    def add(self, message: Message) -> Message:
        self.messages[message.account, message.handle] = message
        if message.token:
            self._by_token[message.account, message.token] = message
        return message

    def of(self, account: str, token: str) -> Message | None:
        return self._by_token.get((account, token))

    def look(self, account: str, found: list[Any], show: Any) -> None:
        """Take up what is new in ``found``, a list that only grows."""
        seen = self.seen.setdefault(account, [])
        for raw in found[self._read.get(account, 0) :]:
            for one in show(raw):
                seen.append(replace(one, at=time.monotonic()))
                self._see(account, seen[-1])
        self._read[account] = len(found)

    def _see(self, account: str, one: Seen) -> None:
        self.answered.add((account, one.to))
        message = self.messages.get((account, one.to))
        if message is not None and not message.command:
            self.told.update(TOKEN.findall(one.text))
        if id_ := asked(one.text):
            (token,) = TOKEN.findall(one.text) or [""]
            self.questions.setdefault((account, id_), Question(account, id_, token, one.at))

    def progress(self) -> int:
        """A number that grows with everything that was seen or acknowledged."""
        acknowledged = sum(message.acknowledged for message in self.messages.values())
        return acknowledged + sum(map(len, self.seen.values()))

    def is_answered(self, message: Message) -> bool:
        """Nothing more is to come, as far as its sender knows."""
        if message.over or message.recalled_at > 0 or message.token in self.told:
            return True
        return (message.account, message.handle) in self.answered


def feishu_shows(sent: Any) -> Iterator[Seen]:
    yield Seen(sent.reply_to, sent.text, sent.file.name if sent.file else "")


def webhook_shows(data: dict[str, Any]) -> Iterator[Seen]:
    to = data.get("in_reply_to", "")
    files = data["attachments"]
    if data["text"] or not files:
        yield Seen(to, data["text"], "")
    for file in files:
        yield Seen(to, "", file["name"])
