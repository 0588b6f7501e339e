"""How much one person may ask of an account: messages a minute; turns, tokens and money a day.

The owner may ask for more.

A window slides: what counts is the last minute and the last 24 hours, wherever the person wrote.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bridge.clock import Clock
from bridge.ids import AccountId, ConversationKey
from bridge.relay import payload
from bridge.relay.spending import Caps, Spending
from bridge.store.contract import (
    SenderTurns,
    Store,
    Used,
)
from bridge.store.usage_steps import HoursOf

MINUTE_SECONDS, DAY_SECONDS, DAY_MS = 60.0, 86_400.0, 86_400_000
COMMANDS_PER_MINUTE = 30  # each is answered at once; nobody but a program sends more
SENDERS_KEPT = 65_536  # whoever has so many ids is stopped by no limit of one


class Limit(StrEnum):
    """What is reached. The values are the settings' names, and the reasons in the record."""

    MINUTE = "messages_per_minute"
    DAY = "turns_per_day"
    TOKENS = "tokens_per_day"
    COST = "cost_per_day"
    ACCOUNT_TOKENS = "account_tokens_per_day"
    ACCOUNT_COST = "account_cost_per_day"


OF_A_DAY = tuple(limit for limit in Limit if limit is not Limit.MINUTE)


@dataclass(frozen=True, slots=True)
class Excess:
    """``tell``: the sender was not told yet in this window."""

    limit: Limit
    tell: bool


@dataclass(slots=True)
class _Sender:
    times: deque[float] = field(default_factory=deque)  # of what counted, oldest first
    told_at: float | None = None


class Window:
    """At most ``most`` in any ``seconds``, for each sender; 0 is no limit, and "" nobody who has one."""

    def __init__(self, most: int, seconds: float, clock: Clock) -> None:
        self.most, self.seconds, self._clock = most, seconds, clock
        self._senders: OrderedDict[str, _Sender] = OrderedDict()

    def is_full(self, sender: str) -> bool:
        return self.most > 0 and len(self._of(sender).times) >= self.most

    def is_told(self, sender: str) -> bool:
        told_at = self._of(sender).told_at
        return told_at is not None and self._clock.monotonic() - told_at < self.seconds

    def take(self, sender: str, age_seconds: float = 0.0) -> None:
        """Count one more, of so long ago; what is remembered comes in its order, and before what is new."""
        if self.most and sender:
            self._of(sender).times.append(self._clock.monotonic() - age_seconds)

    def give_back(self, sender: str) -> None:
        """The newest one did not come about."""
        if self.most and sender and (times := self._of(sender).times):
            times.pop()

    def tell(self, sender: str, age_seconds: float = 0.0) -> None:
        self._of(sender).told_at = self._clock.monotonic() - age_seconds

    def not_told(self, sender: str) -> None:
        self._of(sender).told_at = None

    def _of(self, sender: str) -> _Sender:
        """What is known of ``sender``, without what is over."""
        known = self._senders.setdefault(sender, _Sender())
        self._senders.move_to_end(sender)
        if len(self._senders) > SENDERS_KEPT:
            self._senders.popitem(last=False)
        over = self._clock.monotonic() - self.seconds
        while known.times and known.times[0] <= over:
            known.times.popleft()
        return known


class SenderLimits:
    """What an account's senders have used up, each found by a conversation of theirs."""

    def __init__(
        self,
        messages_per_minute: int,
        turns_per_day: int,
        owner: str,
        clock: Clock,
        spending: Spending | None = None,
    ) -> None:
        self._windows = {
            Limit.DAY: Window(turns_per_day, DAY_SECONDS, clock),
            Limit.MINUTE: Window(messages_per_minute, MINUTE_SECONDS, clock),
        }
        self._told = self._windows | {
            limit: Window(0, DAY_SECONDS, clock) for limit in OF_A_DAY if limit is not Limit.DAY
        }
        self._spending = spending or Spending(Caps(), Caps(), clock)
        self._commands = Window(COMMANDS_PER_MINUTE, MINUTE_SECONDS, clock)
        self._owner = payload.escaped(owner)
        self.is_of_a_day = bool(turns_per_day or self._spending.is_limited)
        self.is_limited = bool(messages_per_minute or self.is_of_a_day)

    def over(self, conversation: ConversationKey) -> Excess | None:
        """The limit that one more message of its sender would exceed; of several, one that lasts longer."""
        if not self.is_limited or not (sender := self._sender(conversation)):
            return None
        if spent := self._spending.over(sender):
            return Excess(Limit(spent), not self._told[Limit(spent)].is_told(sender))
        for limit, window in self._windows.items():
            if window.is_full(sender):
                return Excess(limit, not window.is_told(sender))
        return None

    def has_said_enough(self, conversation: ConversationKey) -> bool:
        """Whether its sender gave more commands in this minute than are answered, whatever is set."""
        sender = self._sender(conversation)
        return bool(sender) and self._commands.is_full(sender)

    def command(self, conversation: ConversationKey) -> None:
        """Count a command that is answered."""
        self._commands.take(self._sender(conversation))

    def no_command(self, conversation: ConversationKey) -> None:
        """It was known before, or not stored."""
        self._commands.give_back(self._sender(conversation))

    def take(self, conversation: ConversationKey, *, turn: bool) -> None:
        """Count a message that is answered, and as a turn where it becomes one."""
        if self.is_limited:
            for window in self._counting(turn):
                window.take(self._sender(conversation))

    def give_back(self, conversation: ConversationKey, *, turn: bool) -> None:
        """The message was known before, or not stored."""
        if self.is_limited:
            for window in self._counting(turn):
                window.give_back(self._sender(conversation))

    def spent(self, conversation: ConversationKey, used: Used) -> str:
        """Count what a turn of it used. Returns the account's own limit that is reached now, "" for none."""
        self._spending.add(self._sender(conversation), used)
        return self._spending.account_over

    def told(self, conversation: ConversationKey, limit: str) -> None:
        self._told[Limit(limit)].tell(self._sender(conversation))

    def not_told(self, conversation: ConversationKey, limit: str) -> None:
        """The notice did not come about: it is due again."""
        self._told[Limit(limit)].not_told(self._sender(conversation))

    async def remember(self, account: AccountId, store: Store, now_ms: int) -> None:
        """Take up what the store has of the last day: a restart gives nobody a second one."""
        for turn in await store.get(SenderTurns(account, now_ms - DAY_MS, OF_A_DAY)):
            age_seconds = max(0.0, (now_ms - turn.received_ms) / 1000)
            sender = self._sender(turn.conversation)
            if turn.refused:
                self._told[Limit(turn.refused)].tell(sender, age_seconds)
            else:
                self._windows[Limit.DAY].take(sender, age_seconds)
        hours = await store.get(HoursOf(account, now_ms - DAY_MS)) if self._spending.is_limited else ()
        self._spending.remember([replace(one, sender=self._key_of(one.sender)) for one in hours], now_ms)

    def _key_of(self, sender: str) -> str:
        """A sender's id as in a key; "" for the owner."""
        in_key = payload.escaped(sender)
        return "" if in_key == self._owner else in_key

    def _sender(self, conversation: ConversationKey) -> str:
        """The sender as in a key; "" for the owner."""
        sender = payload.sender_in(conversation)
        return "" if sender == self._owner else sender

    def _counting(self, turn: bool) -> tuple[Window, ...]:
        minute, day = self._windows[Limit.MINUTE], self._windows[Limit.DAY]
        return (minute, day) if turn else (minute,)
