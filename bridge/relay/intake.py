"""What happens to a received item: decided here, purely, before anything is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from bridge.channel import FileKind, Ignored, Inbound, Unreadable
from bridge.ids import ConversationKey
from bridge.relay.ahead import NOBODY, Ahead, Said, first
from bridge.relay.limits import Excess, Limit
from bridge.relay.texts import Text

_OVER = {
    Limit.MINUTE: Text.TOO_FAST,
    Limit.DAY: Text.TOO_MANY_TODAY,
    Limit.TOKENS: Text.TOO_MUCH_TODAY,
    Limit.COST: Text.TOO_MUCH_TODAY,
    Limit.ACCOUNT_TOKENS: Text.USED_UP_TODAY,
    Limit.ACCOUNT_COST: Text.USED_UP_TODAY,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Whom the account answers, and who may use tools. Ids are compared exactly; "" is nobody.

    ``listens``: what is said in voice messages is written down here.
    """

    owner: str
    senders: Literal["owner", "anyone"] | tuple[str, ...]
    tools: bool
    listens: bool = False

    def answers(self, sender: str) -> bool:
        if not sender:
            return False
        if self.senders == "anyone" or sender == self.owner:
            return True
        return self.senders != "owner" and sender in self.senders

    def is_owner(self, message: Inbound) -> bool:
        """Whether the owner wrote it, in a direct chat: the only place of any authority."""
        return bool(self.owner) and message.sender == self.owner and not message.group

    def grants_tools(self, message: Inbound) -> bool:
        return self.tools and self.is_owner(message)


class Room(Protocol):
    def over(self, conversation: ConversationKey) -> Excess | None:
        """What the sender has used up, None while one more message is taken."""
        ...

    def has_said_enough(self, conversation: ConversationKey) -> bool:
        """Whether its sender gave more commands of late than are answered."""
        ...

    def admits(self, conversation: ConversationKey, owner: bool) -> bool:
        """Whether one more message of ``conversation`` can be claimed now."""
        ...

    def notice_due(self, conversation: ConversationKey) -> bool:
        """Whether its sender may be told now that there is no room."""
        ...


class Fate(StrEnum):
    SEEN = "seen"  # stored as seen, nothing else
    NOTICE = "notice"  # answered at once by a fixed, transient text
    BUSY = "busy"  # no room
    OVER = "over"  # its sender has used up what one person may ask
    SAID = "said"  # answered at once, ahead of the queue
    WORK = "work"


@dataclass(frozen=True, slots=True)
class Decision:
    """``text`` is the notice to send, None for none; ``reason`` a fixed word for the record and the log.

    ``said`` is there with SAID.
    """

    fate: Fate
    reason: str = ""
    text: Text | None = None
    said: Said | None = None


WORK = Decision(Fate.WORK)


def nothing_apart(item: Inbound) -> str:
    """For channels on which every message is one to answer."""
    return ""


def classify(
    item: Inbound,
    conversation: ConversationKey,
    policy: Policy,
    room: Room,
    apart: Callable[[Inbound], str] = nothing_apart,
    ahead: Ahead = NOBODY,
) -> Decision:
    """First match wins. Duplicates are the store's to find, in the same step that stores the message.

    ``apart`` tells why a message is only seen, "" for one to answer.
    """
    if (said := first(ahead.for_anybody, item)) is not None:
        return Decision(Fate.SAID, "said", said=said)
    if not policy.answers(item.sender):
        return Decision(Fate.SEEN, "sender_not_answered")
    if reason := apart(item):
        return Decision(Fate.SEEN, reason)
    if (said := first(ahead.for_answered, item)) is not None:
        if room.has_said_enough(conversation):
            return Decision(Fate.SEEN, "too_many_commands")
        return Decision(Fate.SAID, "said", said=said)
    if item.pressed:
        return Decision(Fate.SEEN, "pressed")  # a button of nobody's: it says nothing to an agent
    if (excess := room.over(conversation)) is not None:
        return Decision(Fate.OVER, excess.limit, _OVER[excess.limit] if excess.tell else None)
    if is_bare_voice(item) and not policy.listens:
        return Decision(Fate.NOTICE, "voice", Text.VOICE)
    if not room.admits(conversation, policy.is_owner(item)):
        return Decision(Fate.BUSY, "busy", Text.BUSY if room.notice_due(conversation) else None)
    return WORK


def set_aside(item: Ignored | Unreadable) -> Decision:
    """What has nothing to answer is stored as seen, so that its repeats are known."""
    return Decision(Fate.SEEN, item.reason)


def is_bare_voice(message: Inbound) -> bool:
    """Only voice without a transcript: nothing that an agent could read."""
    if message.text.strip() or message.reference or not message.files:
        return False
    return all(file.kind is FileKind.AUDIO and not file.transcript.strip() for file in message.files)
