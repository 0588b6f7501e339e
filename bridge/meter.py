"""What happens, in plain numbers: an addition, or a search among nine bounds, for each thing that is counted.

The parts of a message's way write here. ``bridge/web/metrics.py`` reads it, from a thread of its own: what it
reads is one number, or a copy made in one go. Counts begin with the process.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from bridge.clock import Clock
from bridge.ids import AccountId

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0)  # seconds: of a step, a commit, the loop
LONG = (0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 21600.0)  # seconds: of a turn, a delivery, a wait

LAG_SECONDS = 1.0  # between two looks at the loop


class Histogram:
    """Seconds, sorted under ``bounds``; ``counts`` has one place more, for what is over the last.

    There are none before the first: of a thousand accounts most are idle.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts: list[int] = []
        self.total = 0.0

    def add(self, seconds: float) -> None:
        if not self.counts:
            self.counts = [0] * (len(self.bounds) + 1)
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class TurnEnd(StrEnum):
    """How the work on a message ended, once it had its slot."""

    COMPLETED = "completed"
    FAILED = "failed"  # the agent's own failure, or a cancelled turn
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"  # the session server refused it, or went away
    EMPTY = "empty"  # there was nothing to put to an agent


class Try(StrEnum):
    """How one try to send a part ended."""

    SENT = "sent"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    UNREACHABLE = "unreachable"  # nothing was accepted
    UNKNOWN = "unknown"  # maybe it was
    NOT_TAKEN = "not_taken"  # whoever waited for the response was gone
    UNAUTHORIZED = "unauthorized"  # the platform refused the account


class AccountMeter:
    """What one account has done, over all its runs."""

    __slots__ = (
        "claims",
        "cost_micros",
        "deliveries",
        "given_up",
        "held",
        "messages",
        "received_bytes",
        "requests",
        "sent_bytes",
        "slot_waits",
        "tokens",
        "tries",
        "turns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()  # by the answer's class, such as "2xx"
        self.received_bytes = 0
        self.messages: Counter[str] = Counter()  # by what became of them
        self.claims = Histogram(SHORT)
        self.slot_waits = Histogram(LONG)
        self.turns: dict[TurnEnd, Histogram] = {}
        self.tokens: Counter[str] = Counter()  # "input" and "output"
        self.cost_micros = 0  # in millionths of a US dollar
        self.tries: Counter[Try] = Counter()
        self.deliveries = Histogram(LONG)
        self.sent_bytes = 0
        self.given_up: Counter[str] = Counter()  # parts, by the state they ended in
        self.held = 0  # texts that wait for the next reply to take them along

    def requested(self, status: int, size: int) -> None:
        """A request of ``size`` bytes was answered; 0: it was left unanswered."""
        self.requests[f"{status // 100}xx" if status else "none"] += 1
        self.received_bytes += size

    def claimed(self, results: Iterable[str], seconds: float) -> None:
        """Items became durable together, within ``seconds`` after they were read."""
        self.messages.update(results)
        self.claims.add(seconds)

    def turned(self, end: TurnEnd, seconds: float) -> None:
        """The work on a message ended, ``seconds`` after it had its slot."""
        self.turns.setdefault(end, Histogram(LONG)).add(seconds)

    def spent(self, input_tokens: int, output_tokens: int, cost_micros: int) -> None:
        """A turn that has ended used so much, as far as its agent told."""
        self.tokens.update(input=input_tokens, output=output_tokens)
        self.cost_micros += cost_micros

    def delivered(self, seconds: float, size: int) -> None:
        """A part of ``size`` bytes arrived, ``seconds`` after it was put into the outbox."""
        self.deliveries.add(max(0.0, seconds))  # by the wall clock, which may have been set back
        self.sent_bytes += size

    def gave_up(self, state: str, parts: int = 1, is_held: bool = False) -> None:
        """So many parts ended in ``state``; ``is_held``: their text waits for the next reply."""
        self.given_up[state] += parts
        self.held += is_held


class StoreMeter:
    """What the store's writer does. Written by its thread alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.steps = 0
        self.commits = Histogram(SHORT)

    @contextmanager
    def commit(self, steps: int) -> Iterator[None]:
        """The block takes a group of ``steps`` and commits it."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self.steps += steps
            self.commits.add(self._clock.monotonic() - began)


class Meter:
    """All that is counted in this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.began = clock.now()
        self.store = StoreMeter(clock)
        self.loop_lag = Histogram(SHORT)
        self.accounts: dict[AccountId, AccountMeter] = {}

    def of(self, account: AccountId) -> AccountMeter:
        """An account's own, which stays over its restarts."""
        return self.accounts.setdefault(account, AccountMeter())

    def keep(self, accounts: Iterable[AccountId]) -> None:
        """Forget all other accounts: they are gone from the settings."""
        wanted = set(accounts)
        self.accounts = {name: meter for name, meter in self.accounts.items() if name in wanted}

    async def watch_loop(self) -> None:
        """Measure, once a second and for ever, how late the event loop is."""
        while True:
            due = self._clock.monotonic() + LAG_SECONDS
            await self._clock.sleep(LAG_SECONDS)
            self.loop_lag.add(max(0.0, self._clock.monotonic() - due))
