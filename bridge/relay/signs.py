"""Signs of work in a chat: shown while a turn runs, beside it, and ended whatever happens.

A sign that stays is remembered in the store before it is shown, and until it is taken away: what a crash
leaves standing the next run ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bridge.channel import (
    Channel,
    ChannelError,
    CredentialsError,
    EndsTyping,
    Inbound,
    OutcomeUnknownError,
    RenewsTyping,
    ShowsTyping,
    UnreachableError,
)
from bridge.clock import Clock
from bridge.errors import StoreError
from bridge.ids import AccountId, MessageId
from bridge.logs import Logger
from bridge.relay.settle import settled
from bridge.relay.tasks import Tasks
from bridge.relay.waiting import happens
from bridge.store.contract import (
    DropSign,
    PutSign,
    Store,
)
from bridge.store.sign_steps import TYPING, Sign, SignsOf

CALL_SECONDS = 10.0  # for one call to a platform
LEAVE_SECONDS = 2.0  # at the end of a run
RENEW_AFTER = 0.8  # of the time that a sign is seen
AGAIN_SECONDS = (2.0, 15.0, 60.0, 300.0)  # before each further try to take a sign away


@dataclass(frozen=True, slots=True)
class Signs:
    """Begins and ends an account's signs, in tasks of its run."""

    account: AccountId
    channel: Channel
    store: Store
    clock: Clock
    log: Logger
    tasks: Tasks

    def typing(self, message_id: MessageId, inbound: Inbound) -> asyncio.Event:
        """Show that the message's turn runs, until the event is set."""
        over, sign = asyncio.Event(), Sign(TYPING, message_id, inbound.to, inbound.reply_to)
        if isinstance(self.channel, ShowsTyping):
            self.tasks.spawn(self._typing(self.channel, sign, over), "typing")
        return over

    async def take_up(self) -> None:
        """Have what the run before has left standing taken away; raises StoreError."""
        if isinstance(self.channel, EndsTyping):
            for sign in await self.store.get(SignsOf(self.account)):
                if sign.kind == TYPING:
                    self.tasks.spawn(self.end_typing(sign), "typing")

    async def put(self, sign: Sign) -> bool:
        """Remember a sign that stays. False: it cannot be remembered now, so it must not be shown."""
        return await self._noted(PutSign(self.account, sign))

    async def end(self, sign: Sign, take_away: Coroutine[Any, Any, None]) -> bool:
        """Take it away by ``take_away``, and forget it; False: try again later."""
        try:
            await self._call(take_away)
        except (UnreachableError, OutcomeUnknownError, CredentialsError, TimeoutError):
            return False
        except ChannelError as error:
            self.log.debug("sign.stays", reason=str(error))
        await self._noted(DropSign(self.account, sign))
        return True

    async def end_typing(self, sign: Sign) -> None:
        """Take the sign away, in several tries if need be; what stands even then the next run takes away."""
        channel = self.channel
        if not isinstance(channel, EndsTyping):
            return
        for seconds in (*AGAIN_SECONDS, 0.0):
            if await self.end(sign, channel.typing_over(sign.to, sign.reply_to)):
                return
            await self.clock.sleep(seconds)

    async def _typing(self, channel: ShowsTyping, sign: Sign, over: asyncio.Event) -> None:
        if isinstance(channel, EndsTyping) and not await self.put(sign):
            return
        try:
            await self._show(channel, sign, over)
            await over.wait()
            await self.end_typing(sign)
        except asyncio.CancelledError:  # the run ends: once more, for a moment, and else at the next start
            await self._leave(sign)
            raise

    async def _show(self, channel: ShowsTyping, sign: Sign, over: asyncio.Event) -> None:
        """Show it, and again before it fades, until the event is set; in vain where that is not taken.

        What has begun is not cut off by the end of the turn: nobody would know whether it is shown.
        """
        try:
            while not over.is_set() and await self._call(channel.typing(sign.to, sign.reply_to)):
                if not isinstance(channel, RenewsTyping):
                    return
                await happens(over, channel.typing_seconds * RENEW_AFTER, self.clock)
        except (ChannelError, TimeoutError) as error:
            self.log.debug("sign.not_shown", reason=str(error) or "timed out")

    async def _leave(self, sign: Sign) -> None:
        channel = self.channel
        if isinstance(channel, EndsTyping):
            with suppress(TimeoutError):  # it is remembered
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self.end(sign, channel.typing_over(sign.to, sign.reply_to))

    async def _call(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether the adapter did it. A bug of its is logged.

        Raises:
            ChannelError, TimeoutError.
        """
        async with asyncio.timeout(CALL_SECONDS):
            bug = await settled(work, name="sign")
        if bug is not None:
            self.log.error("sign.bug", error=bug)
        return bug is None

    async def _noted(self, step: PutSign | DropSign) -> bool:
        try:
            await self.store.do(step)
        except StoreError:
            return False
        return True
