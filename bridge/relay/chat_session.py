"""The agent session of one conversation: opened, taken up again, replaced, left."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

from bridge.clock import unix_ms
from bridge.errors import SessionError
from bridge.ids import ConversationKey
from bridge.protocol import ours
from bridge.relay import turn
from bridge.relay.session import Authority, Session, attach_session, open_session
from bridge.relay.work import Work
from bridge.store.contract import BindSession, BoundSession, SessionOf, UnbindSession

CLEAR_SECONDS = 10.0
KEEP_SECONDS = 60  # how much longer than we the server waits for an answer, so that our limit is the one
# What a server says of a session that cannot be taken up: a new one takes its place.
_NOT_STORED = frozenset({"session_not_found", "unsupported"})


class ChatSession:
    """``owner`` tells whether it is the owner's direct chat: only there is the history kept for long."""

    def __init__(self, key: ConversationKey, work: Work) -> None:
        self._key, self._work = key, work
        self._session: Session | None = None
        self._authority: Authority | None = None
        self.owner = False

    @property
    def is_open(self) -> bool:
        return self._session is not None

    async def ready(self, authority: Authority) -> Session:
        """The session: as it is, taken up again, or a new one where the authority changed.

        A stranger's that was idle for too long is replaced, too: nobody goes on with what was said in it.
        """
        if self._session is not None and self._session.alive and self._authority == authority:
            return self._session
        await self.close()
        bound = await self.bound()
        if bound is not None and bound.authority == authority.as_text() and not self.is_over(bound):
            await self._take_up(authority, bound)
        if self._session is None:
            await self._open(authority)
        assert self._session is not None  # noqa: S101 - one of the two has set it
        return self._session

    async def close(self) -> None:
        """Hang up. The server keeps the history, to be taken up again."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def leave(self) -> None:
        """Hang up for long: the owner's history is kept, a stranger's is dropped."""
        if self._session is not None and not self.owner:
            with suppress(SessionError, TimeoutError):
                async with asyncio.timeout(CLEAR_SECONDS):
                    await self._session.clear()
        await self.close()

    async def bound(self) -> BoundSession | None:
        return await self._work.store.get(SessionOf(self._work.account, self._key))

    def is_over(self, bound: BoundSession) -> bool:
        """Whether it is a stranger's that ``leave`` would have cleared by now, had we run all the time."""
        return not self.owner and self._is_idle(bound)

    async def forget(self) -> None:
        """The next turn has a session of its own."""
        await self._work.store.do(UnbindSession(self._work.account, self._key))

    def _is_idle(self, bound: BoundSession) -> bool:
        return self._now_ms() - bound.used_ms >= self._work.limits.idle_seconds * 1000

    async def _take_up(self, authority: Authority, bound: BoundSession) -> None:
        """Attach to the stored session, unless it is gone."""
        try:
            session, _ = await attach_session(self._work.server, authority, bound.session_id)
        except SessionError as error:
            if error.code not in _NOT_STORED:
                raise
            return
        self._session, self._authority = session, authority
        if self._is_idle(bound):
            await self._bind(session, authority)

    async def _open(self, authority: Authority) -> None:
        channel, _, account = self._work.account.partition(":")
        chat = ours.Chat(channel=channel, account=account, conversation=turn.shown_key(self._key))
        keep_seconds = math.ceil(self._work.approval_seconds) + KEEP_SECONDS if authority.asks else 0
        session = await open_session(self._work.server, authority, chat, keep_seconds)
        self._session, self._authority = session, authority  # closed, should the step fail
        await self._bind(session, authority)

    async def _bind(self, session: Session, authority: Authority) -> None:
        account, text = self._work.account, authority.as_text()
        await self._work.store.do(BindSession(account, self._key, session.session_id, text, self._now_ms()))

    def _now_ms(self) -> int:
        return unix_ms(self._work.clock.now())
