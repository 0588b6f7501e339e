"""How a part gets out: through the platform's interface, or in the response to a request that is held."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, assert_never

from bridge.channel import (
    Answer,
    ChannelError,
    Choice,
    CredentialsError,
    Delivered,
    OutboundFile,
    OutboundPart,
    OutcomeUnknownError,
    Refused,
    RepliesInResponse,
    SendOutcome,
    Sends,
    SendsFiles,
    UnreachableError,
    Withdrawn,
)
from bridge.logs import Logger
from bridge.meter import AccountMeter, Try
from bridge.relay import outbox
from bridge.relay.offers import Offer, Offers
from bridge.relay.settle import settled
from bridge.relay.texts import Text, language_of, say
from bridge.store.contract import OutboxPart, PartKind

SEND_SECONDS = 60.0  # the most that a send takes, a file's bytes apart: no adapter holds its place longer
SLOWEST_BYTES = 65_536  # of a file, in a second
_GONE = Refused("the file is gone")


def send_seconds(part: OutboxPart) -> float:
    """The most that a send of ``part`` takes: one that begins has ended by then, well or not."""
    if part.kind is PartKind.TEXT:
        return SEND_SECONDS
    return SEND_SECONDS + outbox.to_file(part, part.body).size / SLOWEST_BYTES


class Questions(Protocol):
    """Parts that ask something, which wait for an answer."""

    def taken(self, part: OutboxPart, at: float) -> None:
        """The platform took the part, which was given to it ``at``, by the monotonic clock."""
        ...

    def choices(self, part: OutboxPart) -> tuple[Choice, ...]:
        """The answers that the part offers now."""
        ...


class NoQuestions:
    def taken(self, part: OutboxPart, at: float) -> None:
        pass

    def choices(self, part: OutboxPart) -> tuple[Choice, ...]:
        return ()


class Way(Protocol):
    async def send(self, part: OutboxPart, more: bool) -> SendOutcome | None:
        """Send it; ``more`` waits behind it. None: it was not taken, and can be tried again at once.

        Raises:
            ChannelError: as ``Sends.send``.
        """
        ...

    def leave(self) -> None:
        """It is not needed (any more)."""
        ...


class Ways:
    """Finds the way out for parts of one channel, which ``Sends``, or ``RepliesInResponse``, or both."""

    def __init__(
        self,
        channel: Sends | RepliesInResponse,
        offers: Offers,
        log: Logger,
        questions: Questions | None = None,
    ) -> None:
        self._offers, self._log, self._questions = offers, log, questions or NoQuestions()
        self._sender = channel if isinstance(channel, Sends) else None
        self._responder = channel if isinstance(channel, RepliesInResponse) else None

    def in_response(self, to: str) -> bool:
        """Whether a request is held open for the lane."""
        return self._offers.waits(to)

    def find(self, part: OutboxPart) -> Way | None:
        """The way out for ``part`` now; None while it has to wait for a request."""
        if self._responder is not None and (offer := self._offers.take(part.to, part.message_id)):
            return InResponse(self._responder, offer, self._offers, self._sender is None, self._log)
        return BySending(self._sender, self._log, self._questions) if self._sender is not None else None


@dataclass(frozen=True, slots=True)
class BySending:
    channel: Sends
    log: Logger
    questions: Questions = field(default_factory=NoQuestions)

    async def send(self, part: OutboxPart, more: bool) -> SendOutcome | None:
        """An adapter's bug leaves the outcome unknown, like a connection that broke or stalled."""
        try:
            async with asyncio.timeout(send_seconds(part)):
                outcome = await settled(self._send(part), name="send")
        except TimeoutError:
            raise OutcomeUnknownError("the send took too long") from None
        if not isinstance(outcome, Exception):
            return outcome
        self.log.error("delivery.bug", part=part.part_id, error=outcome)
        raise OutcomeUnknownError("the adapter failed: this is a bug")

    async def _send(self, part: OutboxPart) -> SendOutcome:
        if part.kind is PartKind.TEXT:
            shown, choices = text_of(part), self.questions.choices(part)
            return await self.channel.send(replace(shown, choices=choices) if choices else shown)
        if not isinstance(self.channel, SendsFiles):
            return Refused("this channel takes no files")
        file = await file_of(part)
        return await self.channel.send_file(file) if file is not None else _GONE

    def leave(self) -> None:
        """There is nothing to give back."""


