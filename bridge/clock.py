"""The one source of time. Everything that waits or stamps takes a ``Clock``, so tests move time by hand."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The current instant, aware, in UTC. For stamps and platforms' ages only: it may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring waits."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait ``seconds``, measured by ``monotonic``; zero or less still yields once."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - the one place that reads the wall clock

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


def unix_seconds(instant: datetime) -> int:
    return int(instant.timestamp())


def unix_ms(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)


def from_unix_ms(ms: int) -> datetime:
    """The instant ``ms`` milliseconds after 1970.

    Raises:
        ValueError: outside the years that a datetime can hold.
    """
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError("a time outside the calendar") from error
