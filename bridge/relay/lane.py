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

    def __init__(self, to: str) -> None:
        self.to = to
        self.entries: deque[Entry] = deque()
        self.is_served = False
        self.free_at = -inf
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
