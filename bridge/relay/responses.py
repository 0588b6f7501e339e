"""Replies in responses: a push is held open until a part waits for its sender, or nothing comes of it.

All of it is in memory and may be lost: what is owed to whom is in the store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from bridge.channel import (
    Answer,
    ChannelError,
    Claimed,
    Inbound,
    OutboundPart,
    Pushed,
    Reading,
    RepliesInResponse,
    Sends,
)
from bridge.channel.contract import AnyAnswer, NoAnswer, SentAnswer
from bridge.clock import Clock, unix_ms
from bridge.ids import AccountId, MessageId
from bridge.logs import Logger
from bridge.relay import outbox
from bridge.relay.offers import Offer, Offers
from bridge.relay.settle import settled
from bridge.relay.texts import Text, language_of, say
from bridge.relay.waiting import happens
from bridge.store.contract import MessageOf, MessageState, Store

ASKED = "asked_for_answer"
"""The reason of a message that only asks for an answer that waits."""

AGAIN_SECONDS = 30.0  # for which a response is given again, byte by byte
LINGER_SECONDS = 10.0  # past the hold: by then the platform has come again, or has hung up
MOST_HELD = 1024
MOST_KNOWN, KNOWN_SECONDS = 1024, 120.0
_ASKS = frozenset({"1", "１"})
_OVER = frozenset({MessageState.SEEN, MessageState.DONE})


class InResponse(Pushed, RepliesInResponse, Protocol):
    """What a channel must be for this."""


@dataclass(slots=True)
class Known:
    """A message whose request was held: since when it is known, and the response that was given to it."""

    since: float
    answer: Answer | None = None
    given_at: float = 0.0

    def is_fresh(self, now: float) -> bool:
        """Whether a repeat is to get the same response again."""
        return self.answer is not None and now - self.given_at < AGAIN_SECONDS


class Responses:
    """Of one run. ``awaited`` tells whether anything waits or runs for a message's sender.

    ``stir`` is told of each request that is held for a lane.
    """

    def __init__(
        self,
        channel: InResponse,
        account: AccountId,
        store: Store,
        clock: Clock,
        log: Logger,
        language: Literal["auto", "en", "zh"],
        offers: Offers,
        awaited: Callable[[Inbound], bool],
        stir: Callable[[str], None],
    ) -> None:
        self._channel, self._account, self._store = channel, account, store
        self._clock, self._log, self._language = clock, log, language
        self._offers, self._awaited, self._stir = offers, awaited, stir
        self._sends = isinstance(channel, Sends)
        self._held: dict[str, Offer] = {}
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._closed = False

    def apart(self, message: Inbound) -> str:
        """Where answers have to be fetched, a message may be no more than that."""
        return ASKED if not self._sends and _asks(message) and self._awaited(message) else ""

    async def answer(self, reading: Reading, results: Sequence[Claimed], began: float) -> AnyAnswer:
        """The response to a push whose items are durable. ``began``: when it came, by the monotonic clock."""
        plain = self._channel.answer(reading, results)
        message, result = _answered_in(reading, results)
        if message is None:
            return plain
        known = self._known.get(message.message_id)
        if known is not None and known.is_fresh(self._clock.monotonic()):
            return known.answer or plain
        since = await self._waits_since(message, result)
        if since is None:
            return plain
        offer = Offer(message.message_id, message.to, reading, asks=_asks(message))
        until = began + self._channel.hold_seconds  # the platform does not wait for our disk
        known = known or self._remember(message.message_id, Known(since))
        if self._closed or len(self._held) - (offer.message_id in self._held) >= MOST_HELD:
            return await self._unheld(offer, message, known, plain)
        return await self._hold(offer, message, known, plain, until)

    async def _unheld(self, offer: Offer, message: Inbound, known: Known, plain: Answer) -> AnyAnswer:
        """For a request too many, or at the end of the run: its user must not be left without a word."""
        if self._sends:
            return plain
        return NoAnswer() if self._closed else await self._wait_on(offer, message, known, plain)

    def close(self) -> None:
        """The run ends, and with it every hold."""
        self._closed = True
        for offer in self._held.values():
            offer.end()

    async def _waits_since(self, message: Inbound, result: Claimed) -> float | None:
        """When the message came, by the monotonic clock; None where there is nothing to wait for."""
        now = self._clock.monotonic()
        if result in (Claimed.ACCEPTED, Claimed.BUSY):
            return now
        stored = await self._store.get(MessageOf(self._account, MessageId(message.message_id)))
        if stored is None or (stored.state in _OVER and stored.reason != ASKED):
            return None
        return now - max(0.0, (unix_ms(self._clock.now()) - stored.received_ms) / 1000)

    def _remember(self, message_id: str, known: Known) -> Known:
        """What is over for long makes room, and at the limit what came first."""
        long_ago = self._clock.monotonic() - KNOWN_SECONDS
        while self._known and next(iter(self._known.values())).since < long_ago:
            self._known.popitem(last=False)
        self._known[message_id] = known
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return known

    async def _hold(
        self, offer: Offer, message: Inbound, known: Known, plain: Answer, until: float
    ) -> AnyAnswer:
        if (earlier := self._held.get(offer.message_id)) is not None:
            earlier.end()  # the platform has come again: it reads nothing there any more
        self._held[offer.message_id] = offer
        self._offers.add(offer)
        self._stir(offer.to)
        passed_on = False
        try:
            await self._until_over(offer, until)
            served = await self._end(offer, message, known, plain)
            passed_on = isinstance(served, SentAnswer)
            return served
        finally:
            self._offers.remove(offer)
            offer.end()
            if not passed_on:
                offer.written(False)
            if self._held.get(offer.message_id) is offer:
                del self._held[offer.message_id]

    async def _until_over(self, offer: Offer, until: float) -> None:
        """A response that is being made when the time is up is waited for."""
        if not await happens(offer.over, until - self._clock.monotonic(), self._clock):
            self._offers.remove(offer)
            if offer.is_taken:
                await offer.over.wait()

    async def _end(self, offer: Offer, message: Inbound, known: Known, plain: Answer) -> AnyAnswer:
        if offer.answer is not None:
            return SentAnswer(offer.answer, partial(self._written, offer, known, offer.answer))
        if self._sends:
            return plain
        is_last = self._clock.monotonic() - known.since >= self._channel.repeat_seconds
        if is_last and not offer.ended.is_set():
            return await self._wait_on(offer, message, known, plain)
        await happens(offer.ended, LINGER_SECONDS, self._clock)
        return NoAnswer()

    def _written(self, offer: Offer, known: Known, answer: Answer, how: bool | None) -> None:
        if how:
            known.answer, known.given_at = answer, self._clock.monotonic()
        offer.written(how)

    async def _wait_on(self, offer: Offer, message: Inbound, known: Known, plain: Answer) -> Answer:
        """The platform is not to come again: where anything is awaited, its user is told how to get it."""
        return (await self._later(offer, message, known) if self._awaited(message) else None) or plain

    async def _later(self, offer: Offer, message: Inbound, known: Known) -> Answer | None:
        language = language_of(message.text, self._language)
        part = OutboundPart(
            to=message.to,
            reply_to=message.reply_to,
            client_id=outbox.new_client_id(),
            text=say(Text.LATER, language),
            created_at=self._clock.now(),
            notice=Text.LATER,
        )
        with suppress(ChannelError):
            answer = await settled(self._channel.respond(offer.reading, part), name="respond")
            if isinstance(answer, Answer):
                known.answer, known.given_at = answer, self._clock.monotonic()
                return answer
            self._log.error("response.failed", error=answer)
        return None


def _asks(message: Inbound) -> bool:
    return not message.files and message.text.strip() in _ASKS


def _answered_in(reading: Reading, results: Sequence[Claimed]) -> tuple[Inbound | None, Claimed]:
    """The message whose request it is, and what became of it."""
    for item, result in zip(reading.items, results, strict=True):
        if isinstance(item, Inbound):
            return item, result
    return None, Claimed.IGNORED
