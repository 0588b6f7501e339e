"""What a command in a terminal waits for. It asks again and again: what nobody asks after any more ends."""

from __future__ import annotations

import asyncio
import secrets

from bridge.clock import Clock
from bridge.relay.waiting import happens

FOLLOW_SECONDS = 60.0
ASKING_SECONDS = 10.0  # of one asking: no command waits longer than 20 s for an answer


class Followed:
    """One such thing under its ``id``, which nobody can guess."""

    def __init__(self, clock: Clock) -> None:
        self.id = secrets.token_hex(8)
        self._clock, self._asked_at = clock, clock.monotonic()
        self._news = asyncio.Event()

    @property
    def is_abandoned(self) -> bool:
        return self._clock.monotonic() - self._asked_at >= FOLLOW_SECONDS

    def tell(self) -> None:
        """Something is different now: whoever waits for it is answered."""
        self._news.set()
        self._news = asyncio.Event()

    async def news(self, seconds: float) -> None:
        """Somebody asks: wait until something is different, ``seconds`` and ``ASKING_SECONDS`` at most."""
        self._asked_at = self._clock.monotonic()
        await happens(self._news, min(seconds, ASKING_SECONDS), self._clock)
        self._asked_at = self._clock.monotonic()
