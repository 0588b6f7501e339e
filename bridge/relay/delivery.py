"""Parts on their way out: a lane per recipient, in order, each outcome one durable step.

A lane's head is sent until it is final. Nothing is sent under one client id once the channel's
``idempotent_seconds`` since its first try are over: what may have arrived by then is ``unknown``, and is sent
once more with a visible mark, or held, as the account is set.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Protocol, assert_never

from bridge.channel import (
    ChannelError,
    ChannelSpec,
    CredentialsError,
    Delivered,
    OutcomeUnknownError,
    Refused,
    Sends,
    SendsFiles,
    UnknownOutcome,
    UnreachableError,
    Withdrawn,
)
from bridge.channel.contract import SendOutcome
from bridge.clock import Clock, unix_ms
from bridge.ids import MessageId
from bridge.logs import Logger
from bridge.relay import outbox
from bridge.relay.settle import settled
from bridge.relay.texts import language_of
from bridge.retry import Backoff
from bridge.store.contract import (
    Hold,
    Later,
    Mark,
    OutboxPart,
    PartKind,
    PartState,
    Post,
    Sending,
    Settle,
    Settled,
    Store,
)


class Contact(Protocol):
    """Where delivery tells how the platform behaves."""

    def contact(self) -> None: ...
    def lost(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Terms:
    """An account's terms of delivery."""

    spec: ChannelSpec
    unknown_outcome: UnknownOutcome
    deliver_seconds: float
    at_once: int = 64  # sends of one account under way at the same time


