"""What an account knows of its platform: whether it answers, what time it is there, and who the bot is."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Protocol, assert_never

from bridge.channel import (
    Delivered,
    Identity,
    Probes,
    Refused,
    SendOutcome,
    UnreachableError,
    Withdrawn,
)
from bridge.clock import Clock
from bridge.errors import BridgeError
from bridge.health import Snapshot
from bridge.logs import Logger
from bridge.relay.setup import Setup
from bridge.retry import RECEIVING, retrying
from bridge.store.contract import IdentityOf, SetIdentity

PROBE_SECONDS = 270.0
PROBE_TIMEOUT_SECONDS = 30.0  # with the wait before it, a lost contact is seen within five minutes
SKEW_SECONDS = 120.0
SHOWN_SECONDS = 1.0  # a smaller change of the skew is not shown: stamps are often of whole seconds


class Health(Protocol):
    """Where the account reports contact with its platform."""

    def contact(self) -> None: ...
    def lost(self, reason: str) -> None: ...
    def known(self, *, bot_id: str) -> None: ...
    def skewed(self, seconds: float) -> None: ...
    def repeated(self) -> None: ...


class Logs(Protocol):
    """Whoever has a log, which is asked for when there is something to tell."""

    @property
    def log(self) -> Logger: ...


class ShownHealth(Health, Protocol):
    """A health that can also be looked at."""

    @property
    def snapshot(self) -> Snapshot: ...


class OnlyTrouble:
    """A health that learns of failed sends only: what is polled has contact while its polls succeed."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def contact(self) -> None:
        """A send that succeeds does not show that anything can be received."""

    def lost(self, reason: str) -> None:
        self._health.lost(reason)


def proves_contact(outcome: SendOutcome) -> bool:
    """Whether the platform gave it: what an adapter refuses by itself has no code of the platform's."""
    match outcome:
        case Delivered():
            return True
        case Refused(code=code) | Withdrawn(code=code):
            return bool(code)
        case _:
            assert_never(outcome)


class Trouble:
    """Tells of something that is repeated until it works: the health each time, the log once."""

    __slots__ = ("_event", "_health", "_logs", "_reason", "_told")

    def __init__(self, health: Health, logs: Logs, event: str, reason: str) -> None:
        self._health, self._logs, self._event, self._reason = health, logs, event, reason
        self._told = False

    def __call__(self, error: BridgeError) -> None:
        self._health.lost(self._reason)
        if not self._told:
            self._told = True
            self._logs.log.warning(self._event, reason=str(error))

    def over(self) -> None:
        self._told = False


class PlatformClock:
    """The platform's clock as it was told, and goes on since: ages are judged by it. Much is logged once.

    It goes on by the monotonic clock, so that a jump of our wall clock changes no age.
    """

    __slots__ = ("_clock", "_logs", "_shown", "_told", "_told_at", "health")

    def __init__(self, clock: Clock, logs: Logs) -> None:
        self._clock, self._logs = clock, logs
        self._told_at: tuple[datetime, float] | None = None  # the platform's time, and ours that never jumps
        self.health: Health | None = None  # of the run that learns
        self._shown = math.inf
        self._told = False

    def learn(self, platform_time: datetime | None) -> None:
        """Take over what the platform says; None, where it said nothing, changes nothing."""
        if platform_time is None:
            return
        self._told_at = (platform_time, self._clock.monotonic())
        ahead = (platform_time - self._clock.now()).total_seconds()
        if self.health is not None and abs(ahead - self._shown) >= SHOWN_SECONDS:
            self._shown = ahead
            self.health.skewed(ahead)
        if abs(ahead) > SKEW_SECONDS and not self._told:
            self._told = True
            self._logs.log.warning("clock.skew", seconds=round(ahead))

    @property
    def ahead_seconds(self) -> float:
        """How far the platform's clock is ahead of ours now; 0 while it has told no time."""
        if self._told_at is None:
            return 0.0
        told, at = self._told_at
        since = self._clock.monotonic() - at
        return (told - self._clock.now()).total_seconds() + since


async def stored_identity(setup: Setup) -> Identity:
    """Who the bot is, as the last probe told."""
    stored = await setup.store.get(IdentityOf(setup.name))
    return Identity(stored.bot_id, stored.name) if stored else Identity()


async def probe(
    channel: Probes, setup: Setup, health: Health, platform: PlatformClock, learn: Callable[[Identity], None]
) -> None:
    """Prove contact now and about every five minutes, for ever.

    Raises:
        CredentialsError: the platform refuses the account.
    """
    trouble = Trouble(health, setup, "probe.failed", "the platform does not answer")
    while True:
        identity = await retrying(partial(_probe, channel), RECEIVING, setup.clock, setup.rng, trouble)
        trouble.over()
        health.contact()
        health.known(bot_id=identity.bot_id)
        platform.learn(identity.platform_time)
        learn(identity)
        await setup.store.do(SetIdentity(setup.name, identity.bot_id, identity.name))
        await setup.clock.sleep(PROBE_SECONDS)


async def _probe(channel: Probes) -> Identity:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
            return await channel.probe()
    except TimeoutError:
        raise UnreachableError("the platform did not answer in time") from None
