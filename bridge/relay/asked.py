"""Replies that wait until the other side asks for them, and files that it fetches from us."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from bridge.channel import Answer, AnsweredByAsking, Request, ServesFiles, WaitingPart
from bridge.channel.contract import FileAnswer
from bridge.clock import unix_ms
from bridge.media.outbox import inside_outbox
from bridge.meter import Try
from bridge.relay import outbox
from bridge.relay.setup import Setup
from bridge.relay.texts import language_of
from bridge.store.contract import Collect, Hold, OpenParts, OutboxPart, PartKind, PartsOf, PartState

PAGE = 50
EXPIRE_SECONDS = 60.0
GONE = Answer(410, b'{"error":"this file is not kept any more"}')


class NewParts:
    """Told of to those who ask for parts, for as long as the run lasts."""

    def __init__(self) -> None:
        self.is_over = False
        self._news = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """Set when something happens from now on: to be taken before the store is asked."""
        return self._news

    def tell(self) -> None:
        """There are new parts: whoever waits asks the store again."""
        self._news.set()
        self._news = asyncio.Event()

    def close(self) -> None:
        """The run ends, so nothing more is heard of here: nobody waits any more."""
        self.is_over = True
        self.tell()


async def answer(
    channel: AnsweredByAsking,
    request: Request,
    setup: Setup,
    new_parts: NewParts,
    release: Callable[[Iterable[str]], None],
    collected: Callable[[int, str], None],
) -> Answer:
    """Settle what was received before, then tell what waits, at once or within the wait asked for.

    ``collected`` is told up to which part, and whose, the other side has received what was there.

    The end of the run is the end of the wait: the next asking reaches the run after it.
    """
    ask = channel.ask(request)
    if isinstance(ask, Answer):
        return ask
    if ask.after > 0:
        settled = await setup.store.do(Collect(setup.name, ask.after, unix_ms(setup.clock.now()), ask.to))
        setup.meter.tries[Try.SENT] += len(settled)
        if settled:
            collected(ask.after, ask.to)
        release(outbox.copies_of(body for one in settled for body in one.released))
    wanted = OpenParts(setup.name, limit=PAGE, to=ask.to)
    news = new_parts.next
    waiting = await setup.store.get(wanted)
    if not waiting and ask.wait_seconds > 0:
        with suppress(TimeoutError):
            async with asyncio.timeout(ask.wait_seconds):
                while not waiting and not new_parts.is_over:
                    await news.wait()
                    news = new_parts.next
                    waiting = await setup.store.get(wanted)
    return await channel.told(ask, [_waiting(part) for part in waiting])


async def expire(
    setup: Setup, release: Callable[[Iterable[str]], None], ended: Callable[[str], None]
) -> None:
    """Give up what nobody asked for within its time; ``ended`` is told of each reply."""
    while True:
        now_ms = unix_ms(setup.clock.now())
        oldest_ms = now_ms - int(setup.config.limits.deliver_seconds * 1000)
        waiting = await setup.store.get(OpenParts(setup.name))
        for reply_id in dict.fromkeys(part.reply_id for part in waiting if part.created_ms < oldest_ms):
            parts = await setup.store.get(PartsOf(setup.name, reply_id))
            if step := _given_up(parts, now_ms):
                setup.meter.gave_up(step.state, len(parts), bool(step.held_text))
                release(outbox.copies_of((await setup.store.do(step)).released))
                setup.log.warning(
                    "delivery.given_up", part=step.part_id, state=step.state, reason=step.reason
                )
                ended(reply_id)
        await setup.clock.sleep(EXPIRE_SECONDS)


def _given_up(parts: Sequence[OutboxPart], now_ms: int) -> Hold | None:
    """The end of a reply with all that is left of its text; None where nothing is."""
    if not parts:
        return None
    first = parts[0]
    state = PartState.UNKNOWN if first.state is PartState.SENDING else PartState.EXPIRED
    text = "" if first.transient else outbox.held_text(parts, language_of(first.body, "auto"))
    return Hold(first.part_id, state, text, now_ms, "nobody asked for it in time")


async def serve_file(channel: ServesFiles, request: Request, folder: Path) -> Answer | FileAnswer:
    """An outbox copy under an address that the channel signed."""
    wanted = channel.file(request)
    if isinstance(wanted, Answer):
        return wanted
    path = folder / wanted.name
    if not await asyncio.to_thread(inside_outbox, path, folder):
        return GONE
    size = (await asyncio.to_thread(path.stat)).st_size
    return FileAnswer(path, wanted.name.partition("-")[2], "application/octet-stream", size)


async def remove_copies(copies: Iterable[str], folder: Path) -> None:
    """Remove these copies, and nothing outside the outbox."""
    for path in map(Path, copies):
        if path.parent == folder:
            with suppress(OSError):
                await asyncio.to_thread(path.unlink)


def _waiting(part: OutboxPart) -> WaitingPart:
    shown = outbox.to_file if part.kind is PartKind.FILE else outbox.to_text
    return WaitingPart(part.part_id, shown(part, part.body))
