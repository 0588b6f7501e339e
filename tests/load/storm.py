"""R9: a thousand accounts come back from an outage of five minutes, in virtual time.

The platform refuses everybody in all its ways: it throttles for up to five seconds, fails, does not take the
connection, and answers only after half a minute. Then it is there again and takes ``CAPACITY`` requests a
second; whoever comes beyond that is throttled. What the accounts do is ours: real deliveries on a real store,
or real receives.

Owed are: all is done within 3.5 times the least that the capacity allows, no second sees more than 1.2 times
the capacity, and nobody comes back before the time that they were told.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bridge.channel import (
    Batch,
    ChannelCredentials,
    ChannelSettings,
    ChannelSpec,
    Delivered,
    Limit,
    OutboundPart,
    OutcomeUnknownError,
    UnknownOutcome,
    UnreachableError,
)
from bridge.channel.testing.clock import FakeClock, settle
from bridge.clock import unix_ms
from bridge.ids import AccountId, ConversationKey, MessageId
from bridge.logs import get_logger
from bridge.relay import outbox
from bridge.relay.contact import Trouble
from bridge.relay.delivery import Delivery, Terms
from bridge.relay.outbox import Address
from bridge.relay.silence import Receiver
from bridge.relay.texts import Language
from bridge.store.contract import Post
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from tests.relay.harness import FakeHealth, Logs

ACCOUNTS = 1000
CAPACITY = 50  # requests a second
OUTAGE_SECONDS = 300.0
SLOW_SECONDS = 30.0
STEP_SECONDS = 1.0
DRAIN_TIMES, PEAK_TIMES = 3.5, 1.2
GIVE_UP_TIMES = 20  # of the least: it does not drain at all
SPEC = ChannelSpec(
    name="storm", title=lambda _: "Storm", settings=ChannelSettings, credentials=ChannelCredentials,
    create=lambda settings, credentials, http, place: object(), identity=lambda settings, credentials: (),
    text_limit=Limit(1000), idempotent_seconds=3600, render=str,
)  # fmt: skip


class Platform:
    """Takes requests as the hour has it, and writes down when each came and who came too early."""

    def __init__(self, clock: FakeClock, rng: random.Random, capacity: int) -> None:
        self._clock, self._rng, self._capacity = clock, rng, capacity
        self._began = clock.monotonic()
        self._not_before: dict[str, float] = {}
        self._taken: Counter[int] = Counter()
        self.came: Counter[int] = Counter()  # since it is back, by its second
        self.done: set[str] = set()
        self.undercut = 0
        self.tries = 0

    @property
    def back_seconds(self) -> float:
        """Since when it is back; negative before."""
        return self._clock.monotonic() - self._began - OUTAGE_SECONDS

    async def take(self, who: str) -> None:
        """One request of ``who``.

        Raises:
            UnreachableError, OutcomeUnknownError: it was not taken.
        """
        self.tries += 1
        now = self._clock.monotonic()
        if now < self._not_before.get(who, now):
            self.undercut += 1
        if self.back_seconds < 0:
            await self._fail(who)
        second = int(self.back_seconds)
        self.came[second] += 1
        if self._taken[second] >= self._capacity:
            raise self._throttled(who, self._rng.uniform(1, 5))
        self._taken[second] += 1
        self.done.add(who)

    async def _fail(self, who: str) -> None:
        match self._rng.randrange(4):
            case 0:
                raise self._throttled(who, self._rng.uniform(1, 5))
            case 1:
                raise UnreachableError("no connection")
            case 2:
                raise OutcomeUnknownError("status 502")
            case _:
                await self._clock.sleep(SLOW_SECONDS)
                if self.back_seconds < 0:
                    raise OutcomeUnknownError("no answer in time")

    def _throttled(self, who: str, seconds: float) -> UnreachableError:
        self._not_before[who] = self._clock.monotonic() + seconds
        return UnreachableError("throttled", retry_after_seconds=seconds)


@dataclass(frozen=True)
class Stormed:
    """What was seen. ``least_seconds`` is what the capacity allows at best."""

    seed: int
    accounts: int
    left: int
    seconds: float
    least_seconds: float
    peak: int
    capacity: int
    undercut: int
    tries: int

    @property
    def breaches(self) -> list[str]:
        found = []
        if self.left:
            found.append(f"{self.left} accounts never came through")
        if self.seconds > DRAIN_TIMES * self.least_seconds:
            found.append(f"it took {self.seconds:.0f} s, over {DRAIN_TIMES} times {self.least_seconds:.0f} s")
        if self.peak > PEAK_TIMES * self.capacity:
            found.append(f"{self.peak} came in one second, over {PEAK_TIMES} times {self.capacity}")
        if self.undercut:
            found.append(f"{self.undercut} came before the time that they were told")
        return found

    def __str__(self) -> str:
        return (
            f"{self.accounts} accounts, seed {self.seed}: done {self.seconds:.0f} s after the outage, "
            f"{self.seconds / self.least_seconds:.2f} times the least; at most {self.peak} a second "
            f"({self.peak / self.capacity:.2f} of what it can), {self.undercut} too early, {self.tries} tries"
        )


@dataclass
class Sender:
    """A channel that sends."""

    name: str
    platform: Platform

    async def send(self, part: OutboundPart) -> Delivered:
        await self.platform.take(self.name)
        return Delivered("p")


@dataclass
class Poller:
    """A channel that is polled; what was answered once waits for ever."""

    name: str
    platform: Platform
    answered: bool = False

    async def receive(self, checkpoint: str) -> Batch:
        if self.answered:
            await asyncio.get_running_loop().create_future()
        await self.platform.take(self.name)
        self.answered = True
        return Batch([])


Run = Callable[[Platform, FakeClock, random.Random, str], Coroutine[Any, Any, None]]


@dataclass
class _Clocked:
    """All that a receiver uses of an account's setup."""

    clock: FakeClock
    rng: random.Random


