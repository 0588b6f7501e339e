"""What turns have used, as durable steps and reads: tokens, and money in millionths of a US dollar."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bridge.ids import AccountId
from bridge.store.step import Query, Step

MOST = 10**12  # of one turn: more is no figure of any model's, and sums of it stay whole numbers


@dataclass(frozen=True, slots=True)
class Used:
    """What a turn used, who asked for it, and which agent ran it. None: nobody told."""

    sender: str = ""
    agent: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_micros: int | None = None

    @property
    def tokens(self) -> int:
        return bounded(self.input_tokens) + bounded(self.output_tokens)

    @property
    def micros(self) -> int:
        return bounded(self.cost_micros)


NOTHING_USED = Used()


def bounded(figure: int | None) -> int:
    """What counts of a figure: agents tell them, and may tell anything."""
    return min(figure or 0, MOST)


@dataclass(frozen=True, slots=True)
class Spend(Step[None]):
    """Count a turn whose message was over before it: by itself, as no claim ends with it."""

    account: AccountId
    used: Used
    now_ms: int


class UsageBy(StrEnum):
    """What is summed up together."""

    SENDER = "sender"
    ACCOUNT = "account"
    DAY = "day"  # in UTC
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums over turns. ``uncounted`` of them told no tokens, ``unpriced`` no cost: both count as 0.

    ``name`` is what they have in common: an id, a name, or a date as 2026-08-20; ``account`` is "" where
    they are of several.
    """

    account: str
    name: str
    turns: int
    input_tokens: int
    output_tokens: int
    cost_micros: int
    uncounted: int = 0
    unpriced: int = 0


@dataclass(frozen=True, slots=True)
class UsageOf(Query[tuple[Usage, ...]]):
    """The usage since ``since_ms``, to the hour; ``account`` "": of all. ``limit`` sums, the largest first.

    What was spent by more is in a last sum without a name. Days come in their order.
    """

    by: UsageBy
    since_ms: int
    account: str = ""
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class HourUsage:
    """What a sender has used in the hour that began at ``hour_ms``."""

    sender: str
    hour_ms: int
    tokens: int
    micros: int


@dataclass(frozen=True, slots=True)
class HoursOf(Query[tuple[HourUsage, ...]]):
    """The account's hours that began at or after ``since_ms``, oldest first, the newest ``limit``."""

    account: AccountId
    since_ms: int
    limit: int = 100_000
