"""Claiming: what was received is decided on, made durable, and only then started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from bridge.channel import Claimed, Edited, Inbound, Item, Recalled
from bridge.ids import MessageId
from bridge.relay.ahead import Ahead, Said
from bridge.relay.changes import Changes, is_taken_back
from bridge.relay.conversations import Conversations
from bridge.relay.draft import Draft, draft
from bridge.relay.intake import Fate
from bridge.relay.room import ClaimRoom
from bridge.relay.tasks import Tasks
from bridge.relay.work import Work
from bridge.store.change_steps import RECALLED
from bridge.store.contract import Claim, ClaimVerdict, PartsOf


class Claims:
    """``deliver`` hands a stored reply to delivery, ``note`` writes down where an owner wrote.

    ``apart`` tells why a message is only seen, "" for one to answer.
    """

    def __init__(
        self,
        work: Work,
        room: ClaimRoom,
        conversations: Conversations,
        changes: Changes,
        tasks: Tasks,
        deliver: Callable[[str], Coroutine[Any, Any, None]],
        note: Callable[[Inbound], Coroutine[Any, Any, None] | None],
        apart: Callable[[Inbound], str],
        ahead: Ahead,
    ) -> None:
        self.store, self._ahead = work.store, ahead
        self._work, self._room, self._tasks, self._deliver = work, room, tasks, deliver
        self._conversations, self._changes, self._note, self._apart = conversations, changes, note, apart

    async def take(self, items: Sequence[Item], now_ms: int, checkpoint: str | None = None) -> list[Claimed]:
        """Make all of it durable, the checkpoint last, and start what is to be done.

        Raises:
            StoreError: not all of it was stored; what was is known when it comes again.
        """
        clock = self._work.clock
        began = clock.monotonic()
        taken = await self._take(items, now_ms, checkpoint)
        if taken:
            self._work.meter.claimed(taken, clock.monotonic() - began)
        return taken

    async def _take(self, items: Sequence[Item], now_ms: int, checkpoint: str | None) -> list[Claimed]:
        if not any(isinstance(item, Recalled | Edited) for item in items):
            return await self._claim(items, now_ms, checkpoint)
        taken: list[Claimed] = []
        for changes, some in groupby(items, lambda item: isinstance(item, Recalled | Edited)):
            if changes:
                taken += [await self._changes.take(item, now_ms) for item in some]
            else:
                taken += await self._claim(list(some), now_ms, None, partial(self._apart_from, items))
        if checkpoint is not None:
            await self._claim((), now_ms, checkpoint)
        return taken

    def _apart_from(self, batch: Sequence[Item], item: Inbound) -> str:
        """A message that is recalled in its own batch never waits for its turn."""
        return RECALLED if is_taken_back(item, batch) else self._apart(item)

    async def _claim(
        self,
        items: Sequence[Item],
        now_ms: int,
        checkpoint: str | None,
        apart: Callable[[Inbound], str] | None = None,
    ) -> list[Claimed]:
        """Decide on each item, make all of it durable in one step, and start what is to be done."""
        work = self._work
        decide = partial(
            draft, policy=work.policy, room=self._room, language=work.language, ahead=self._ahead
        )
        drafts: list[Draft] = []
        try:
            for item in items:
                drafts.append(decide(item, apart=apart or self._apart))  # noqa: PERF401 - known if one fails
            messages = tuple([one.message for one in drafts if one.message is not None])
            verdicts: Iterable[ClaimVerdict] = ()
            if messages or checkpoint is not None:
                verdicts = await self.store.do(Claim(self._work.account, messages, now_ms, checkpoint))
        except asyncio.CancelledError:  # the step may be taken all the same
            self._hung_up(drafts, now_ms)
            raise
        except BaseException:  # raised again: whatever it was, what they took is free again
            for one in drafts:
                one.give_back(self._room)
            raise
        verdict = iter(verdicts)
        return [
            self._claimed(one, next(verdict), now_ms) if one.message else self._ignored(one) for one in drafts
        ]

    def _hung_up(self, drafts: Sequence[Draft], now_ms: int) -> None:
        """Start what may be durable, in its place: what is not, or was known, is never given to an agent."""
        for one in drafts:
            if one.message is not None and one.inbound is not None and one.decision.fate is Fate.WORK:
                self._may_be_new(one, one.message.message_id, one.inbound, now_ms)
            elif one.message is not None and one.message.reply is not None:
                after = self._after_claims(one.message.reply.reply_id, one.decision.said, now_ms)
                self._tasks.spawn(after, "notice")

    def _may_be_new(self, one: Draft, message_id: MessageId, inbound: Inbound, now_ms: int) -> None:
        """Have it wait for its turn, where it shows whether it is; it ends and joins nothing before."""
        if self._conversations.holds(one.conversation, message_id):
            one.give_back(self._room)
            return
        self._conversations.enqueue(one.conversation, self._work.claimed(message_id, inbound, now_ms, now_ms))
        self._noted(inbound)

    async def _after_claims(self, reply_id: str, said: Said | None, now_ms: int) -> None:
        """Deliver a reply, and do what it says, if it was stored by a claim that is still on its way."""
        account = self._work.account
        await self.store.do(Claim(account, (), now_ms))
        stored = await self.store.get(PartsOf(account, reply_id))
        if stored and said is not None:
            said.act()
        await self._deliver(reply_id)

    def _claimed(self, one: Draft, verdict: ClaimVerdict, now_ms: int) -> Claimed:
        """Start what a durable item asks for. Nothing is awaited: all of a batch is started, in its order."""
        if verdict is not ClaimVerdict.NEW:
            one.give_back(self._room)
            return Claimed.CONFLICT if verdict is ClaimVerdict.CONFLICT else Claimed.DUPLICATE
        message = one.message
        if one.decision.fate is Fate.WORK and message is not None and one.inbound is not None:
            claimed = self._work.claimed(message.message_id, one.inbound, now_ms, now_ms)
            self._conversations.arrive(one.conversation, claimed)
            self._noted(one.inbound)
            return Claimed.ACCEPTED
        if message is not None and message.reply is not None:
            self._tasks.spawn(self._deliver(message.reply.reply_id), "notice")
        if one.decision.said is not None and one.inbound is not None:
            one.decision.said.act()
            self._noted(one.inbound)
        if one.decision.fate in (Fate.BUSY, Fate.OVER):
            return Claimed.BUSY
        answered = one.decision.fate in (Fate.NOTICE, Fate.SAID)
        return Claimed.ACCEPTED if answered else self._ignored(one)

    def _noted(self, message: Inbound) -> None:
        """Where an owner wrote is where they are told things."""
        if (noting := self._note(message)) is not None:
            self._tasks.spawn(noting, "owner")

    def _ignored(self, one: Draft) -> Claimed:
        self._work.log.info("intake.ignored", reason=one.decision.reason)
        return Claimed.IGNORED
