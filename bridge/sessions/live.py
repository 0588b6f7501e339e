"""Which sessions are on a connection now: each on one at most."""

import asyncio
from dataclasses import dataclass, field

from bridge.ids import SessionId
from bridge.sessions.errors import RequestError

_ROUNDS = 5  # of the event loop: enough to notice that another connection has been closed already


@dataclass(slots=True)
class _Hold:
    closing: bool = False
    released: asyncio.Event = field(default_factory=asyncio.Event)


class LiveSessions:
    def __init__(self) -> None:
        self._held: dict[SessionId, _Hold] = {}

    async def hold(self, session_id: SessionId) -> None:
        """Take the session for a connection; waits for one that is closing.

        Raises:
            RequestError: ``invalid_request``: another connection has it.
        """
        for _ in range(_ROUNDS):
            if session_id not in self._held:
                break
            await asyncio.sleep(0)
        while hold := self._held.get(session_id):
            if not hold.closing:
                raise RequestError("invalid_request", "the session is attached elsewhere: close that client")
            await hold.released.wait()
        self._held[session_id] = _Hold()

    def closing(self, session_id: SessionId) -> None:
        """The connection has ended; its session is being wound up."""
        if session_id in self._held:
            self._held[session_id].closing = True

    def release(self, session_id: SessionId) -> None:
        if hold := self._held.pop(session_id, None):
            hold.released.set()
