"""One message that says how a long turn goes, edited as it goes on, for the owner where the account wants it.

It is no part of the answer: it is sent beside it, may be lost, and never delays it. But it is never left
saying that somebody works: it is remembered before it is sent, and until it says that this is over.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256

from bridge.channel import ChannelError, Delivered, EditsMessages, Inbound, OutboundPart, Sends
from bridge.channel.text import truncate
from bridge.ids import MessageId
from bridge.protocol import ours
from bridge.protocol.events import ToolStarted
from bridge.relay.settle import settled
from bridge.relay.signs import AGAIN_SECONDS, CALL_SECONDS, LEAVE_SECONDS, Signs
from bridge.relay.texts import Language, Text, duration, say
from bridge.store.sign_steps import PROGRESS, Sign, SignsOf

EDIT_SECONDS = 5.0
MOST_EDITS = 18  # platforms take about 20 of one message, the last of which says that it is over
SLOWER = 1 / 3  # of the time that has passed: the longer it takes, the less often it is told
WHAT_CHARACTERS = 40


@dataclass(slots=True)
class Watched:
    """One turn. ``see`` is told its events; ``over`` is set when its answer is out, or there will be none."""

    began: float
    language: Language
    what: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def see(self, message_id: str, event: ours.ServerEvent) -> None:
        if isinstance(event, ToolStarted):
            self.what = " ".join(truncate(event.name, WHAT_CHARACTERS, "…").replace("_", " ").split())


@dataclass(frozen=True, slots=True)
class Progress:
    """Tells of turns that take longer than ``after_seconds``."""

    signs: Signs
    after_seconds: float

    def watch(self, message_id: MessageId, inbound: Inbound, language: Language) -> Watched:
        watched = Watched(self.signs.clock.monotonic(), language)
        channel = self.signs.channel
        if isinstance(channel, Sends) and isinstance(channel, EditsMessages):
            sign = Sign(PROGRESS, message_id, inbound.to, inbound.reply_to)
            self.signs.tasks.spawn(_Telling(self, watched, sign).run(), "progress")
        return watched


async def take_up(signs: Signs, language: Language) -> None:
    """Have what a run before left saying that somebody works say that this is over; raises StoreError."""
    channel = signs.channel
    if isinstance(channel, Sends) and isinstance(channel, EditsMessages):
        for sign in await signs.store.get(SignsOf(signs.account)):
            if sign.kind == PROGRESS:
                telling = _Telling(Progress(signs, 0.0), Watched(0.0, language), sign)
                signs.tasks.spawn(telling.end(say(Text.WORK_OVER, language)), "progress")


class _Telling:
    """The message about one turn. ``sign`` has its id as soon as that is known."""

    def __init__(self, progress: Progress, watched: Watched, sign: Sign) -> None:
        self._signs, self._watched, self._sign = progress.signs, watched, sign
        self._after_seconds = progress.after_seconds
        self._is_put = False

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                telling = tasks.create_task(self._tell())
                await self._watched.over.wait()
                telling.cancel()
            if self._is_put:
                await self.end(self._text(Text.WORKED))
        except asyncio.CancelledError:  # the run ends: once more, for a moment, and else at the next start
            await self._leave()
            raise

    async def _tell(self) -> None:
        clock = self._signs.clock
        await clock.sleep(self._after_seconds)
        self._is_put = await self._signs.put(self._sign)
        edits = 0
        while self._is_put and edits <= MOST_EDITS and await self._show(self._text(Text.WORKING)):
            edits += 1
            await clock.sleep(max(EDIT_SECONDS, self._seconds * SLOWER))

    @property
    def _seconds(self) -> float:
        return self._signs.clock.monotonic() - self._watched.began

    def _text(self, text: Text) -> str:
        what, language = self._watched.what, self._watched.language
        text = Text.WORKING_ON if what and text is Text.WORKING else text
        return say(text, language, what=what, time=duration(self._seconds, language))

    async def _show(self, text: str) -> bool:
        """Send it, or edit it. False: the platform takes it not now, nor later."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                done = await settled(self._say(text), name="progress")
        except (ChannelError, TimeoutError) as error:
            self._signs.log.debug("progress.not_shown", reason=str(error) or "timed out")
            return True
        if isinstance(done, Exception):
            self._signs.log.error("progress.bug", error=done)
        return done is True

    async def _say(self, text: str) -> bool:
        """Whether it stands there now, under its id; raises ChannelError."""
        channel, sign = self._signs.channel, self._sign
        if sign.handle and isinstance(channel, EditsMessages):
            await channel.edit(sign.to, sign.handle, text)
            return True
        part = OutboundPart(sign.to, sign.reply_to, _client_id(self._signs, sign), text, notice=PROGRESS)
        outcome = await channel.send(part) if isinstance(channel, Sends) else None
        if not isinstance(outcome, Delivered) or not outcome.platform_id:
            return False
        self._sign = replace(sign, handle=outcome.platform_id)
        await self._signs.put(self._sign)
        return True

    async def end(self, text: str) -> None:
        """Have it say ``text``, in several tries if need be; what fails even then is the next run's."""
        for seconds in (*AGAIN_SECONDS, 0.0):
            if await self._ended(text):
                return
            await self._signs.clock.sleep(seconds)

    async def _ended(self, text: str) -> bool:
        """Whether it says so. One whose id is not known is sent again under its client id, which tells it."""
        if not self._sign.handle and await self._show(text) and not self._sign.handle:
            return False
        return await self._signs.end(self._sign, self._edited(text) if self._sign.handle else _nothing())

    async def _edited(self, text: str) -> None:
        await self._say(text)

    async def _leave(self) -> None:
        with suppress(TimeoutError):  # it is remembered
            async with asyncio.timeout(LEAVE_SECONDS):
                if self._is_put:
                    await self._ended(self._text(Text.WORKED))


async def _nothing() -> None:
    """There is no message to end."""


def _client_id(signs: Signs, sign: Sign) -> str:
    """The same for each try, also after a restart."""
    return sha256(f"{signs.account}\0{sign.kind}\0{sign.message_id}".encode()).hexdigest()[:32]