async def receiving(platform: Platform, clock: FakeClock, rng: random.Random, name: str) -> None:
    """One account's receives: the first succeeds, and its contact is lost in the outage."""
    poller, health = Poller(name, platform), FakeHealth()
    trouble = Trouble(health, Logs(), "receive.failed", "it fails")
    receiver = Receiver(poller, cast(Any, _Clocked(clock, rng)), trouble, health)
    while True:
        await receiver.next("")


@dataclass
class Sending:
    """Accounts that each have one message to deliver, on one store."""

    store: Any
    number: int = field(default=0)

    async def __call__(self, platform: Platform, clock: FakeClock, rng: random.Random, name: str) -> None:
        account = AccountId(f"storm:{name}")
        reply = outbox.notice("hello", Address(ConversationKey("c"), "to", "", Language.EN))
        now_ms = unix_ms(clock.now())
        ids = await self.store.do(Post(account, reply, now_ms))
        terms = Terms(SPEC, UnknownOutcome.RESEND, 86_400)
        delivery = Delivery(terms, self.store, clock, rng, get_logger("load"), lambda copies: None)
        delivery.add(outbox.stored_parts(account, MessageId(""), reply, ids, now_ms, ""))
        await delivery.run(Sender(name, platform), FakeHealth())


@asynccontextmanager
async def sending() -> AsyncIterator[Run]:
    with tempfile.TemporaryDirectory(prefix="tb-load-") as folder:
        async with open_store(Path(folder, "state", "load.db"), workers=InlineWorker) as store:
            yield Sending(store)


async def storm(run: Run, seed: int, accounts: int = ACCOUNTS, capacity: int = CAPACITY) -> Stormed:
    """Let ``accounts`` meet the outage, all at its beginning."""
    clock, rng = FakeClock(), random.Random(seed)
    platform = Platform(clock, rng, capacity)
    least = accounts / capacity
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(run(platform, clock, rng, f"a{number}")) for number in range(accounts)]
        await settle()
        while len(platform.done) < accounts and platform.back_seconds < GIVE_UP_TIMES * least:
            await clock.advance(STEP_SECONDS)
        seconds = platform.back_seconds
        await settle()
        for one in running:
            one.cancel()
    peak = max(platform.came.values(), default=0)
    left = accounts - len(platform.done)
    return Stormed(seed, accounts, left, seconds, least, peak, capacity, platform.undercut, platform.tries)
