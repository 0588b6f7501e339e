"""How much of tokens and money may be used in 24 hours: by each sender, and by the whole account.

The owner's use counts for the account alone, and stops nobody's turns but others'.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from bridge.channel import ChannelSettings
from bridge.clock import Clock
from bridge.store.usage_steps import HourUsage, Used

HOUR_SECONDS, DAY_SECONDS = 3600.0, 86_400.0
MICROS = 1_000_000
SENDERS_KEPT = 65_536


@dataclass(frozen=True, slots=True)
class Caps:
    """What may be used in 24 hours; money in millionths of a US dollar; 0: no limit."""

    tokens: int = 0
    micros: int = 0

    def __bool__(self) -> bool:
        return bool(self.tokens or self.micros)


def caps_of(settings: ChannelSettings) -> tuple[Caps, Caps]:
    """Each sender's, and the account's."""
    own = Caps(settings.tokens_per_day, _micros(settings.cost_per_day))
    return own, Caps(settings.account_tokens_per_day, _micros(settings.account_cost_per_day))


def limits_a_day(settings: ChannelSettings) -> bool:
    """Whether anything is limited of which a restart must not forget what was used."""
    return bool(settings.turns_per_day or any(caps_of(settings)))


def _micros(dollars: float) -> int:
    return round(dollars * MICROS)


@dataclass(slots=True)
class _Hour:
    at: float
    tokens: int = 0
    micros: int = 0


@dataclass(slots=True)
class _Day:
    """What was used in 24 hours, by the hour: an hour goes as a whole, 24 hours after it began."""

    hours: deque[_Hour] = field(default_factory=deque)
    tokens: int = 0
    micros: int = 0

    def add(self, at: float, tokens: int, micros: int) -> None:
        if not self.hours or at - self.hours[-1].at >= HOUR_SECONDS:
            self.hours.append(_Hour(at))
        self.hours[-1].tokens += tokens
        self.hours[-1].micros += micros
        self.tokens += tokens
        self.micros += micros

    def forget(self, before: float) -> None:
        while self.hours and self.hours[0].at <= before:
            gone = self.hours.popleft()
            self.tokens -= gone.tokens
            self.micros -= gone.micros


class Spending:
    """``each`` sender's limits and the ``whole`` account's; senders as in a conversation's key."""

    def __init__(self, each: Caps, whole: Caps, clock: Clock) -> None:
        self._each, self._whole, self._clock = each, whole, clock
        self._senders: OrderedDict[str, _Day] = OrderedDict()
        self._account = _Day()

    @property
    def is_limited(self) -> bool:
        return bool(self._each or self._whole)

    @property
    def account_over(self) -> str:
        """The account's own setting that is reached; "" for none."""
        reached = _reached(self._whole, self._fresh(self._account)) if self._whole else ""
        return f"account_{reached}" if reached else ""

    def over(self, sender: str) -> str:
        """The setting that stops one more turn of ``sender``, who is not the owner; "" for none.

        Of several it is the account's, which stops everybody.
        """
        day = self._senders.get(sender) if self._each else None
        return self.account_over or (_reached(self._each, self._fresh(day)) if day is not None else "")

    def add(self, sender: str, used: Used) -> None:
        """A turn of ``sender`` has ended; "": the owner's."""
        self._add(sender, self._clock.monotonic(), used.tokens, used.micros)

    def remember(self, hours: Iterable[HourUsage], now_ms: int) -> None:
        """What the store has of the last day, oldest first. ``sender``: as in a key, "" for the owner."""
        now = self._clock.monotonic()
        for one in hours:
            age_seconds = max(0.0, (now_ms - one.hour_ms) / 1000)
            self._add(one.sender, now - age_seconds, one.tokens, one.micros)

    def _add(self, sender: str, at: float, tokens: int, micros: int) -> None:
        if self._whole:
            self._account.add(at, tokens, micros)
        if self._each and sender:
            self._senders.setdefault(sender, _Day()).add(at, tokens, micros)
            self._senders.move_to_end(sender)
            if len(self._senders) > SENDERS_KEPT:
                self._senders.popitem(last=False)

    def _fresh(self, day: _Day) -> _Day:
        day.forget(self._clock.monotonic() - DAY_SECONDS)
        return day


def _reached(caps: Caps, day: _Day) -> str:
    if caps.tokens and day.tokens >= caps.tokens:
        return "tokens_per_day"
    return "cost_per_day" if caps.micros and day.micros >= caps.micros else ""
