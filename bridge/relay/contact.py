"""What an account knows of its platform: whether it answers, what time it is there, and who the bot is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, assert_never

from bridge.channel import (
    ChannelError,
    CredentialsError,
    Delivered,
    Identity,
    Probes,
    Refused,
    SendOutcome,
    Withdrawn,
)
from bridge.clock import Clock
from bridge.logs import Logger
from bridge.relay.setup import Setup
from bridge.retry import Backoff
from bridge.store.contract import IdentityOf, SetIdentity

PROBE_SECONDS = 300.0
SKEW_SECONDS = 120.0


class Health(Protocol):
    """Where the account reports contact with its platform."""

    def contact(self) -> None: ...
    def lost(self, reason: str) -> None: ...
    def known(self, *, bot_id: str) -> None: ...


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


class PlatformClock:
    """How far the platform's clock is ahead of ours: ages are judged by it. Much is told once."""

    def __init__(self, clock: Clock, log: Logger) -> None:
        self._clock, self._log = clock, log
        self.ahead_seconds = 0.0
        self._told = False

    def learn(self, platform_time: datetime | None) -> None:
        """Take over what the platform says; None, where it said nothing, changes nothing."""
        if platform_time is None:
            return
        self.ahead_seconds = (platform_time - self._clock.now()).total_seconds()
        if abs(self.ahead_seconds) > SKEW_SECONDS and not self._told:
            self._told = True
            self._log.warning("clock.skew", seconds=round(self.ahead_seconds))


async def stored_identity(setup: Setup) -> Identity:
    """Who the bot is, as the last probe told."""
    stored = await setup.store.get(IdentityOf(setup.name))
    return Identity(stored.bot_id, stored.name) if stored else Identity()


async def probe(
    channel: Probes, setup: Setup, health: Health, platform: PlatformClock, learn: Callable[[Identity], None]
) -> None:
    """Prove contact now and every five minutes, for ever.

    Raises:
        CredentialsError: the platform refuses the account.
    """
    backoff = Backoff(setup.clock, setup.rng)
    while True:
        try:
            identity = await channel.probe()
        except CredentialsError:
            raise
        except ChannelError as error:
            health.lost("the platform does not answer")
            if backoff.failures == 0:
                setup.log.warning("probe.failed", reason=str(error))
            await backoff.wait()
            continue
        backoff.reset()
        health.contact()
        health.known(bot_id=identity.bot_id)
        platform.learn(identity.platform_time)
        learn(identity)
        await setup.store.do(SetIdentity(setup.name, identity.bot_id, identity.name))
        await setup.clock.sleep(PROBE_SECONDS)