@dataclass(slots=True)
class InResponse:
    """``by_asking``: what waits goes out only when its reader asks, so that texts need notes.

    They say that more waits, and that a text answers an earlier message than the one whose response carries
    it. A file has no room for any.
    """

    channel: RepliesInResponse
    offer: Offer
    offers: Offers
    by_asking: bool
    log: Logger
    used: bool = False

    async def send(self, part: OutboxPart, more: bool) -> SendOutcome | None:
        shown = self._text_of(part, more) if part.kind is PartKind.TEXT else await file_of(part)
        answer = await self._response(shown, send_seconds(part)) if shown is not None else _GONE
        if isinstance(answer, Refused):
            return answer
        self.used = True
        how = await self.offer.give(answer)
        if how is None:
            raise OutcomeUnknownError("the response broke off")
        return Delivered(keep_file_seconds=answer.keep_file_seconds) if how else None

    def _text_of(self, part: OutboxPart, more: bool) -> OutboundPart:
        shown = text_of(part)
        if not self.by_asking:
            return shown
        before, after = self._notes(part, more)
        language = language_of(shown.text, "auto")
        text = f"{say(before, language)}\n{shown.text}" if before else shown.text
        return replace(shown, text=f"{text.rstrip()}\n{say(after, language)}" if after else text)

    def _notes(self, part: OutboxPart, more: bool) -> tuple[Text | None, Text | None]:
        """What stands before and after a text."""
        if self.offer.asks or part.message_id == self.offer.message_id or part.notice == Text.FILE_REFUSED:
            return None, Text.MORE if more else None
        return (Text.TO_EARLIER if part.message_id else None), Text.NEXT

    async def _response(self, part: OutboundPart | OutboundFile, seconds: float) -> Answer | Refused:
        self.used = True  # one that no response could be made for is not tried again
        try:
            async with asyncio.timeout(seconds):
                answer = await settled(self.channel.respond(self.offer.reading, part), name="respond")
        except TimeoutError:
            raise UnreachableError("making the response took too long") from None
        if isinstance(answer, Exception):
            self.log.error("delivery.bug", client=part.client_id, error=answer)
            raise UnreachableError("the adapter failed: this is a bug")
        self.used = False
        return answer

    def leave(self) -> None:
        if self.used:
            self.offer.fail()
        else:
            self.offers.put_back(self.offer)


@dataclass(frozen=True, slots=True)
class Counted:
    """Another way, of which it is counted how each try ends."""

    way: Way
    meter: AccountMeter

    async def send(self, part: OutboxPart, more: bool) -> SendOutcome | None:
        try:
            outcome = await self.way.send(part, more)
        except ChannelError as error:
            self.meter.tries[_failed_try(error)] += 1
            raise
        self.meter.tries[_try_of(outcome)] += 1
        return outcome

    def leave(self) -> None:
        self.way.leave()


def _failed_try(error: ChannelError) -> Try:
    match error:
        case CredentialsError():
            return Try.UNAUTHORIZED
        case OutcomeUnknownError():
            return Try.UNKNOWN
        case _:
            return Try.UNREACHABLE


def _try_of(outcome: SendOutcome | None) -> Try:
    match outcome:
        case None:
            return Try.NOT_TAKEN
        case Delivered():
            return Try.SENT
        case Refused():
            return Try.REFUSED
        case Withdrawn():
            return Try.WITHDRAWN
        case _:
            assert_never(outcome)


def text_of(part: OutboxPart) -> OutboundPart:
    """A stored text part as an adapter takes it."""
    return outbox.to_text(part, _body_of(part))


async def file_of(part: OutboxPart) -> OutboundFile | None:
    """A stored file part as an adapter takes it; None where its copy is gone."""
    file = outbox.to_file(part, _body_of(part))
    there = await asyncio.to_thread(Path.is_file, file.path)
    return file if there else None


def _body_of(part: OutboxPart) -> str:
    if not part.marked:
        return part.body
    return outbox.marked(part.body, part.kind, language_of(part.body, "auto"))
