"""Parts on their way out: a lane per recipient, in order, each outcome one durable step.

A lane's head is sent until it is final. Nothing is sent under one client id once the channel's
``idempotent_seconds`` since its first try are nearly over: what may have arrived by then is ``unknown``, and
is sent once more with a visible mark, or held, as the account is set. The wall clock may jump: it is asked
only how old a part is that is added.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Protocol, assert_never

from bridge.channel import (
    ChannelError,
    ChannelSpec,
    CredentialsError,
    Delivered,
    OutcomeUnknownError,
    Refused,
    RepliesInResponse,
    Sends,
    UnknownOutcome,
    UnreachableError,
    Withdrawn,
)
from bridge.channel.contract import SendOutcome
from bridge.channel.text import clean
from bridge.clock import Clock, unix_ms
from bridge.ids import MessageId
from bridge.logs import Logger, without
from bridge.meter import AccountMeter
from bridge.relay import outbox
from bridge.relay.contact import proves_contact
from bridge.relay.lane import Entry, Lane, Waits
from bridge.relay.offers import Offers
from bridge.relay.texts import Text, language_of
from bridge.relay.ways import SEND_SECONDS, Counted, NoQuestions, Questions, Way, Ways, send_seconds
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


_NO_WAY = inf  # how long a part waits that can only go out in a response


class Delivery:
    """The outbox of one account. ``run`` serves the lanes until cancelled; ``add`` gives it stored parts.

    ``questions`` are told of each part that the platform took, and give those that ask their buttons.
    """

    def __init__(
        self,
        terms: Terms,
        store: Store,
        clock: Clock,
        rng: Random,
        log: Logger,
        release: Callable[[Iterable[str]], None],
        offers: Offers | None = None,
        meter: AccountMeter | None = None,
        questions: Questions | None = None,
    ) -> None:
        self._terms, self._store, self._clock, self._rng, self._log = terms, store, clock, rng, log
        self._release = release
        self._offers = offers or Offers()
        self._meter = meter or AccountMeter()
        self._questions = questions or NoQuestions()
        self._lanes: dict[str, Lane] = {}
        self._waits = Waits()
        self._waiting: list[Lane] = []
        self._more = asyncio.Event()
        self._sends = asyncio.Semaphore(terms.at_once)

    def add(self, parts: Iterable[OutboxPart]) -> None:
        """Queue parts, in the order of their ids. One that is there stays where it is."""
        for part in parts:
            lane = self._lanes.get(part.to)
            if lane is None:
                lane = self._lanes[part.to] = Lane(part.to, self._waits.take(part.to))
            if not lane.holds(part.part_id):
                lane.entries.append(self._entry(part))
            self._serve_soon(lane)

    def waits(self, to: str) -> bool:
        """Whether there are parts for this recipient."""
        return to in self._lanes

    def stir(self, to: str) -> None:
        """A request is held open for this recipient: it may be the way out."""
        lane = self._lanes.get(to)
        if lane is not None:
            lane.stir()
            self._serve_soon(lane)

    def drop(self, message_id: MessageId) -> None:
        """The store has ended the reply to this message: what is left of it is not sent, or waited for."""
        self._drop(lambda part: part.message_id == message_id)

    def drop_reply(self, reply_id: str) -> None:
        """The store has ended this reply."""
        self._drop(lambda part: part.reply_id == reply_id)

    def _drop(self, ended: Callable[[OutboxPart], bool]) -> None:
        for lane in list(self._lanes.values()):
            if lane.drop(ended):
                self.stir(lane.to)

    def _serve_soon(self, lane: Lane) -> None:
        if not lane.is_served:
            lane.is_served = True
            self._waiting.append(lane)
            self._more.set()

    def _entry(self, part: OutboxPart) -> Entry:
        """``part`` with its stamps as times of the monotonic clock."""
        terms, now, now_ms = self._terms, self._clock.monotonic(), unix_ms(self._clock.now())
        age, since_try = (now_ms - part.created_ms) / 1000, (now_ms - part.first_sent_ms) / 1000
        if since_try < -SEND_SECONDS:  # the clock was set back: nobody knows how long ago it was
            since_try = terms.spec.idempotent_seconds
        due_seconds = min(part.due_ms - now_ms, part.due_ms - part.created_ms) / 1000
        return Entry(
            part,
            due_at=now + due_seconds,
            give_up_at=now + terms.deliver_seconds - max(0.0, age),
            known_until=now + self._known_seconds(part) - max(0.0, since_try),
        )

    def _known_seconds(self, part: OutboxPart) -> float:
        """How long after its first try a send that begins still arrives before its client id is forgotten."""
        return self._terms.spec.idempotent_seconds - send_seconds(part)

    async def run(self, channel: Sends | RepliesInResponse, contact: Contact) -> None:
        """Serve every lane in a task of its own. Ends only with an error that the account must stop for."""
        ways = Ways(channel, self._offers, self._log, self._questions)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._more.wait()
                self._more.clear()
                for lane in self._waiting:
                    tasks.create_task(self._serve(lane, ways, contact), name="lane")
                self._waiting.clear()

    async def _serve(self, lane: Lane, ways: Ways, contact: Contact) -> None:
        while lane.entries and await self._finish(lane, ways, contact):
            pass
        lane.is_served = False
        if not lane.entries:
            del self._lanes[lane.to]
            self._waits.keep(lane, self._clock.monotonic())

    async def _finish(self, lane: Lane, ways: Ways, contact: Contact) -> bool:
        """Try the lane's head until it is final, and off the lane. False: it has to wait for a request."""
        backoff = Backoff(self._clock, self._rng, bounds=self._terms.spec.retry_seconds)
        due_at: float | None = max(lane.head.due_at, lane.free_at)
        while due_at is not None:
            await self._pause(lane, ways, min(due_at, lane.head.give_up_at))
            if lane.head.dropped:
                lane.take_off()
                return True
            async with self._sends:
                wait = await self._attempt(lane, ways, contact, backoff)
            if wait == _NO_WAY:
                return False
            due_at = None if wait is None else self._clock.monotonic() + wait
        return True

    async def _pause(self, lane: Lane, ways: Ways, due_at: float) -> None:
        """Until the head is due: at once where a response can take it, or nobody wants it any more."""
        while (seconds := due_at - self._clock.monotonic()) > 0:
            if lane.head.dropped or ways.in_response(lane.to):
                return
            await lane.pause(seconds, self._clock)

    async def _attempt(self, lane: Lane, ways: Ways, contact: Contact, backoff: Backoff) -> float | None:
        """One try of the lane's head: None once it is final, else the seconds to wait."""
        if not await self._may_be_sent(lane, lane.head):
            return None
        way = ways.find(lane.head.part)
        if way is None:
            return _NO_WAY
        try:
            return await self._try(lane, Counted(way, self._meter), contact, backoff)
        finally:
            way.leave()

    async def _try(self, lane: Lane, way: Way, contact: Contact, backoff: Backoff) -> float | None:
        entry = lane.head
        maybe_before = entry.part.state is PartState.SENDING
        if not await self._store.do(Sending(entry.part.part_id, unix_ms(self._clock.now()))):
            lane.take_off()
            return None
        if not maybe_before:
            entry.known_until = self._clock.monotonic() + self._known_seconds(entry.part)
            entry.part = replace(entry.part, state=PartState.SENDING)
        began = self._clock.monotonic()
        try:
            outcome = await way.send(entry.part, more=len(lane.entries) > 1)
        except CredentialsError:
            await self._store.do(Later(entry.part.part_id, 0, accepted_possible=maybe_before))
            raise
        except OutcomeUnknownError as error:
            return await self._later(lane, contact, error, backoff, maybe=True)
        except ChannelError as error:
            return await self._later(lane, contact, error, backoff, maybe=maybe_before)
        if outcome is None:
            await self._not_taken(entry, maybe=maybe_before)
            return 0.0
        if proves_contact(outcome):
            contact.contact()
        if isinstance(outcome, Delivered):
            self._questions.taken(entry.part, began)
        await self._conclude(lane, entry.part, outcome)
        return None

    async def _may_be_sent(self, lane: Lane, entry: Entry) -> bool:
        """False once the head was ended instead, for its age or because it may have arrived."""
        now, sending = self._clock.monotonic(), entry.part.state is PartState.SENDING
        if now >= entry.give_up_at:
            state = PartState.UNKNOWN if sending else PartState.EXPIRED
            reason = "not delivered in time"
            self._log.warning("delivery.given_up", part=entry.part.part_id, state=state, reason=reason)
            await self._end_reply(lane, entry.part, state, reason)
            return False
        return not sending or now < entry.known_until or await self._marked(lane, entry)

    async def _marked(self, lane: Lane, entry: Entry) -> bool:
        """Make it ready to be sent once more, with a mark. False: it is held, or had its mark."""
        part, now_ms = entry.part, unix_ms(self._clock.now())
        self._log.warning("delivery.unknown", part=part.part_id, marked=part.marked)
        if self._terms.unknown_outcome is UnknownOutcome.HOLD:
            await self._end_reply(lane, part, PartState.UNKNOWN, "it is not known whether it arrived")
            return False
        if part.marked:
            step = Settle(
                part.part_id, PartState.UNKNOWN, now_ms, reason="it is not known whether it arrived"
            )
            self._settled(lane, await self._store.do(step))
            self._meter.gave_up(PartState.UNKNOWN)
            return False
        client_id = outbox.new_client_id()
        await self._store.do(Mark(part.part_id, client_id, now_ms))
        entry.part = replace(part, state=PartState.PENDING, marked=True, client_id=client_id)
        return True

    async def _later(
        self, lane: Lane, contact: Contact, error: ChannelError, backoff: Backoff, *, maybe: bool
    ) -> float:
        entry, part_id = lane.head, lane.head.part.part_id
        floor = error.retry_after_seconds if isinstance(error, UnreachableError) else 0.0
        seconds = backoff.next_seconds(floor)
        await self._store.do(Later(part_id, unix_ms(self._clock.now()) + int(seconds * 1000), maybe))
        if backoff.failures == 1:
            self._log.info("delivery.later", part=part_id, seconds=round(seconds, 1), reason=str(error))
        if floor:
            lane.free_at = self._clock.monotonic() + seconds
        else:  # what asks for a wait is there; that it does its work is shown by what it takes
            contact.lost("sending fails; it is tried again")
        if not maybe:
            entry.part = replace(entry.part, state=PartState.PENDING)
        return seconds

    async def _not_taken(self, entry: Entry, *, maybe: bool) -> None:
        """The client of a response was gone before: as if it had never been tried."""
        await self._store.do(Later(entry.part.part_id, 0, maybe))
        if not maybe:
            entry.part = replace(entry.part, state=PartState.PENDING)

    async def _conclude(self, lane: Lane, part: OutboxPart, outcome: SendOutcome) -> None:
        now_ms = unix_ms(self._clock.now())
        match outcome:
            case Delivered(platform_id=platform_id, keep_file_seconds=keep):
                keep_ms = now_ms + int(keep * 1000) if keep else 0
                step = Settle(part.part_id, PartState.SENT, now_ms, clean(platform_id), keep_until_ms=keep_ms)
                self._settled(lane, await self._store.do(step))
                if not lane.entries:  # it was taken, maybe in a response: what comes next may ask anew
                    lane.free_at = -inf
                self._meter.delivered((now_ms - part.created_ms) / 1000, outbox.size_of(part))
            case Refused(reason=told, code=code):
                reason = without(clean(told), part.to, part.reply_to, part.body)
                self._log.warning("delivery.refused", part=part.part_id, code=code, reason=reason)
                if part.kind is PartKind.FILE:
                    step = Settle(part.part_id, PartState.REFUSED, now_ms, reason=reason)
                    self._settled(lane, await self._store.do(step))
                    self._meter.gave_up(PartState.REFUSED)
                    await self._tell_refused(part, now_ms)
                else:
                    await self._end_reply(lane, part, PartState.REFUSED, reason)
            case Withdrawn(code=code):
                self._log.info("delivery.withdrawn", part=part.part_id, code=code)
                gone, unprompted = "the message it answers is gone", not part.message_id
                await self._end_reply(lane, part, PartState.SKIPPED, gone, hold=unprompted)
            case _:
                assert_never(outcome)

    async def _tell_refused(self, part: OutboxPart, now_ms: int) -> None:
        """Whoever waits for a file learns by its name that it does not come."""
        reply, why = outbox.refused_file(part), Text.FILE_REFUSED
        ids = await self._store.do(Post(part.account, reply, now_ms, why))
        self.add(outbox.stored_parts(part.account, MessageId(""), reply, ids, now_ms, why))

    def _settled(self, lane: Lane, done: Settled) -> None:
        lane.take_off()
        self._release(outbox.copies_of(done.released))

    async def _end_reply(
        self, lane: Lane, part: OutboxPart, state: PartState, reason: str, *, hold: bool = True
    ) -> None:
        rest = lane.rest_of_reply(part)
        text = outbox.held_text(rest, language_of(part.body, "auto")) if hold and not part.transient else ""
        step = Hold(part.part_id, state, text, unix_ms(self._clock.now()), reason)
        done = await self._store.do(step)
        lane.take_off_reply(part.reply_id)  # some may have been dropped meanwhile
        self._meter.gave_up(state, len(rest), bool(text))
        self._release(outbox.copies_of(done.released))