class Delivery:
    """The outbox of one account. ``run`` serves the lanes until cancelled; ``add`` gives it stored parts."""

    def __init__(
        self,
        terms: Terms,
        store: Store,
        clock: Clock,
        rng: Random,
        log: Logger,
        release: Callable[[Iterable[str]], None],
    ) -> None:
        self._terms, self._store, self._clock, self._rng, self._log = terms, store, clock, rng, log
        self._release = release
        self._lanes: dict[str, deque[OutboxPart]] = {}
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._sends = asyncio.Semaphore(terms.at_once)

    def add(self, parts: Iterable[OutboxPart]) -> None:
        """Queue parts, in the order of their ids."""
        for part in parts:
            lane = self._lanes.get(part.to)
            if lane is None:
                lane = self._lanes[part.to] = deque()
                self._waiting.put_nowait(part.to)
            lane.append(part)

    async def run(self, channel: Sends, contact: Contact) -> None:
        """Serve every lane in a task of its own. Ends only with an error that the account must stop for."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                to = await self._waiting.get()
                tasks.create_task(self._serve(to, channel, contact), name="lane")

    async def _serve(self, to: str, channel: Sends, contact: Contact) -> None:
        lane = self._lanes[to]
        while lane:
            await self._finish(lane, channel, contact)
        del self._lanes[to]

    async def _finish(self, lane: deque[OutboxPart], channel: Sends, contact: Contact) -> None:
        """Try the lane's head until it is final; it is then off the lane."""
        part: OutboxPart | None = lane[0]
        backoff = Backoff(self._clock, self._rng, bounds=self._terms.spec.retry_seconds)
        if lane[0].due_ms:
            await self._clock.sleep((lane[0].due_ms - unix_ms(self._clock.now())) / 1000)
        while part is not None:
            part = await self._checked(lane, part)
            if part is None:
                return
            wait = await self._attempt(lane, part, channel, contact, backoff)
            if wait is None:
                return
            part, seconds = wait
            await self._clock.sleep(seconds)

    async def _checked(self, lane: deque[OutboxPart], part: OutboxPart) -> OutboxPart | None:
        """The part as it may be sent now, or None once it was ended."""
        now_ms = unix_ms(self._clock.now())
        if now_ms - part.created_ms > self._terms.deliver_seconds * 1000:
            state = PartState.UNKNOWN if part.state is PartState.SENDING else PartState.EXPIRED
            await self._end_reply(lane, part, state, "not delivered in time")
            return None
        if part.state is not PartState.SENDING:
            return part
        if now_ms - part.first_sent_ms < self._terms.spec.idempotent_seconds * 1000:
            return part
        return await self._unknown(lane, part, now_ms)

    async def _unknown(self, lane: deque[OutboxPart], part: OutboxPart, now_ms: int) -> OutboxPart | None:
        self._log.warning("delivery.unknown", part=part.part_id, marked=part.marked)
        if self._terms.unknown_outcome is UnknownOutcome.HOLD:
            await self._end_reply(lane, part, PartState.UNKNOWN, "it is not known whether it arrived")
            return None
        if part.marked:
            step = Settle(
                part.part_id, PartState.UNKNOWN, now_ms, reason="it is not known whether it arrived"
            )
            self._settled(lane, await self._store.do(step))
            return None
        client_id = outbox.new_client_id()
        await self._store.do(Mark(part.part_id, client_id, now_ms))
        return replace(part, state=PartState.PENDING, marked=True, client_id=client_id, first_sent_ms=0)

    async def _attempt(
        self, lane: deque[OutboxPart], part: OutboxPart, channel: Sends, contact: Contact, backoff: Backoff
    ) -> tuple[OutboxPart, float] | None:
        """One try: None once the part is final, else the part as it is now and the seconds to wait."""
        maybe_before = part.state is PartState.SENDING
        async with self._sends:
            now_ms = unix_ms(self._clock.now())
            if not await self._store.do(Sending(part.part_id, now_ms)):
                lane.popleft()
                return None
            part = replace(part, state=PartState.SENDING, first_sent_ms=part.first_sent_ms or now_ms)
            try:
                outcome = await self._try(part, channel)
            except CredentialsError:
                await self._store.do(Later(part.part_id, 0, accepted_possible=maybe_before))
                raise
            except OutcomeUnknownError as error:
                return await self._later(part, contact, error, backoff, maybe=True)
            except ChannelError as error:
                return await self._later(part, contact, error, backoff, maybe=maybe_before)
        contact.contact()
        await self._conclude(lane, part, outcome)
        return None

    async def _try(self, part: OutboxPart, channel: Sends) -> SendOutcome:
        """Send; an adapter's bug leaves the outcome unknown, like a connection that broke."""
        outcome = await settled(self._send(part, channel), name="send")
        if not isinstance(outcome, Exception):
            return outcome
        self._log.error("delivery.bug", part=part.part_id, error=outcome)
        raise OutcomeUnknownError("the adapter failed: this is a bug")

    async def _send(self, part: OutboxPart, channel: Sends) -> SendOutcome:
        body = part.body
        if part.marked:
            body = outbox.marked(body, part.kind, language_of(body, "auto"))
        if part.kind is PartKind.TEXT:
            return await channel.send(outbox.to_text(part, body))
        file = outbox.to_file(part, body)
        if not isinstance(channel, SendsFiles):
            return Refused("this channel takes no files")
        if not await asyncio.to_thread(Path.is_file, file.path):
            return Refused("the file is gone")
        return await channel.send_file(file)

    async def _later(
        self, part: OutboxPart, contact: Contact, error: ChannelError, backoff: Backoff, *, maybe: bool
    ) -> tuple[OutboxPart, float]:
        floor = error.retry_after_seconds if isinstance(error, UnreachableError) else 0.0
        seconds = backoff.next_seconds(floor)
        await self._store.do(Later(part.part_id, unix_ms(self._clock.now()) + int(seconds * 1000), maybe))
        if backoff.failures == 1:
            self._log.info("delivery.later", part=part.part_id, seconds=round(seconds, 1), reason=str(error))
        contact.lost("sending fails; it is tried again")
        if not maybe:
            part = replace(part, state=PartState.PENDING, first_sent_ms=0)
        return part, seconds

    async def _conclude(self, lane: deque[OutboxPart], part: OutboxPart, outcome: SendOutcome) -> None:
        now_ms = unix_ms(self._clock.now())
        match outcome:
            case Delivered(platform_id=platform_id, keep_file_seconds=keep):
                keep_ms = now_ms + int(keep * 1000) if keep else 0
                step = Settle(part.part_id, PartState.SENT, now_ms, platform_id, keep_until_ms=keep_ms)
                self._settled(lane, await self._store.do(step))
            case Refused(reason=reason, code=code):
                self._log.warning("delivery.refused", part=part.part_id, code=code, reason=reason)
                if part.kind is PartKind.FILE:
                    step = Settle(part.part_id, PartState.REFUSED, now_ms, reason=reason)
                    self._settled(lane, await self._store.do(step))
                    await self._tell_refused(part, reason, now_ms)
                else:
                    await self._end_reply(lane, part, PartState.REFUSED, reason)
            case Withdrawn(code=code):
                self._log.info("delivery.withdrawn", part=part.part_id, code=code)
                await self._end_reply(
                    lane, part, PartState.SKIPPED, "the message it answers is gone", hold=False
                )
            case _:
                assert_never(outcome)

    async def _tell_refused(self, part: OutboxPart, reason: str, now_ms: int) -> None:
        """Whoever waits for a file learns by its name why it does not come."""
        reply = outbox.refused_file(part, reason)
        ids = await self._store.do(Post(part.account, reply, now_ms))
        self.add(outbox.stored_parts(part.account, MessageId(""), reply, ids, now_ms))

    def _settled(self, lane: deque[OutboxPart], done: Settled) -> None:
        lane.popleft()
        self._release(outbox.copies_of(done.released))

    async def _end_reply(
        self, lane: deque[OutboxPart], part: OutboxPart, state: PartState, reason: str, *, hold: bool = True
    ) -> None:
        rest = _rest_of_reply(lane, part)
        text = outbox.held_text(rest, language_of(part.body, "auto")) if hold and not part.transient else ""
        step = Hold(part.part_id, state, text, unix_ms(self._clock.now()), reason)
        done = await self._store.do(step)
        for _ in rest:
            lane.popleft()
        self._release(outbox.copies_of(done.released))


def _rest_of_reply(lane: Sequence[OutboxPart], part: OutboxPart) -> list[OutboxPart]:
    return [other for other in lane if other.reply_id == part.reply_id]
