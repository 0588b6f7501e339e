"""One recipient's parts on their way out, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from bridge.clock import Clock
from bridge.ids import PartId
from bridge.relay.waiting import happens
from bridge.store.contract import OutboxPart

MOST_WAITS = 4096  # kept of recipients for whom nothing is there


@dataclass(slots=True)
class Entry:
    """A part in its lane, and its times by the monotonic clock.

    ``due_at``: not to be tried before. ``give_up_at``: too old then. ``known_until``: until then the platform
    recognises a repeat by the client id. ``dropped``: the store has ended it already.
    """

    part: OutboxPart
    due_at: float
    give_up_at: float
    known_until: float
    dropped: bool = False


class Lane:
    """Served while its head can be sent; at rest while there is no way out for it.

    ``free_at``: until then, by the monotonic clock, the platform asked to be sent nothing more.
    """

    def __init__(self, to: str, free_at: float = -inf) -> None:
        self.to, self.free_at = to, free_at
        self.entries: deque[Entry] = deque()
        self.is_served = False
        self._stirred = asyncio.Event()

    @property
    def head(self) -> Entry:
        return self.entries[0]

    def holds(self, part_id: PartId) -> bool:
        """Whether the part is here. Mostly ids come in their order."""
        if not self.entries or self.entries[-1].part.part_id < part_id:
            return False
        return any(entry.part.part_id == part_id for entry in self.entries)

    def stir(self) -> None:
        """End a ``pause``: something has changed."""
        self._stirred.set()

    async def pause(self, seconds: float, clock: Clock) -> None:
        """Wait ``seconds``, or until stirred."""
        self._stirred.clear()
        await happens(self._stirred, seconds, clock)

    def take_off(self) -> None:
        """The head is final."""
        self.entries.popleft()

    def take_off_reply(self, reply_id: str) -> None:
        """The head's whole reply is final."""
        while self.entries and self.head.part.reply_id == reply_id:
            self.entries.popleft()

    def drop(self, ended: Callable[[OutboxPart], bool]) -> bool:
        """The store has ended these parts. True: the head is one of them, and may be on its way just now."""
        for entry in self.entries:
            entry.dropped = entry.dropped or ended(entry.part)
        left = [entry for place, entry in enumerate(self.entries) if not place or not entry.dropped]
        self.entries = deque(left)
        return bool(left) and left[0].dropped

    def rest_of_reply(self, part: OutboxPart) -> list[OutboxPart]:
        return [other.part for other in self.entries if other.part.reply_id == part.reply_id]


class Waits:
    """Until when the platform asked to be sent nothing for recipients who have no lane now.

    Times are the monotonic clock's. Of ``MOST_WAITS``, the one that ends first makes room.
    """

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def keep(self, lane: Lane, now: float) -> None:
        """The lane has nothing more to send: its wait goes on."""
        if lane.free_at <= now:
            return
        if len(self._until) >= MOST_WAITS:
            del self._until[min(self._until, key=self._until.__getitem__)]
        self._until[lane.to] = lane.free_at

    def take(self, to: str) -> float:
        """When a lane that begins is free: at once where nothing was asked."""
        return self._until.pop(to, -inf)
