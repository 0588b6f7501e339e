"""Texts for a turn that runs: they wait for its next step, and are refused when it ends before."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress

from bridge.protocol import ours
from bridge.protocol.events import ErrorEvent
from bridge.protocol.limits import QUEUE_ITEMS
from bridge.sessions.context import Context
from bridge.sessions.errors import FrameTooLargeError, RequestError, StalledError
from bridge.sessions.queue import check_prompt


class Steering:
    """What one turn was sent and has not taken in."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: deque[ours.TurnSteer] = deque()

    def add(self, message: ours.TurnSteer) -> None:
        """Raises RequestError: ``invalid_request`` or ``queue_limit``."""
        check_prompt(message.prompt, has_attachments=False)
        if len(self._waiting) >= QUEUE_ITEMS:
            raise RequestError("queue_limit", f"{QUEUE_ITEMS} texts wait for the turn's next step already")
        self._waiting.append(message)

    async def taken(self) -> AsyncIterator[str]:
        """The texts that a step takes in, each told to the client once it has been taken."""
        while self._waiting:
            message = self._waiting[0]
            yield message.prompt
            self._waiting.popleft()
            await self._context.events.send(lambda seq: _steered(message, seq))  # noqa: B023 - called at once

    async def refuse(self) -> None:
        """The turn ends without them. A client that does not read is noticed elsewhere."""
        while self._waiting:
            request_id = self._waiting.popleft().request_id
            text = "the turn ended before it took that in: start another one with it"
            refusal = ErrorEvent(request_id=request_id, code="turn_not_found", message=text, fatal=False)
            with suppress(StalledError, FrameTooLargeError):
                await self._context.events.tell(refusal, self._context.services.deadlines.reply)


def _steered(message: ours.TurnSteer, seq: int) -> ours.TurnSteered:
    return ours.TurnSteered(
        request_id=message.request_id, session_id=message.session_id, seq=seq, turn_id=message.turn_id
    )
