"""One message while it is worked on, and how that ends early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from bridge.errors import SessionError
from bridge.relay.session import Session
from bridge.relay.work import Message

CANCEL_SECONDS = 10.0  # for the server to end a turn; then we hang up


class Working:
    """The work on ``message``, which its sender can end by taking the message back or changing it.

    Before its turn it is cut where it stands. The turn itself is ended by the session server.
    """

    def __init__(self, message: Message) -> None:
        self.message = message
        self._session: Session | None = None
        self._scope = asyncio.timeout(None)
        self._going_on = self._stopped = self._cut = False
        self._over = asyncio.Event()

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """The work is this block. It ends in silence where it is cut."""
        try:
            async with self._scope:
                self._going_on = True
                if self._stopped:
                    self._cut_off()
                yield
        except TimeoutError:
            if not self._scope.expired():
                raise
        finally:
            self._going_on = False
            self._over.set()

    @property
    def left_a_turn(self) -> bool:
        """It was cut in its turn: what the session says of that is read by nobody."""
        return self._scope.expired() and self._session is not None

    def begin_turn(self, session: Session) -> bool:
        """Whether its turn may begin now, on ``session``."""
        if not self._stopped:
            self._session = session
        return not self._stopped

    def stop(self) -> bool:
        """End it. True: its turn runs, and has to be ended by ``cancel_turn``."""
        self._stopped = True
        if self._session is None:
            self._cut_off()
        return self._session is not None

    async def cancel_turn(self) -> None:
        """Have the server end the turn; returns once the work is over, or is cut after a while."""
        with suppress(SessionError, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                if self._session is not None:
                    await self._session.cancel()
                await self._over.wait()
        self._cut_off()

    def _cut_off(self) -> None:
        if self._going_on and not self._cut:
            self._cut = True
            self._scope.reschedule(asyncio.get_running_loop().time())
