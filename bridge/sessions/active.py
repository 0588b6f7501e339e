"""The turn that runs: recorded before it starts, ended by exactly one event, recorded before that is sent."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from bridge.agents.contract import AgentError, AgentUsage
from bridge.clock import unix_ms
from bridge.errors import StoreError
from bridge.logs import clean, get_logger
from bridge.protocol import ours
from bridge.protocol.codec import write
from bridge.protocol.events import (
    SessionTrimmed,
    TurnEvent,
    TurnStarted,
)
from bridge.protocol.shared import Usage
from bridge.sessions.context import Context
from bridge.sessions.errors import RequestError
from bridge.sessions.history import Trim, encode, is_too_large
from bridge.sessions.isolate import Isolated, finish
from bridge.sessions.scope import TurnScope, Work, too_large
from bridge.sessions.turns import TurnRun
from bridge.store.contract import BeginTurn, EndTurn

log = get_logger(__name__)

TURN_RESERVE = 1_000_000  # numbers kept for one turn, far more than it has events
FAILURE_CHARACTERS = 300
MOST_USED = 2**53  # more is no figure of a turn's, and not every reader of JSON keeps it

End = Callable[[int], TurnEvent]
"""The terminal event, given its number."""

Ending = SessionTrimmed | TurnEvent
"""What is told when the end is recorded."""


class ActiveTurn:
    """``begun`` is set once the client was told that the turn has started."""

    def __init__(self, context: Context, work: Work) -> None:
        self.work = work
        self.begun = asyncio.Event()
        self._context = context
        self._scope = TurnScope(context, work)
        self._run = TurnRun(self._scope)
        self._task: Isolated | None = None
        self._recorded = self._cancelled = self._over = False

    def cancel(self) -> None:
        """Stop the turn: it then ends as cancelled.

        Raises:
            RequestError: ``turn_not_found``: it ends in another way already.
        """
        if self._over:
            if not self._cancelled:
                raise RequestError("turn_not_found", "that turn has ended already")
            return
        self._cancelled = True
        self._scope.stop()
        if self._task is not None:
            self._task.cancel()

    @property
    def is_over(self) -> bool:
        """Whether its end is being told."""
        return self._over

    def so_far(self) -> list[TurnEvent]:
        """What a client that takes it up now has to know of it, in order; each still without its number."""
        started, said = self._event(TurnStarted)(0), self._scope.said
        return [started, *([said] if said else []), *self._scope.attached, *self._context.approvals.told]

    def steer(self, message: ours.TurnSteer) -> None:
        """Give it a text at its next step.

        Raises:
            RequestError: ``invalid_request``; ``turn_not_found``: it ends; ``queue_limit``: too many wait.
        """
        if self._over:
            raise RequestError("turn_not_found", "that turn has ended already")
        self._scope.steering.add(message)

    async def carry_out(self) -> None:
        """Begin, run and end the turn. Being cancelled, or a client that stalls, ends it as cancelled.

        Raises:
            StalledError: the client does not read.
            FrameTooLargeError: the turn's request id alone is too long to answer.
        """
        try:
            await self._begin()
            error = await self._answer()
        except BaseException:  # the connection ends, and the turn with it: recorded all the same
            self._cancelled = True
            await finish(self._end(None) if self.begun.is_set() else self._end_unsent())
            raise
        await finish(self._end(error))

    async def _begin(self) -> None:
        context, upto = self._context, self._context.events.last + TURN_RESERVE
        now_ms = unix_ms(context.services.clock.now())
        step = BeginTurn(context.session_id, self.work.turn_id, self.work.request_id, upto, now_ms)
        self._recorded = True  # or maybe, when cancelled: its end is recorded in any case
        try:
            await context.services.store.do(step)
            context.events.reserved(upto)
        except StoreError as error:
            self._recorded = False
            log.error("turn.not_recorded", session=context.session_id, error=error)
        await context.events.send(self._event(TurnStarted), context.services.deadlines.reply)
        self.begun.set()

    async def _answer(self) -> BaseException | None:
        """Run the agent; return what ended it early. Nothing runs that is not recorded."""
        if not self._recorded:
            return AgentError("internal_error", "the turn could not be recorded, so it was not run")
        if self._cancelled:
            return asyncio.CancelledError()
        stop_seconds = self._context.services.deadlines.turn
        self._task = Isolated(self._run.run(), f"turn {self.work.turn_id}", stop_seconds)
        return await self._task.ended()

    async def _end(self, error: BaseException | None) -> None:
        """Send the terminal event, as recorded; without a record the turn has failed."""
        self._over = True
        self._scope.close()
        await self._scope.steering.refuse()
        if error is None and is_too_large(self._scope.entries):
            error = too_large()
        completed = error is None and not self._cancelled
        if not completed:
            await self._remove_copies()
        try:
            await self._send_end(self._ending(error), completed)
        except StoreError as problem:
            log.error("turn.end_not_recorded", session=self._context.session_id, error=problem)
            await self._remove_copies()
            failed = self._event(
                ours.TurnFailed,
                code="internal_error",
                message="the answer could not be recorded",
                **_used(self._run.usage or self._run.so_far),
            )
            await self._context.events.send(failed, self._context.services.deadlines.reply)

    async def _send_end(self, ending: End, completed: bool) -> None:
        reply_seconds = self._context.services.deadlines.reply
        if not self._recorded:
            await self._context.events.send(ending, reply_seconds)
            return
        trim = self._context.history.trim(self._scope.entries) if completed else None
        endings: list[Callable[[int], Ending]] = [self._trimmed(trim), ending] if trim else [ending]

        async def record(event: Ending) -> None:
            await self._record(event, completed, trim)

        await self._context.events.send_recorded(endings, record, reply_seconds)

    async def _record(self, event: Ending, completed: bool, trim: Trim | None) -> None:
        """Store the turn's end, and what it adds to the history when it was completed."""
        added = self._scope.entries if completed else []
        said = [self._scope.said] if self._scope.said else []
        attached = self._scope.attached if completed else []
        step = EndTurn(
            session_id=self._context.session_id,
            turn_id=self.work.turn_id,
            events=tuple(write(one) for one in [*said, *attached, event]),
            history=tuple(encode(entry) for entry in added),
            seq=event.seq,
            now_ms=unix_ms(self._context.services.clock.now()),
            dropped=trim.dropped if trim else 0,
            note=encode(trim.note) if trim and trim.note else "",
        )
        await self._context.services.store.do(step)
        self._context.history.add(added, trim)

    async def _end_unsent(self) -> None:
        """Record the end of a turn that no client was told of."""
        self._over = True
        try:
            await self._record(self._ending(None)(self._context.events.last), False, None)
        except StoreError as error:
            log.error("turn.end_not_recorded", session=self._context.session_id, error=error)

    def _trimmed(self, trim: Trim) -> Callable[[int], SessionTrimmed]:
        return lambda seq: SessionTrimmed(
            request_id=self.work.request_id,
            session_id=self._context.session_id,
            seq=seq,
            removed_messages=trim.removed,
            history_bytes=trim.left_bytes,
        )

    def _ending(self, error: BaseException | None) -> End:
        usage, used = self._run.usage, _used(self._run.usage or self._run.so_far)
        if self._cancelled or isinstance(error, asyncio.CancelledError):
            return self._event(ours.TurnCancelled, **used)
        if error is None and usage is not None:
            steps = _figure(usage.steps) or 1
            return self._event(ours.TurnCompleted, steps=steps, **{"usage": Usage(), **used})
        if isinstance(error, AgentError):
            self._log_failed(error.code)
            message = " ".join(clean(str(error)).split())[:FAILURE_CHARACTERS]
            return self._event(ours.TurnFailed, code=error.code, message=message, **used)
        log.error("turn.broken", session=self._context.session_id, error=error)
        return self._event(
            ours.TurnFailed,
            code="internal_error",
            message="the agent broke off: see the daemon's log",
            **used,
        )

    def _log_failed(self, code: str) -> None:
        context = self._context
        chat = context.settings.chat
        log.warning(
            "turn.failed",
            code=code,
            agent=context.agent_name,
            session=context.session_id,
            account=f"{chat.channel}:{chat.account}" if chat else "",
        )

    def _event(self, kind: type[TurnEvent], **fields: object) -> End:
        return lambda seq: self._scope.event(kind, seq, **fields)

    async def _remove_copies(self) -> None:
        """Delete the files that will not be delivered."""
        copies, self._scope.copies = self._scope.copies, []
        if copies:
            await asyncio.to_thread(_remove, copies)


def _used(usage: AgentUsage) -> dict[str, object]:
    """What a turn's end tells of it: what nobody reported, or nobody can believe, is absent."""
    read, written, cost = map(_figure, (usage.input_tokens, usage.output_tokens, usage.cost_micros))
    told: dict[str, object] = {"cost_micros": cost} if cost is not None else {}
    if read is not None or written is not None:
        told["usage"] = Usage(input_tokens=read, output_tokens=written)
    return told


def _figure(told: int | None) -> int | None:
    """A figure as an agent's program tells it, who may tell anything; None for what no turn can have used."""
    return told if told is not None and 0 <= told <= MOST_USED else None


def _remove(paths: list[str]) -> None:
    for path in paths:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            log.warning("turn.copy_not_removed", error=error)
