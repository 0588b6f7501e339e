"""When silence is a fault: a receive that hangs, a connection that goes mute, messages that do not come."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from bridge.channel import Batch, ChannelError, CredentialsError, Polls, UnreachableError
from bridge.clock import Clock
from bridge.errors import MuteError
from bridge.relay.contact import Health, Trouble
from bridge.relay.setup import Setup
from bridge.retry import RECEIVING, Backoff, Breaker, retrying

BATCH_ITEMS = 4096
RECEIVE_SECONDS = 120.0  # for one receive; what has nothing to tell for longer says so by an empty batch
MUTE_TIMES, MUTE_SECONDS = 10, 3600.0  # contact that brought nothing was lost so often within these
SILENT = "nothing was received for longer than expect_every_seconds: look at what sends to this account"


class Receiver:
    """What is polled: repeated until a batch comes, with waits that grow while none brings items."""

    __slots__ = ("_channel", "_clock", "_had_contact", "_health", "_losses", "_rng", "_trouble", "_waits")

    def __init__(self, channel: Polls, setup: Setup, trouble: Trouble, health: Health) -> None:
        self._channel, self._trouble, self._health = channel, trouble, health
        self._clock, self._rng = setup.clock, setup.rng
        self._waits = Backoff(setup.clock, setup.rng)
        self._losses = Breaker(setup.clock, MUTE_TIMES, MUTE_SECONDS)
        self._had_contact = False

    def next(self, checkpoint: str) -> Coroutine[Any, Any, Batch]:
        """The batch after ``checkpoint``.

        Raises:
            CredentialsError: the account is refused. MuteError: it connects and goes mute again and again.
        """
        once = partial(self._receive, checkpoint)
        return retrying(once, RECEIVING, self._clock, self._rng, self._trouble)

    async def _receive(self, checkpoint: str) -> Batch:
        try:
            async with asyncio.timeout(RECEIVE_SECONDS):
                batch = await self._channel.receive(checkpoint)
            if len(batch.items) > BATCH_ITEMS:
                raise ChannelError("the platform sent more at once than we take")
        except TimeoutError:
            raise self._lost(UnreachableError("the platform fell silent")) from None
        except CredentialsError:
            raise
        except ChannelError as error:
            raise self._lost(error) from error
        self._had_contact = True
        if batch.items:
            self._waits.reset()
            self._losses.reset()
        return batch

    def _lost(self, error: ChannelError) -> ChannelError:
        """What to raise for ``error``; the first one after contact is a loss of it."""
        if not self._had_contact:
            return error
        self._had_contact = False
        self._health.repeated()
        if self._losses.trips():
            return MuteError(str(error))
        asked = error.retry_after_seconds if isinstance(error, UnreachableError) else 0.0
        return UnreachableError(str(error), max(asked, self._waits.next_seconds()))


class Expecting:
    """A health without contact while nothing was received for ``seconds``, whatever else succeeds.

    It counts over the account's runs: a restart is no message.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._heard_at = clock.monotonic()
        self._silent = False
        self._health: Health

    def over(self, health: Health) -> Expecting:
        """Itself, for a run that reports to ``health``."""
        self._health = health
        return self

    def heard(self, at: float) -> None:
        """Something was received, ``at`` by the monotonic clock."""
        self._heard_at = at
        if self._silent:
            self._silent = False
            self._health.contact()

    async def watch(self) -> None:
        """Tell of the silence when it has lasted too long, for ever."""
        while True:
            left = self._heard_at + self._seconds - self._clock.monotonic()
            if left <= 0:
                self._silent = True
                self._health.lost(SILENT)
            await self._clock.sleep(left if left > 0 else self._seconds)

    def contact(self) -> None:
        if self._silent:
            self._health.lost(SILENT)
        else:
            self._health.contact()

    def lost(self, reason: str) -> None:
        self._health.lost(reason)

    def known(self, *, bot_id: str) -> None:
        self._health.known(bot_id=bot_id)

    def skewed(self, seconds: float) -> None:
        self._health.skewed(seconds)

    def repeated(self) -> None:
        self._health.repeated()
