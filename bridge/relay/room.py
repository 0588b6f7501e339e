"""How much an account takes on: claims and conversations it holds, and the turns that run at once."""

from __future__ import annotations

import heapq
from asyncio import Future, get_running_loop
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridge.clock import Clock
from bridge.config import LimitsTable
from bridge.ids import ConversationKey
from bridge.relay.limits import Excess, SenderLimits

NOTICES_KEPT = 4096


class ClaimRoom:
    """Counts open claims. A share is the owner's alone, so that strangers cannot lock the owner out.

    ``senders`` counts for itself: what one person may ask of the account, also of what is over.
    """

    def __init__(self, limits: LimitsTable, clock: Clock, senders: SenderLimits | None = None) -> None:
        self._limits, self._clock = limits, clock
        self.senders = senders or SenderLimits(0, 0, "", clock)
        self._claims: Counter[ConversationKey] = Counter()
        self._total = 0
        self._notices: OrderedDict[ConversationKey, float] = OrderedDict()

    def over(self, conversation: ConversationKey) -> Excess | None:
        return self.senders.over(conversation)

    def has_said_enough(self, conversation: ConversationKey) -> bool:
        return self.senders.has_said_enough(conversation)

    def admits(self, conversation: ConversationKey, owner: bool) -> bool:
        limits = self._limits
        if self._claims[conversation] >= limits.conversation_claims:
            return False
        if conversation not in self._claims and len(self._claims) >= _share(
            limits.sessions, limits.owner_sessions, owner
        ):
            return False
        return self._total < _share(limits.account_claims, limits.owner_claims, owner)

    def notice_due(self, conversation: ConversationKey) -> bool:
        last = self._notices.get(conversation)
        return last is None or self._clock.monotonic() - last >= self._limits.busy_notice_seconds

    def noticed(self, conversation: ConversationKey) -> None:
        self._notices[conversation] = self._clock.monotonic()
        self._notices.move_to_end(conversation)
        if len(self._notices) > NOTICES_KEPT:
            self._notices.popitem(last=False)

    def not_noticed(self, conversation: ConversationKey) -> None:
        """The notice did not come about: it is due again."""
        self._notices.pop(conversation, None)

    @property
    def total(self) -> int:
        return self._total

    def count(self, conversation: ConversationKey) -> int:
        """The conversation's open claims, with those that are being stored."""
        return self._claims[conversation]

    def take(self, conversation: ConversationKey) -> None:
        self._claims[conversation] += 1
        self._total += 1

    def give_back(self, conversation: ConversationKey) -> None:
        self._claims[conversation] -= 1
        self._total -= 1
        if self._claims[conversation] <= 0:
            del self._claims[conversation]


def _share(limit: int, owners: int, owner: bool) -> int:
    return limit if owner else max(1, limit - owners)


class Slots:
    """At most ``total`` at once; others than the owner never hold the last ``owners``. Owner first."""

    def __init__(self, total: int, owners: int) -> None:
        self._free, self._others = total, max(1, total - owners)
        self._waiting: list[tuple[int, int, Future[None]]] = []
        self._count = 0

    @asynccontextmanager
    async def take(self, owner: bool) -> AsyncIterator[None]:
        """Hold a slot for the body of ``async with``. Waiting can be cancelled."""
        turn: Future[None] = get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._waiting, (0 if owner else 1, self._count, turn))
        self._hand_out()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._free += 1
                self._others += 0 if owner else 1
            else:
                turn.cancel()
            self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self._free > 0:
            rank, _, turn = self._waiting[0]
            if turn.cancelled():
                heapq.heappop(self._waiting)
                continue
            if rank and self._others <= 0:
                return
            heapq.heappop(self._waiting)
            self._free -= 1
            self._others -= rank
            turn.set_result(None)
