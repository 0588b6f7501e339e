"""The messages of one turn while they are worked on, and how that ends early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from bridge.errors import SessionError
from bridge.relay.queue import as_one
from bridge.relay.session import Session
from bridge.relay.work import Message

CANCEL_SECONDS = 10.0  # for the server to end a turn; then we hang up


class Working:
    """The work on ``members``, oldest first, whose sender can end it or take part of it back.

    ``message`` is what they are together, under the last one's id. Before its turn the work is cut where it
    stands. The turn itself is ended by the session server. ``again``: what is to be worked on has changed
    before the turn began, so that it begins anew.
    """

    def __init__(self, message: Message, began_at: float = 0.0) -> None:
        self.members, self.message, self.began_at = [message], message, began_at
        self.again = False
        self.steering = asyncio.Lock()
        self.sign = asyncio.Event()  # both are set when it is over: then it is shown no more
        self.told = asyncio.Event()
        self._session: Session | None = None
        self._scope = asyncio.timeout(None)
        self._going_on = self._stopped = self._cut = self._turn_over = False
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
            self._turn_over = True
            self._over.set()

    @property
    def is_stopped(self) -> bool:
        """It is to end: no other messages join it."""
        return self._stopped

    @property
    def left_a_turn(self) -> bool:
        """It was cut in its turn: what the session says of that is read by nobody."""
        return self._scope.expired() and self._session is not None

    @property
    def session(self) -> Session | None:
        """The session that its turn runs on; None before and after the turn, and while that is ended."""
        return None if self._stopped or self._turn_over else self._session

    def take(self, members: Sequence[Message]) -> None:
        """Work on these instead, before it is gone on with."""
        self.members, self.message = list(members), as_one(members)

    def begin_turn(self, session: Session) -> bool:
        """Whether its turn may begin now, on ``session``."""
        if self._stopped or self.again:
            return False
        self._session = session
        return True

    def end_turn(self) -> None:
        """Its turn is over, or will not come: nothing more is given to it, and its end is not cut."""
        self._turn_over = True

    def has(self, message: Message) -> bool:
        return any(one is message for one in self.members)

    def leave_out(self, message: Message) -> None:
        """One of several is not to be worked on. A turn that runs goes on for the others."""
        self.members = [one for one in self.members if one is not message]
        self.again = self._session is None

    def redo(self) -> None:
        """One of the messages has become another before the turn began.

        Several are not cut: some of them may be stored as begun without anybody's knowing it.
        """
        self.again = True
        if len(self.members) == 1:
            self.stop()

    def stop(self) -> bool:
        """End it. True: its turn runs, and has to be ended by ``cancel_turn``.

        Too late for work that is only put down as ended any more.
        """
        self._stopped = True
        if self._session is None and not self._turn_over:
            self._cut_off()
        return self._session is not None and not self._turn_over

    async def cancel_turn(self) -> None:
        """Have the server end the turn; returns once the work is over, or its turn is cut after a while."""
        with suppress(SessionError, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                if self._session is not None:
                    await self._session.cancel()
                await self._over.wait()
        if not self._turn_over:  # what is put down as ended goes on to its end
            self._cut_off()

    def _cut_off(self) -> None:
        if self._going_on and not self._cut:
            self._cut = True
            self._scope.reschedule(asyncio.get_running_loop().time())
