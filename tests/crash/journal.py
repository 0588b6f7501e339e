"""What people sent and what they saw: the only things that the judge believes beside the database."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.channel.testing.fakes.webhook import FakeWebhookClient


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
    again: list[str] = field(default_factory=list)  # ids under which it was repeated after its 200


@dataclass(frozen=True, slots=True)
class Seen:
    """One message of the bot's, in the order in which a person sees them. ``to`` is what it replies to."""

    to: str
    text: str
    file: str
    at: float = 0.0


class Journal:
    """``messages`` by account and handle; ``seen`` by account, read from the fakes as they go."""

    def __init__(self) -> None:
        self.messages: dict[tuple[str, str], Message] = {}
        self.seen: dict[str, list[Seen]] = {}
        self.answered: set[tuple[str, str]] = set()
        self.posted: dict[str, str] = {}  # unprompted messages that the daemon confirmed, and their account
        self.retried: Counter[str] = Counter()  # of these, how often the operator sent one once more
        self._read: dict[str, int] = {}

    def add(self, message: Message) -> Message:
        self.messages[message.account, message.handle] = message
        return message

    def look(self, account: str, found: list[Any], show: Any) -> None:
        """Take up what is new in ``found``, a list that only grows."""
        seen = self.seen.setdefault(account, [])
        for raw in found[self._read.get(account, 0) :]:
            for one in show(raw):
                seen.append(replace(one, at=time.monotonic()))
                self.answered.add((account, one.to))
        self._read[account] = len(found)

    def progress(self) -> int:
        """A number that grows with everything that was seen or acknowledged."""
        acknowledged = sum(message.acknowledged for message in self.messages.values())
        return acknowledged + sum(map(len, self.seen.values()))

    def is_answered(self, message: Message) -> bool:
        """Nothing more is to come, as far as its sender knows."""
        return message.recalled_at > 0 or (message.account, message.handle) in self.answered


def feishu_shows(sent: Any) -> Iterator[Seen]:
    yield Seen(sent.reply_to, sent.text, sent.file.name if sent.file else "")


def webhook_shows(data: dict[str, Any]) -> Iterator[Seen]:
    to = data.get("in_reply_to", "")
    files = data["attachments"]
    if data["text"] or not files:
        yield Seen(to, data["text"], "")
    for file in files:
        yield Seen(to, "", file["name"])


def look_at_all(
    journal: Journal,
    feishu: FakeFeishu,
    forgetful: FakeFeishu,
    called: FakeWebhookClient,
    asking: FakeWebhookClient,
) -> None:
    journal.look("feishu:main", feishu.sent, feishu_shows)
    journal.look("forgetful:main", forgetful.sent, feishu_shows)
    journal.look("webhook:called", called.receiver.kept, lambda kept: webhook_shows(kept.data))
    journal.look("webhook:asking", list(asking.asked.values()), webhook_shows)
