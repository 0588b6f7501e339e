"""The agent session of one conversation: opened, taken up again, replaced, left."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from dataclasses import replace

from bridge.clock import unix_ms
from bridge.errors import SessionError
from bridge.ids import ConversationKey
from bridge.protocol import ours
from bridge.relay import turn
from bridge.relay.session import Authority, RefusedError, Session, attach_session, open_session
from bridge.relay.work import Work
from bridge.store.contract import (
    BindSession,
    BoundSession,
    Choose,
    Chosen,
    ChosenIn,
    SessionOf,
    UnbindSession,
)

CLEAR_SECONDS = 10.0
KEEP_SECONDS = 60  # how much longer than we the server waits for an answer, so that our limit is the one
# What a server says of a session that cannot be taken up: a new one takes its place.
_NOT_STORED = frozenset({"session_not_found", "unsupported"})


class ChoiceGoneError(SessionError):
    """What was chosen in the conversation is not there any more, and is chosen no more."""


class ChatSession:
    """``owner`` tells whether it is the owner's direct chat: only there is the history kept for long."""

    def __init__(self, key: ConversationKey, work: Work) -> None:
        self._key, self._work = key, work
        self._session: Session | None = None
        self.authority: Authority | None = None  # of the session that was open last
        self.owner = False

    @property
    def is_open(self) -> bool:
        return self._session is not None

    async def ready(self, authority: Authority) -> Session:
        """The session: as it is, taken up again, or a new one where its rights changed.

        A stranger's that was idle for too long is replaced, too: nobody goes on with what was said in it.
        What was chosen in a conversation with tools holds, whatever is set.

        Raises:
            ChoiceGoneError: it cannot, and is forgotten.
            SessionError: the server refuses, or is gone; a choice that lacks something for now stays.
        """
        chosen = await self.chosen() if authority.tools else Chosen()
        if chosen == Chosen():
            return await self._ready(authority)
        try:
            return await self._ready(await self._with(authority, chosen))
        except SessionError as error:
            if error.code != "invalid_request":
                raise
            await self._ready(authority)  # or that is not what is wrong
            await self._work.store.do(Choose(self._work.account, self._key, Chosen()))
            raise ChoiceGoneError("what was chosen in the chat is not there any more", error.code) from error

    async def ready_to_choose(self, authority: Authority) -> Session:
        """As ``ready``, for a choice anew: where what was chosen cannot be used, as it is set."""
        try:
            return await self.ready(authority)
        except (ChoiceGoneError, RefusedError):
            return await self._ready(authority)

    async def chosen(self) -> Chosen:
        """What was chosen in the conversation."""
        return await self._work.store.get(ChosenIn(self._work.account, self._key))

    async def _with(self, authority: Authority, chosen: Chosen) -> Authority:
        """Raises SessionError: the folder may not be chosen any more."""
        if chosen.cwd and not await asyncio.to_thread(self._work.folders.still_allows, chosen.cwd):
            raise SessionError("the folder that was chosen is not allowed any more", "invalid_request")
        return replace(
            authority,
            agent=chosen.agent or authority.agent,
            model=chosen.model,
            mode=chosen.mode,
            cwd=chosen.cwd or authority.cwd,
        )

    async def _ready(self, due: Authority) -> Session:
        session, before = self._session, self.authority
        if session is not None and session.alive and before is not None and before.can_become(due):
            await self._adapt(session, before, due)
            if before.as_text() != due.as_text():
                await self._bind(session, due)
            return session
        await self.close()
        bound = await self.bound()
        if bound is not None and not self.is_over(bound):
            before = Authority.from_text(bound.authority)
            if before.can_become(due):
                await self._take_up(before, due, bound)
        if self._session is None:
            await self._open(due)
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

    async def _take_up(self, before: Authority, due: Authority, bound: BoundSession) -> None:
        """Attach to the stored session, unless it is gone.

        Its folder may be the one that is due already: a crash can fall between its change and our record.
        """
        for cwd in dict.fromkeys((before.cwd, due.cwd)):
            here = replace(due, cwd=cwd)
            try:
                session, _ = await attach_session(self._work.server, here, bound.session_id)
            except SessionError as error:
                if error.code not in _NOT_STORED:
                    raise
                continue
            self._session, self.authority = session, here
            await self._adapt(session, here, due)
            if self._is_idle(bound) or bound.authority != due.as_text():
                await self._bind(session, due)
            return

    async def _adapt(self, session: Session, before: Authority, due: Authority) -> None:
        """Have the session go on as it is due now: with whom, and where."""
        moved = due.cwd if due.cwd != before.cwd else None
        if moved or session.chosen != due.chosen:
            await session.configure(due.agent, due.model, due.mode, moved)
        self.authority = due

    async def _open(self, authority: Authority) -> None:
        channel, _, account = self._work.account.partition(":")
        chat = ours.Chat(channel=channel, account=account, conversation=turn.shown_key(self._key))
        keep_seconds = math.ceil(self._work.approval_seconds) + KEEP_SECONDS if authority.asks else 0
        session = await open_session(self._work.server, authority, chat, keep_seconds)
        self._session, self.authority = session, authority  # closed, should the step fail
        await self._bind(session, authority)

    async def _bind(self, session: Session, authority: Authority) -> None:
        account, text = self._work.account, authority.as_text()
        await self._work.store.do(BindSession(account, self._key, session.session_id, text, self._now_ms()))

    def _now_ms(self) -> int:
        return unix_ms(self._work.clock.now())
