"""One session on one connection: its turns one after the other, its queue, and what a client asks of both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bridge.ids import TurnId, new_uuid
from bridge.protocol import messages
from bridge.protocol.events import (
    QueueDequeued,
    QueueEnqueued,
    QueueMoved,
    QueueRemoved,
    QueueSnapshot,
    QueueUpdated,
    SessionCleared,
    SessionPaused,
)
from bridge.protocol.shared import Attachment, QueueEntry
from bridge.protocol.wire import Wire
from bridge.sessions import attachments
from bridge.sessions.active import ActiveTurn
from bridge.sessions.context import Context
from bridge.sessions.errors import FrameTooLargeError, RequestError
from bridge.sessions.outbound import IDLE_RESERVE
from bridge.sessions.queue import TurnQueue, check_prompt
from bridge.sessions.scope import Work
from bridge.store.contract import ClearSession


class Session:
    """``run`` runs the turns; the other methods answer a request each, or raise RequestError."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._queue = TurnQueue()
        self._paused = self._held = False
        self._active: ActiveTurn | None = None
        self._work = asyncio.Event()
        self._left = asyncio.Event()  # a new one for each connection
        self._carried: asyncio.Task[None] | None = None
        self._order = asyncio.Lock()  # a change of the queue is told before the next one

    @property
    def running(self) -> ActiveTurn | None:
        """The turn that runs, as long as its end is still to be told."""
        return self._active if self._active is not None and not self._active.is_over else None

    def leave(self) -> None:
        """The client has gone: ``run`` ends with the turn that it is in. What waits is dropped."""
        self._queue.clear()
        self._paused = False
        self._left.set()

    def carry_on(self, turns: asyncio.Task[None]) -> None:
        """A new connection has it now; ``turns`` ends with the turn that is running."""
        self._left, self._carried = asyncio.Event(), turns

    async def run(self) -> None:
        """Run turns until cancelled, which ends the one that runs, or until left."""
        left = self._left
        if (carried := self._carried) is not None:
            self._carried = None
            await _ended(carried)
            self._work.set()
        while not left.is_set():
            await self._work.wait()
            self._work.clear()
            while not left.is_set() and (turn := await self._next()):
                await turn.carry_out()
                self._active = None  # no await since the terminal event: its reader finds the session idle

    async def _next(self) -> ActiveTurn | None:
        async with self._order:
            free = self._active is None and not self._paused and not self._held
            if free and (entry := self._queue.take()):
                work = _work(entry.submitter, entry.prompt, entry.attachments)
                self._active = ActiveTurn(self.context, work)
                await self._send(
                    QueueDequeued, entry.submitter, queue_id=entry.queue_id, turn_id=work.turn_id
                )
            return self._active

    async def start_turn(self, message: messages.TurnStart) -> None:
        check_prompt(message.prompt, has_attachments=bool(message.attachments))
        if message.attachments:
            await asyncio.to_thread(attachments.check, message.attachments)
        async with self._changing():
            if self._active is not None or self._paused or self._held or self._queue.entries:
                await self._enqueue(message)
                return
            work = _work(message.request_id, message.prompt, message.attachments)
            self._active = turn = ActiveTurn(self.context, work)
            self._work.set()
        await turn.begun.wait()

    async def _enqueue(self, message: messages.TurnStart) -> None:
        entry, position = self._queue.add(message.prompt, message.request_id, message.attachments)
        await self._send(QueueEnqueued, message.request_id, entry=entry, position=position)

    def active(self, turn_id: str) -> ActiveTurn:
        """The turn of that id, which runs or is ending."""
        if self._active is None or self._active.work.turn_id != turn_id:
            raise RequestError("turn_not_found", "that turn does not run: it has ended or still waits")
        return self._active

    async def clear(self, message: messages.SessionClear) -> None:
        context = self.context
        async with self._order, self.still():
            upto, settings = context.events.last + IDLE_RESERVE, replace(context.settings, memory={})
            await context.services.store.do(ClearSession(context.session_id, upto, settings.encode()))
            context.settings = settings
            context.events.reserved(upto)
            context.history.clear()
            self._queue.clear()
            await context.leave()
            await self._send(SessionCleared, message.request_id)
            await self.send_snapshot(None)

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """For what no turn may run beside: those that come meanwhile wait in the queue.

        Raises:
            RequestError: ``turn_active``.
        """
        if self._active is not None or self._held:
            raise RequestError("turn_active", "a turn runs: cancel it or wait for its end")
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self._work.set()

    async def pause(self, message: messages.SessionPause) -> None:
        async with self._order:
            self._paused = message.paused
            await self._send(SessionPaused, message.request_id, paused=message.paused)
        self._work.set()

    async def update(self, message: messages.QueueUpdate) -> None:
        async with self._changing():
            entry = self._queue.update(message.queue_id, message.revision, message.prompt)
            await self._send(QueueUpdated, message.request_id, entry=entry)

    async def move(self, message: messages.QueueMove) -> None:
        async with self._changing():
            entry, position = self._queue.move(message.queue_id, message.revision, message.before_queue_id)
            await self._send_entry(QueueMoved, message.request_id, entry, position=position)

    async def remove(self, message: messages.QueueRemove) -> None:
        async with self._changing():
            entry = self._queue.remove(message.queue_id, message.revision)
            await self._send_entry(QueueRemoved, message.request_id, entry)

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[None]:
        """For a change of the queue, with its answer: one that fits no frame is taken back."""
        async with self._order:
            before = self._queue.entries
            try:
                yield
            except FrameTooLargeError as error:
                self._queue.restore(before)
                raise RequestError("queue_limit", "the entry does not fit a frame of this session") from error

    async def send_snapshot(self, request_id: str | None) -> None:
        """Send the whole queue; after a conflict under the ``request_id`` that met it."""
        await self._send(QueueSnapshot, request_id, entries=self._queue.entries, paused=self._paused)

    async def _send_entry(self, kind: type[Wire], request_id: str, entry: QueueEntry, **fields: Any) -> None:
        await self._send(kind, request_id, queue_id=entry.queue_id, revision=entry.revision, **fields)

    async def _send(self, kind: type[Wire], request_id: str | None, **fields: Any) -> None:
        session_id, seconds = self.context.session_id, self.context.services.deadlines.reply
        fields |= {"request_id": request_id, "session_id": session_id}
        await self.context.events.send(lambda seq: kind(**{**fields, "seq": seq}), seconds)


async def _ended(carried: asyncio.Task[None]) -> None:
    """Wait for the turn that an earlier connection's task runs. Cancelling ends it; its error is raised."""
    try:
        await asyncio.wait([carried])
    finally:
        carried.cancel()
        await asyncio.wait([carried])
    if not carried.cancelled() and (error := carried.exception()):
        raise error


def _work(request_id: str, prompt: str, files: tuple[Attachment, ...]) -> Work:
    return Work(TurnId(new_uuid()), request_id, prompt, files)
