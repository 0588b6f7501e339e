"""One conversation: its messages in order, one turn at a time, on one agent session."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Literal

from bridge.channel import Channel, ChannelError, ChannelSpec, Inbound, ShowsTyping
from bridge.clock import Clock, unix_ms
from bridge.config import LimitsTable
from bridge.errors import SessionError
from bridge.ids import AccountId, ConversationKey, MessageId, SessionId
from bridge.logs import Logger
from bridge.protocol import ours
from bridge.relay import outbox, received, turn
from bridge.relay.contact import PlatformClock
from bridge.relay.intake import Policy
from bridge.relay.live import Live
from bridge.relay.outbox import Address, Caps, Content
from bridge.relay.room import Slots
from bridge.relay.session import Authority, Ended, Server, Session, TurnResult, attach_session, open_session
from bridge.relay.settle import settled
from bridge.relay.texts import Language, Text, language_of, say
from bridge.store.contract import (
    Answer,
    BindSession,
    BoundSession,
    HeldTexts,
    MessageState,
    OpenMessage,
    OutboxPart,
    Reply,
    SessionOf,
    Start,
    Store,
    UnbindSession,
)

CLEAR_SECONDS = 10.0
TYPING_SECONDS = 5.0
# What a server says of a session that cannot be taken up: a new one takes its place.
_NOT_STORED = frozenset({"session_not_found", "unsupported"})


NO_SESSION = SessionId("")


@dataclass(frozen=True, slots=True)
class Work:
    """What all conversations of an account share."""

    account: AccountId
    channel: Channel
    spec: ChannelSpec
    policy: Policy
    authority: Authority  # as for the owner with tools; others get it without
    language: Literal["auto", "en", "zh"]
    limits: LimitsTable
    caps: Caps
    media: Callable[[ConversationKey], received.Terms]
    outbox_folder: Path
    server: Server
    store: Store
    clock: Clock
    slots: Slots
    deliver: Callable[[list[OutboxPart]], None]
    release: Callable[[Iterable[str]], None]
    platform: PlatformClock
    live: Live | None  # None: nobody can follow turns on this channel
    log: Logger

    def claimed(self, message_id: MessageId, inbound: Inbound, received_ms: int, now_ms: int) -> Message:
        """A message that nobody has worked on yet. One that is too old by now is only reported."""
        missed = self.age_seconds(inbound.sent_at, received_ms, now_ms) > self.limits.stale_seconds
        return Message(message_id, inbound, MessageState.CLAIMED, NO_SESSION, received_ms, missed)

    def taken_up(self, stored: OpenMessage, inbound: Inbound) -> Message:
        """A stored message as the last run left it."""
        if stored.state is MessageState.CLAIMED:
            now_ms = unix_ms(self.clock.now())
            return self.claimed(stored.message_id, inbound, stored.received_ms, now_ms)
        return Message(stored.message_id, inbound, stored.state, stored.session_id, stored.received_ms)

    def age_seconds(self, sent_at: datetime | None, received_ms: int, now_ms: int) -> float:
        """How old a message is, by the platform's clock where it told the time."""
        if sent_at is None:
            return (now_ms - received_ms) / 1000
        return now_ms / 1000 + self.platform.ahead_seconds - sent_at.timestamp()


@dataclass(frozen=True, slots=True)
class Message:
    """A claimed or running message. ``session_id`` is the one it runs on.

    ``missed``: it was too old to be acted on when we learned of it, and is only reported.
    """

    message_id: MessageId
    inbound: Inbound
    state: MessageState
    session_id: SessionId
    received_ms: int
    missed: bool = False


