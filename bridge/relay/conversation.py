"""One conversation: its messages in order, one turn at a time, on one agent session."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from bridge.channel import ChannelError, Inbound, ShowsTyping
from bridge.clock import unix_ms
from bridge.errors import SessionError
from bridge.ids import ConversationKey, MessageId
from bridge.meter import TurnEnd
from bridge.relay import outbox, received, turn
from bridge.relay.asking import asking
from bridge.relay.chat_session import ChatSession
from bridge.relay.outbox import Address, Content
from bridge.relay.session import Authority, Ended, Session, TurnResult, attach_session
from bridge.relay.settle import settled
from bridge.relay.texts import Language, Text, language_of, say
from bridge.relay.work import Message, Work
from bridge.relay.working import Working
from bridge.store.contract import Answer, BoundSession, HeldTexts, MessageState, Post, Reply, Start

TYPING_SECONDS = 5.0


class Conversation:
    """``work`` answers what ``add`` queued and returns when nothing is left."""

    def __init__(self, key: ConversationKey, work: Work, done: Callable[[ConversationKey], None]) -> None:
        self._key, self._work, self._done = key, work, done
        self._queue: deque[Message] = deque()
        self._session = ChatSession(key, work)
        self._working: Working | None = None
        self._active = False
        self.leaving = False
        self._used_at = work.clock.monotonic()

    @property
    def idle_seconds(self) -> float:
        """How long it has had nothing to do; negative while it has."""
        return -1.0 if self._active else self._work.clock.monotonic() - self._used_at

    @property
    def is_busy(self) -> bool:
        """Whether a message waits here or is worked on."""
        return bool(self._queue)

    @property
    def has_session(self) -> bool:
        return self._session.is_open

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

    def holds(self, message_id: MessageId) -> bool:
        """Whether the message waits here, or is worked on."""
        return any(one.message_id == message_id for one in self._queue)

    def edit(self, edited: Message) -> bool:
        """A stored message that waits was changed: it takes its own place. What ``add`` returns.

        Work on it that has begun begins anew: its turn has not started, or it could not have been edited.
        One that is not queued (any more) is added.
        """
        for place, one in enumerate(self._queue):
            if one.message_id == edited.message_id:
                if edited.revision > one.revision:
                    self._queue[place] = replace(one, inbound=edited.inbound, revision=edited.revision)
                    if self._working is not None and self._working.message is one:
                        self._working.stop()
                return False
        return self.add(edited)

    def take_back(self, message_id: MessageId) -> Working | None:
        """A recalled message is not worked on any more. Returns the work whose turn has to be cancelled."""
        working, at_work = self._working, None
        if working is not None and working.message.message_id == message_id:
            at_work = working.message
        for one in [one for one in self._queue if one.message_id == message_id and one is not at_work]:
            self._take_off(one)
        return working if working is not None and at_work is not None and working.stop() else None

    async def work(self) -> None:
        try:
            while self._queue:
                await self._next()
        finally:
            self._active = False
            self._used_at = self._work.clock.monotonic()

    async def close(self) -> None:
        """Hang up. The server keeps the history, to be taken up again."""
        await self._session.close()

    async def retire(self) -> None:
        """Hang up for long: the owner's history is kept, a stranger's is dropped. Then do what came."""
        await self._session.leave()
        self.leaving = False
        await self.work()

    # --- one message ----------------------------------------------------------

    async def _next(self) -> None:
        missed = self._missed()
        if missed:
            await self._report_missed(missed)
            return
        message = self._queue[0]
        self._working = working = Working(message)
        error = await settled(self._answer(working), name="answer")
        self._working = None
        if isinstance(error, Exception):
            self._work.log.error("turn.bug", error=type(error).__name__, message=message.message_id)
            await self._end(message, Text.FAILURE)
        self._take_off(message)

    def _take_off(self, message: Message) -> None:
        """It is over; one that was edited meanwhile is another, and stays."""
        for place, one in enumerate(self._queue):
            if one is message:
                del self._queue[place]
                self._done(self._key)
                if self._work.live is not None:
                    self._work.live.end(message.message_id)
                return

    def _missed(self) -> list[Message]:
        """The missed messages at the queue's head."""
        return list(takewhile(lambda message: message.missed, self._queue))

    async def _report_missed(self, missed: list[Message]) -> None:
        """One notice lists them all, stored with the first: a crash may repeat it, never lose it."""
        first, language = missed[0], self._language(missed[0])
        text = f"{say(Text.MISSED, language)}\n{turn.missed_list([one.inbound for one in missed])}"
        reply = outbox.compose(Content(text), self._address(first), self._work.spec, self._work.caps)
        told = await self._store_reply(first, reply, Text.MISSED)
        self._take_off(first)
        for message in missed[1:] if told else ():  # taken back meanwhile: the others are listed anew
            await self._store_reply(message, None, Text.MISSED)
            self._take_off(message)

    async def _answer(self, working: Working) -> None:
        async with working.going_on():
            await self._work_on(working)
        if working.left_a_turn:
            await self._session.close()

    async def _work_on(self, working: Working) -> None:
        message = working.message
        if message.state is MessageState.RUNNING:
            await self._recover(message)
            return
        policy, limits = self._work.policy, self._work.limits
        owner, tools = policy.is_owner(message.inbound), policy.grants_tools(message.inbound)
        self._session.owner = owner
        clock, meter = self._work.clock, self._work.meter
        asked_at = clock.monotonic()
        async with self._work.slots.take(owner):
            began = clock.monotonic()
            meter.slot_waits.add(began - asked_at)
            try:
                async with asyncio.timeout(
                    limits.owner_turn_seconds if tools else limits.turn_seconds
                ) as time_limit:
                    result = await self._run(working, tools, time_limit)
            except (SessionError, TimeoutError) as error:
                end = TurnEnd.TIMEOUT if isinstance(error, TimeoutError) else TurnEnd.UNREACHABLE
                meter.turns[end].add(clock.monotonic() - began)
                await self._failed(message, error)
                return
        meter.turns[_end_of(result)].add(clock.monotonic() - began)
        match result:
            case TurnResult():
                await self._finish(message, result)
            case (text, limit):
                await self._end(message, text, limit=limit)

    async def _run(
        self, working: Working, tools: bool, time_limit: asyncio.Timeout
    ) -> TurnResult | tuple[Text, int] | None:
        """The turn's result, or why there is nothing to put to an agent; None: it is not to run any more."""
        message, work = working.message, self._work
        inbound = message.inbound
        got = await received.receive(inbound, work.channel, work.media(self._key), tools, work.log)
        if turn.nothing_left(inbound, got):
            return got.refusal or (Text.BLANK, 0)
        owned = False  # by a session's history, which may name the files as long as it lives
        try:
            session = await self._session.ready(work.authority_of(tools))
            if not await self._start(message, session):
                return None
            await self._show_typing(inbound)
            age = work.age_seconds(inbound.sent_at, message.received_ms, self._now_ms())
            prompt = turn.prompt_of(inbound, got, age)
            if not working.begin_turn(session):
                return None
            owned = True
            asks = asking(work, self._key, inbound, time_limit)
            return await session.turn(message.message_id, prompt, got.attachments, work.live, asks)
        except SessionError as error:
            owned = owned and not error.code  # with a code, the server refused the turn
            raise
        finally:
            await got.let_go(keep=owned)

    async def _start(self, message: Message, session: Session) -> bool:
        now_ms, account = self._now_ms(), self._work.account
        step = Start(account, message.message_id, session.session_id, now_ms, message.revision)
        return await self._work.store.do(step)

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
        address, spec, caps = self._address(message), self._work.spec, self._work.caps
        reply = outbox.compose(content, address, spec, caps, held)
        for earlier in () if reply.carried else outbox.earlier(held, address, spec, caps):
            await self._send_ahead(earlier)
        await self._store_reply(message, reply, "")
        self._work.release([file.path for file in over])

    async def _failed(self, message: Message, error: SessionError | TimeoutError) -> None:
        self._work.log.warning("turn.failed", message=message.message_id, reason=str(error) or "out of time")
        if isinstance(error, TimeoutError) or not error.code:
            await self._session.close()
        await self._end(message, Text.FAILURE)

    async def _recover(self, message: Message) -> None:
        """An agent had it before we died: its answer from the session's record, or the plain truth."""
        self._session.owner = self._work.policy.is_owner(message.inbound)
        bound = await self._session.bound()
        over = bound is not None and self._session.is_over(bound)  # before looking into it, which is a use
        result = await self._recorded(message, bound)
        if result is not None and result.ended is Ended.COMPLETED:
            await self._finish(message, result)
        else:
            await self._end(message, Text.INTERRUPTED)
        if over:
            await self._session.forget()

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

    # --- its replies ----------------------------------------------------------

    async def _end(self, message: Message, text: Text, **values: object) -> None:
        """End the claim with a fixed text of ours."""
        said = say(text, self._language(message), **values)
        await self._store_reply(message, outbox.notice(said, self._address(message)), text)

    async def _send_ahead(self, earlier: Reply) -> None:
        """What is held leaves by itself: should the claim not end now, it has still left."""
        now_ms, account = self._now_ms(), self._work.account
        ids = await self._work.store.do(Post(account, earlier, now_ms))
        self._work.deliver(outbox.stored_parts(account, MessageId(""), earlier, ids, now_ms, ""))

    async def _store_reply(self, message: Message, reply: Reply | None, reason: str) -> bool:
        """End the claim. False: it was not open any more, or is another, as after a recall or an edit."""
        now_ms = self._now_ms()
        account, message_id = self._work.account, message.message_id
        step = Answer(account, message_id, reply, now_ms, reason, message.revision)
        ids = await self._work.store.do(step)
        if reply is not None and ids:
            self._work.deliver(outbox.stored_parts(account, message_id, reply, ids, now_ms, reason))
        elif reply is not None:
            self._work.release(outbox.copies_in(reply))
        return bool(ids)

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


def _end_of(result: TurnResult | tuple[Text, int] | None) -> TurnEnd:
    """What is counted of a turn that came to a result."""
    if not isinstance(result, TurnResult):
        return TurnEnd.EMPTY
    return TurnEnd.COMPLETED if result.ended is Ended.COMPLETED else TurnEnd.FAILED
