"""Which sessions are on a connection now: each on one at most."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from bridge.ids import SessionId
from bridge.sessions.errors import RequestError
from bridge.sessions.kept import Kept

_ROUNDS = 5  # of the event loop: enough to notice that another connection has been closed already


@dataclass(slots=True)
class _Hold:
    closing: bool = False
    kept: Kept | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)


class LiveSessions:
    def __init__(self) -> None:
        self._held: dict[SessionId, _Hold] = {}

    async def hold(self, session_id: SessionId, cwd: Path | None = None) -> Kept | None:
        """Take the session for a connection; waits for one that is closing.

        Returns it where it was kept for the next client of that ``cwd``.

        Raises:
            RequestError: ``invalid_request``: another connection has it; ``session_not_found``: another cwd.
        """
        for _ in range(_ROUNDS):
            if session_id not in self._held:
                break
            await asyncio.sleep(0)
        while hold := self._held.get(session_id):
            if hold.kept is not None and hold.kept.session.running:
                return _taken(hold, hold.kept, cwd)
            if hold.kept is None and not hold.closing:
                raise RequestError("invalid_request", "the session is attached elsewhere: close that client")
            await hold.released.wait()
        self._held[session_id] = _Hold()
        return None

    def keep(self, session_id: SessionId, kept: Kept) -> None:
        """Its client has gone: another one may take it."""
        self._held[session_id].kept = kept

    def closing(self, session_id: SessionId) -> None:
        """The connection has ended; its session is being wound up."""
        if session_id in self._held:
            self._held[session_id].closing, self._held[session_id].kept = True, None

    def release(self, session_id: SessionId) -> None:
        if hold := self._held.pop(session_id, None):
            hold.released.set()


def _taken(hold: _Hold, kept: Kept, cwd: Path | None) -> Kept:
    if not kept.fits(cwd):
        raise RequestError("session_not_found", "no such session is stored for this cwd: start a new one")
    hold.kept = None
    kept.taken.set()
    return kept
