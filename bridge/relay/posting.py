"""A message that an operator sends, on its way into the outbox: it is there in time, or never sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bridge.clock import Clock, unix_ms
from bridge.errors import BridgeError, StoreError
from bridge.ids import AccountId, MessageId
from bridge.relay.outbox import stored_parts
from bridge.store.contract import Hold, OutboxPart, PartState, Post, Reply, Store

POST_SECONDS = 15.0  # whoever sends by the command line waits for 20


class Posting:
    """Give ``run`` a task that outlives whoever awaits ``stored``: a step cannot be called back."""

    def __init__(
        self,
        account: AccountId,
        reply: Reply,
        store: Store,
        clock: Clock,
        deliver: Callable[[Sequence[OutboxPart]], None],
    ) -> None:
        self._account, self._reply, self._store = account, reply, store
        self._clock, self._deliver = clock, deliver
        self._stored: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Store the reply and have it delivered, unless nobody waits for it any more by then."""
        now_ms = unix_ms(self._clock.now())
        try:
            ids = await self._store.do(Post(self._account, self._reply, now_ms))
            if self._stored.done():  # given up
                await self._store.do(Hold(ids[0], PartState.SKIPPED, "", now_ms, "not stored in time"))
                return
        except StoreError as error:
            if not self._stored.done():
                self._stored.set_exception(error)
            return
        self._stored.set_result(len(ids))
        self._deliver(stored_parts(self._account, MessageId(""), self._reply, ids, now_ms, ""))

    async def stored(self) -> int:
        """Wait until it is durable; returns its number of parts. Cancelling gives it up.

        Raises:
            BridgeError: it was not, and will not be sent.
        """
        try:
            async with asyncio.timeout(POST_SECONDS):
                return await self._stored
        except TimeoutError:
            raise BridgeError(
                "the disk takes too long: nothing is sent; look at it, then try again"
            ) from None
