"""``/metrics``: everything that is counted, and each account's snapshot, for Prometheus.

The library that writes the format is loaded with the first question, and the text is made in a thread, since
that of a thousand accounts takes a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from bridge.channel import Answer
from bridge.clock import Clock
from bridge.health import Snapshot
from bridge.meter import Meter
from bridge.web.seen import Seen

KEPT_SECONDS = 1.0  # whoever asks again within it gets the same text: asking often costs nothing
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """``snapshots`` measures and returns every account's; ``backlog`` counts the steps that wait."""

    def __init__(
        self,
        meter: Meter,
        snapshots: Callable[[], Awaitable[Sequence[Snapshot]]],
        backlog: Callable[[], int],
        database: Path,
        clock: Clock,
        version: str,
    ) -> None:
        self._meter, self._snapshots, self._backlog = meter, snapshots, backlog
        self._database, self._clock, self._version = database, clock, version
        self._making = asyncio.Lock()
        self._made_at = float("-inf")
        self._text = b""

    async def answer(self) -> Answer:
        async with self._making:
            if self._clock.monotonic() - self._made_at >= KEPT_SECONDS:
                snapshots = await self._snapshots()
                self._text = await asyncio.to_thread(self._make, snapshots)
                self._made_at = self._clock.monotonic()
            return Answer(200, self._text, CONTENT_TYPE)

    def _make(self, snapshots: Sequence[Snapshot]) -> bytes:
        from bridge.web.families import text_of

        log = self._database.with_name(self._database.name + "-wal")
        sizes = _size(self._database), _size(log)
        return text_of(Seen(self._version, self._meter, snapshots, self._backlog(), *sizes))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