class Conversation:
    """``work`` answers what ``add`` queued and returns when nothing is left."""

    def __init__(self, key: ConversationKey, work: Work, done: Callable[[ConversationKey], None]) -> None:
        self._key, self._work, self._done = key, work, done
        self._queue: deque[Message] = deque()
        self._session: Session | None = None
        self._session_authority: Authority | None = None
        self._owner = False  # whether it is the owner's direct chat
        self._active = False
        self.leaving = False
        self._used_at = work.clock.monotonic()

    @property
    def idle_seconds(self) -> float:
        """How long it has had nothing to do; negative while it has."""
        return -1.0 if self._active else self._work.clock.monotonic() - self._used_at

    @property
    def has_session(self) -> bool:
        return self._session is not None

    def leave(self) -> None:
        """Be busy until ``retire``, which must follow, is done: what is added meanwhile waits for it."""
        self._active = self.leaving = True

    def add(self, message: Message) -> bool:
        """Queue a message; True when ``work`` has to be started for it."""
        self._queue.append(message)
        if self._work.live is not None:
            self._work.live.begin(message.message_id)
        started, self._active = self._active, True
        return not started

    async def work(self) -> None:
        try:
            while self._queue:
                await self._next()
        finally:
            self._active = False
            self._used_at = self._work.clock.monotonic()

    async def close(self) -> None:
        """Hang up. The server keeps the history, to be taken up again."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def retire(self) -> None:
        """Hang up for long: the owner's history is kept, a stranger's is dropped. Then do what came."""
        if self._session is not None and not self._owner:
            with suppress(SessionError, TimeoutError):
                async with asyncio.timeout(CLEAR_SECONDS):
                    await self._session.clear()
        await self.close()
        self.leaving = False
        await self.work()

    # --- one message ----------------------------------------------------------

    async def _next(self) -> None:
        missed = self._missed()
        if missed:
            await self._report_missed(missed)
            return
        message = self._queue[0]
        error = await settled(self._answer(message), name="answer")
        if isinstance(error, Exception):
            self._work.log.error("turn.bug", error=type(error).__name__, message=message.message_id)
            await self._end(message, Text.FAILURE)
        self._take_off(1)

    def _take_off(self, count: int) -> None:
        for _ in range(count):
            message = self._queue.popleft()
            self._done(self._key)
            if self._work.live is not None:
                self._work.live.end(message.message_id)

    def _missed(self) -> list[Message]:
        """The missed messages at the queue's head."""
        return list(takewhile(lambda message: message.missed, self._queue))

    async def _report_missed(self, missed: list[Message]) -> None:
        """One notice lists them all, stored with the first: a crash may repeat it, never lose it."""
        first, language = missed[0], self._language(missed[0])
        text = f"{say(Text.MISSED, language)}\n{turn.missed_list([one.inbound for one in missed])}"
        reply = outbox.compose(Content(text), self._address(first), self._work.spec, self._work.caps)
        await self._store_reply(first, reply, "missed")
        for message in missed[1:]:
            await self._store_reply(message, None, "missed")
        self._take_off(len(missed))

    async def _answer(self, message: Message) -> None:
        if message.state is MessageState.RUNNING:
            await self._recover(message)
            return
        policy, limits = self._work.policy, self._work.limits
        self._owner, tools = policy.is_owner(message.inbound), policy.grants_tools(message.inbound)
        async with self._work.slots.take(self._owner):
            try:
                async with asyncio.timeout(limits.owner_turn_seconds if tools else limits.turn_seconds):
                    result = await self._run(message, tools)
            except (SessionError, TimeoutError) as error:
                await self._failed(message, error)
                return
        match result:
            case TurnResult():
                await self._finish(message, result)
            case (text, limit):
                await self._end(message, text, limit=limit)

    async def _run(self, message: Message, tools: bool) -> TurnResult | tuple[Text, int] | None:
        """The turn's result, or why there is nothing to put to an agent; None: it ended elsewhere."""
        inbound, work = message.inbound, self._work
        got = await received.receive(inbound, work.channel, work.media(self._key), tools, work.log)
        if turn.nothing_left(inbound, got):
            return got.refusal or (Text.BLANK, 0)
        owned = False  # by a session's history, which may name the files as long as it lives
        try:
            session = await self._ready(replace(work.authority, tools=tools))
            started = Start(work.account, message.message_id, session.session_id, self._now_ms())
            if not await work.store.do(started):
                return None
            await self._show_typing(inbound)
            age = work.age_seconds(inbound.sent_at, message.received_ms, self._now_ms())
            owned = True
            prompt = turn.prompt_of(inbound, got, age)
            return await session.turn(message.message_id, prompt, got.attachments, work.live)
        except SessionError as error:
            owned = owned and not error.code  # with a code, the server refused the turn
            raise
        finally:
            await got.let_go(keep=owned)

    async def _finish(self, message: Message, result: TurnResult) -> None:
        if result.ended is not Ended.COMPLETED:
            self._work.release([file.path for file in result.files])
            await self._end(message, Text.FAILURE)
            return
        content = await asyncio.to_thread(
            turn.content_of, result.text, result.files, self._work.outbox_folder
        )
        over = content.files[self._work.limits.reply_files :]
        held = await self._work.store.get(HeldTexts(self._work.account, self._key))
        reply = outbox.compose(content, self._address(message), self._work.spec, self._work.caps, held)
        await self._store_reply(message, reply, "")
        self._work.release([file.path for file in over])

    async def _failed(self, message: Message, error: SessionError | TimeoutError) -> None:
        self._work.log.warning("turn.failed", message=message.message_id, reason=str(error) or "out of time")
        if isinstance(error, TimeoutError) or not error.code:
            await self.close()
        await self._end(message, Text.FAILURE)

    async def _recover(self, message: Message) -> None:
        """An agent had it before we died: its answer from the session's record, or the plain truth."""
        self._owner = self._work.policy.is_owner(message.inbound)
        bound = await self._bound()
        over = bound is not None and self._is_over(
            bound
        )  # asked first: looking into a session is a use of it
        result = await self._recorded(message, bound)
        if result is not None and result.ended is Ended.COMPLETED:
            await self._finish(message, result)
        else:
            await self._end(message, Text.INTERRUPTED)
        if over:
            await self._work.store.do(UnbindSession(self._work.account, self._key))

    async def _recorded(self, message: Message, bound: BoundSession | None) -> TurnResult | None:
        """How its turn ended, as its session has it. That is not kept: what is due may have changed since."""
        if bound is None or bound.session_id != message.session_id:
            return None
        authority = Authority.from_text(bound.authority)
        try:
            async with asyncio.timeout(self._work.limits.turn_seconds):
                session, result = await attach_session(
                    self._work.server, authority, message.session_id, message.message_id
                )
        except (SessionError, TimeoutError) as error:
            if isinstance(error, SessionError) and not error.code:
                raise
            return None
        await session.close()
        return result

    # --- its session ----------------------------------------------------------

    async def _ready(self, authority: Authority) -> Session:
        """The conversation's session: as it is, taken up again, or a new one where the authority changed.

        A stranger's that was idle for too long is replaced, too: nobody goes on with what was said in it.
        """
        if self._session is not None and self._session.alive and self._session_authority == authority:
            return self._session
        await self.close()
        bound = await self._bound()
        if bound is not None and bound.authority == authority.as_text() and not self._is_over(bound):
            await self._take_up(authority, bound)
        if self._session is None:
            await self._open(authority)
        assert self._session is not None  # noqa: S101 - one of the two has set it
        return self._session

    async def _bound(self) -> BoundSession | None:
        return await self._work.store.get(SessionOf(self._work.account, self._key))

    def _is_over(self, bound: BoundSession) -> bool:
        """Whether it is a stranger's that ``retire`` would have cleared by now, had we run all the time."""
        return not self._owner and self._is_idle(bound)

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
        self._session, self._session_authority = session, authority
        if self._is_idle(bound):
            await self._bind(session, authority)

    async def _open(self, authority: Authority) -> None:
        channel, _, account = self._work.account.partition(":")
        chat = ours.Chat(channel=channel, account=account, conversation=turn.shown_key(self._key))
        session = await open_session(self._work.server, authority, chat)
        self._session, self._session_authority = session, authority  # closed, should the step fail
        await self._bind(session, authority)

    async def _bind(self, session: Session, authority: Authority) -> None:
        account, text = self._work.account, authority.as_text()
        await self._work.store.do(BindSession(account, self._key, session.session_id, text, self._now_ms()))

    # --- its replies ----------------------------------------------------------

    async def _end(self, message: Message, text: Text, **values: object) -> None:
        """End the claim with a fixed text of ours."""
        said = say(text, self._language(message), **values)
        await self._store_reply(message, outbox.notice(said, self._address(message)), text)

    async def _store_reply(self, message: Message, reply: Reply | None, reason: str) -> None:
        now_ms = self._now_ms()
        account, message_id = self._work.account, message.message_id
        ids = await self._work.store.do(Answer(account, message_id, reply, now_ms, reason))
        if reply is not None:
            self._work.deliver(outbox.stored_parts(account, message_id, reply, ids, now_ms))

    async def _show_typing(self, inbound: Inbound) -> None:
        """A courtesy: no trouble with it harms the turn, or delays it for long."""
        channel = self._work.channel
        if not isinstance(channel, ShowsTyping):
            return
        try:
            async with asyncio.timeout(TYPING_SECONDS):
                bug = await settled(channel.typing(inbound.to, inbound.reply_to), name="typing")
        except (ChannelError, TimeoutError) as error:
            self._work.log.debug("typing.failed", reason=str(error) or "timed out")
        else:
            if bug is not None:
                self._work.log.error("typing.bug", error=bug)

    def _address(self, message: Message) -> Address:
        inbound = message.inbound
        return Address(self._key, inbound.to, inbound.reply_to, self._language(message))

    def _language(self, message: Message) -> Language:
        return language_of(message.inbound.text, self._work.language)

    def _now_ms(self) -> int:
        return unix_ms(self._work.clock.now())
