"""One conversation: its messages in order, one turn at a time, on one agent session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.channel import WhenBusy
from bridge.clock import unix_ms
from bridge.errors import SessionError
from bridge.ids import ConversationKey, MessageId, SessionId
from bridge.meter import TurnEnd
from bridge.relay import received, turn
from bridge.relay.asking import asking
from bridge.relay.chat_session import ChatSession, ChoiceGoneError
from bridge.relay.choices import ChoiceName, Command, choice_in
from bridge.relay.choosing import Choosing
from bridge.relay.live import Sees
from bridge.relay.queue import Queue, together
from bridge.relay.replies import Replies
from bridge.relay.session import Authority, Ended, RefusedError, Session, TurnResult, attach_session
from bridge.relay.settle import settled
from bridge.relay.texts import Text
from bridge.relay.work import Message, Work
from bridge.relay.working import Working
from bridge.store.change_steps import STOPPED
from bridge.store.contract import BoundSession, MessageState, Start

CHOOSE_SECONDS = 90.0  # for an agent to start and tell what it offers
CHOSEN = "chosen"  # the reason of a reply to a command that is done in its turn


@dataclass(frozen=True, slots=True)
class Now:
    """What a conversation has to do: the messages it works on, for how long, and those that wait.

    ``ending`` counts those that are neither: they were stopped, and that takes a moment.
    """

    running: Sequence[Message] = ()
    seconds: float = 0.0
    waiting: Sequence[Message] = ()
    ending: int = 0


class Conversation:
    """``work`` answers what ``add`` queued and returns when nothing is left."""

    def __init__(self, key: ConversationKey, work: Work, done: Callable[[ConversationKey], None]) -> None:
        self._key, self._work, self._done = key, work, done
        self._queue, self._replies = Queue(), Replies(key, work)
        self._begun: set[MessageId] = set()  # started in the store, and not given to an agent yet
        self._session = ChatSession(key, work)
        self._working: Working | None = None
        self._active = self._renewing = False
        self.leaving = False
        self._used_at = work.clock.monotonic()

    @property
    def idle_seconds(self) -> float:
        """How long it has had nothing to do; negative while it has."""
        return -1.0 if self._active else self._work.clock.monotonic() - self._used_at

    @property
    def is_busy(self) -> bool:
        """Whether a message waits here or is worked on."""
        return len(self._queue) > 0

    @property
    def now(self) -> Now:
        working, endings = self._working, self._queue.endings
        running = working.members if working is not None else []
        seconds = self._work.clock.monotonic() - working.began_at if working is not None else 0.0
        waiting = self._queue.behind(running)
        return Now(
            [one for one in running if one.message_id not in endings],
            seconds,
            [one for one in waiting if one.message_id not in endings],
            len(endings),
        )

    @property
    def has_session(self) -> bool:
        return self._session.is_open

    def leave(self) -> None:
        """Be busy until ``retire``, which must follow, is done: what is added meanwhile waits for it."""
        self._active = self.leaving = True

    def add(self, message: Message) -> bool:
        """Queue a message; True when ``work`` has to be started for it."""
        self._queue.add(message)
        if self._work.live is not None:
            self._work.live.begin(message.message_id)
        started, self._active = self._active, True
        return not started

    def holds(self, message_id: MessageId) -> bool:
        """Whether the message waits here, or is worked on."""
        return self._queue.find(message_id) is not None

    def edit(self, edited: Message) -> bool:
        """A stored message that waits was changed: it takes its own place. What ``add`` returns.

        Work on it that has begun begins anew: its turn has not started, or it could not have been edited.
        One that is not queued (any more) is added.
        """
        one = self._queue.find(edited.message_id)
        if one is None:
            return self.add(edited)
        if edited.revision > one.revision:
            self._queue.change(one, edited)
            if self._working is not None and self._working.has(one):
                self._working.redo()
        return False

    def take_back(self, message_id: MessageId) -> Working | None:
        """A recalled message is not worked on any more. Returns the work whose turn has to be cancelled."""
        one, working = self._queue.find(message_id), self._working
        if one is None:
            return None
        if working is not None and working.has(one):
            if len(working.members) == 1:
                return self._stopped(working)
            working.leave_out(one)
        self._take_off(one)
        return None

    def stop(self, ending: Text | None = None, before: Message | None = None) -> Working | None:
        """End all that is worked on or waits (up to ``before``); its senders are told ``ending``.

        Returns the work whose turn has to be cancelled.
        """
        self._queue.end(ending, before)
        return self._stopped(self._working) if self._working is not None else None

    def _stopped(self, working: Working) -> Working | None:
        """The work ends, and so does what it asks. Returns it where its turn has to be cancelled."""
        self._close_questions()
        return working if working.stop() else None

    def _close_questions(self) -> None:
        """Nobody waits for the answers any more."""
        if self._work.approvals is not None:
            self._work.approvals.close_all(self._key)

    def arrived(self, message: Message) -> Coroutine[Any, Any, None] | None:
        """What has to be done about a message that was added while another is worked on."""
        working, when_busy = self._working, self._work.when_busy
        if self._is_choice(message):
            return None
        if when_busy is WhenBusy.INTERRUPT:
            stopped = self.stop(Text.REPLACED, before=message)
            return stopped.cancel_turn() if stopped is not None else None
        if when_busy is WhenBusy.STEER and working is not None and working.session is not None:
            return self._steer(working)
        return None

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

    def renew(self) -> None:
        """The next message has a session of its own: the binding to the one before is gone."""
        self._renewing = True

    async def retire(self) -> None:
        """Hang up for long: the owner's history is kept, a stranger's is dropped. Then do what came."""
        await self._session.leave()
        self.leaving = False
        await self.work()

    # --- one message ----------------------------------------------------------

    async def _next(self) -> None:
        if self._renewing:
            self._renewing = False
            await self._session.leave()
        head, missed = self._queue.head, self._queue.missed()
        if head.message_id in self._queue.endings:
            await self._end_early(head)
            self._take_off(head)
        elif missed:
            await self._report_missed(missed)
        else:
            await self._take_on(head)

    async def _take_on(self, head: Message) -> None:
        self._working = working = Working(head, self._work.clock.monotonic())
        try:
            error = await settled(self._answer(working), name="answer")
            self._working = None
            self._close_questions()
            if isinstance(error, Exception):
                self._work.log.error("turn.bug", error=type(error).__name__, message=head.message_id)
                await self._end(working, Text.FAILURE)
        finally:
            working.sign.set()
            working.told.set()
        for message in () if working.again else working.members:
            if message.message_id in self._queue.endings:
                await self._end_early(message)
            self._take_off(message)
        await self._replies.settle()

    async def _end_early(self, message: Message) -> None:
        """It is not worked on (any more); where its claim has ended otherwise, that holds."""
        ending = self._queue.endings[message.message_id]
        if ending is None:
            await self._replies.store([message], None, STOPPED)
        else:
            await self._replies.say([message], ending)

    def _take_off(self, message: Message) -> None:
        """It is over; one that was edited meanwhile is another, and stays."""
        if self._queue.remove(message):
            self._begun.discard(message.message_id)
            self._done(self._key)
            if self._work.live is not None:
                self._work.live.end(message.message_id)

    async def _report_missed(self, missed: Sequence[Message]) -> None:
        """One notice lists them all, stored with the first: a crash may repeat it, never lose it."""
        told = await self._replies.say_missed(missed)
        self._take_off(missed[0])
        for message in missed[1:] if told else ():  # taken back meanwhile: the others are listed anew
            await self._replies.store([message], None, Text.MISSED)
            self._take_off(message)

    async def _answer(self, working: Working) -> None:
        if self._work.when_busy is WhenBusy.COLLECT and not working.is_stopped:
            most_files = self._work.media(self._key).limits.max_files
            working.take(together(self._queue, most_files, self._is_choice))
        async with working.going_on():
            await self._work_on(working)
        if working.left_a_turn:
            await self._session.close()
            await self._end(working, Text.FAILURE)  # of what it was given, some may still be open
        async with working.steering:
            pass  # what is on its way to the turn has found out that this is over

    async def _work_on(self, working: Working) -> None:
        message = working.message
        if message.state is MessageState.RUNNING:
            await self._recover(working)
            return
        if (command := choice_in(message.inbound, self._work.policy)) is not None:
            await self._choose(working, command)
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
                meter.turned(end, clock.monotonic() - began)
                await self._failed(working, error)
                return
        meter.turned(_end_of(result), clock.monotonic() - began)
        match result:
            case TurnResult():
                await self._finish(working, result)
            case (text, limit):
                await self._end(working, text, limit=limit)

    def _is_choice(self, message: Message) -> bool:
        """Whether it is a command that is done in its turn, by us and not by an agent."""
        return choice_in(message.inbound, self._work.policy) is not None

    async def _choose(self, working: Working, command: Command) -> None:
        """Do the command, and end its claim with the answer: after a crash in between it is done again."""
        message, self._session.owner = working.message, True
        choosing = Choosing(self._key, self._work, self._session)
        seconds = CHOOSE_SECONDS
        if command.name is ChoiceName.COMPACT:
            seconds = self._work.limits.owner_turn_seconds
        try:
            async with asyncio.timeout(seconds):
                said = await choosing.answer(command, self._replies.language([message]))
        except (SessionError, TimeoutError) as error:
            await self._failed(working, error)
            return
        working.end_turn()
        await self._replies.tell([message], said, CHOSEN)

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
            if not await self._start(working, session):
                return None
            age = work.age_seconds(inbound.sent_at, message.received_ms, self._now_ms())
            prompt = turn.prompt_of(inbound, got, age)
            if not working.begin_turn(session):
                return None
            sees = self._shown(working, tools)
            self._begun.difference_update(one.message_id for one in working.members)
            owned = True
            asks = asking(work, self._key, inbound, time_limit)
            try:
                return await session.turn(message.message_id, prompt, got.attachments, sees, asks)
            except SessionError as error:
                if error.code or work.approvals is None or not work.approvals.has_asked(self._key):
                    raise
            await self._session.close()
            authority, session_id = self._session.authority or work.authority_of(tools), session.session_id
            found = await self._taken_up(working, authority, session_id, time_limit)
            return found or TurnResult(Ended.FAILED)
        except SessionError as error:
            owned = owned and not error.code  # with a code, the server refused the turn
            raise
        finally:
            working.end_turn()
            await got.let_go(keep=owned)

    def _shown(self, working: Working, tools: bool) -> Sees | None:
        """Have it shown that the turn runs. Returns who is to be told what happens in it."""
        message, work = working.message, self._work
        if work.signs is not None:
            working.sign = work.signs.typing(message.message_id, message.inbound)
        if work.progress is None or not tools:
            return work.live
        watched = work.progress.watch(message.message_id, message.inbound, self._replies.language([message]))
        working.told = watched.over
        return watched

    async def _start(self, working: Working, session: Session) -> bool:
        """Whether all of it may run. What may not is over, or is another: the rest begins anew."""
        for message in working.members:
            if not await self._may_begin(message, session):
                working.leave_out(message)
                self._take_off(message)
                return False
        return True

    async def _may_begin(self, message: Message, session: Session) -> bool:
        """Whether it may be given to an agent, which is durable from here on."""
        if message.message_id not in self._begun:
            now_ms, account = self._now_ms(), self._work.account
            step = Start(account, message.message_id, session.session_id, now_ms, message.revision)
            if not await self._work.store.do(step):
                return False
            self._begun.add(message.message_id)
        return True

    async def _steer(self, working: Working) -> None:
        """Give what waits to the turn that runs, one after the other, as long as that takes it in."""
        async with working.steering:
            while (session := working.session) is not None:
                waiting = self._queue.behind(working.members)
                message = waiting[0] if waiting else None
                if (
                    message is None
                    or not self._queue.waits(message)
                    or not turn.is_text_alone(message.inbound)
                    or self._is_choice(message)
                ):
                    return
                if not await self._may_begin(message, session):
                    self._take_off(message)
                elif await self._is_taken_in(message, session):
                    self._begun.discard(message.message_id)
                    working.members.append(message)
                else:
                    return

    async def _is_taken_in(self, message: Message, session: Session) -> bool:
        """Whether the running turn has the message now; False: it waits for a turn of its own."""
        try:
            return await session.steer(message.message_id, turn.steered(message.inbound))
        except SessionError:
            return False

    def _count(self, working: Working, result: TurnResult) -> None:
        """What its turn used is counted with the end of its messages, however they end."""
        agent = result.used.agent or self._work.default_agent
        self._replies.owe(replace(result.used, sender=working.message.inbound.sender, agent=agent))

    async def _finish(self, working: Working, result: TurnResult) -> None:
        working.end_turn()
        self._count(working, result)
        if result.ended is Ended.COMPLETED:
            async with working.steering:  # what was on its way to the turn belongs to it now, or waits
                members = working.members
            await self._replies.answer(members, result)
        else:
            self._work.release([file.path for file in result.files])
            await self._end_failed(working, result.cure)

    async def _failed(self, working: Working, error: SessionError | TimeoutError) -> None:
        self._work.log.warning(
            "turn.failed", message=working.message.message_id, reason=str(error) or "out of time"
        )
        if isinstance(error, TimeoutError) or not error.code:
            await self._session.close()
        await self._end_failed(working, error.cure if isinstance(error, RefusedError) else "", error)

    async def _end_failed(self, working: Working, cure: str, error: Exception | None = None) -> None:
        """The owner is told what they can do about it."""
        if cure and self._work.policy.is_owner(working.message.inbound):
            await self._end(working, Text.SETUP, cure=cure)
        else:
            await self._end(working, Text.CHOICE_GONE if isinstance(error, ChoiceGoneError) else Text.FAILURE)

    async def _end(self, working: Working, text: Text, **values: object) -> None:
        """End the claims with a fixed text, but for those that were ended early: these have their own."""
        working.end_turn()
        async with working.steering:
            members = [one for one in working.members if one.message_id not in self._queue.endings]
        self._begun.difference_update(one.message_id for one in members)
        if members:
            await self._replies.say(members, text, **values)

    async def _recover(self, working: Working) -> None:
        """An agent had it before we died: its answer from the session's record, or the plain truth."""
        message = working.message
        self._session.owner = self._work.policy.is_owner(message.inbound)
        bound = await self._session.bound()
        over = bound is not None and self._session.is_over(bound)  # before looking into it, which is a use
        result = await self._recorded(working, bound)
        if result is not None and result.ended is Ended.COMPLETED:
            await self._finish(working, result)
        else:
            if result is not None:
                self._count(working, result)
            await self._end(working, Text.INTERRUPTED)
        if over:
            await self._session.forget()

    async def _recorded(self, working: Working, bound: BoundSession | None) -> TurnResult | None:
        """How its turn ended, as its session has it, or as it goes on to."""
        if bound is None or all(bound.session_id != one.session_id for one in working.members):
            return None
        authority, limits = Authority.from_text(bound.authority), self._work.limits
        tools = authority.tools and self._work.policy.grants_tools(working.message.inbound)
        try:
            async with asyncio.timeout(limits.owner_turn_seconds if tools else limits.turn_seconds) as limit:
                return await self._taken_up(working, replace(authority, tools=tools), bound.session_id, limit)
        except (SessionError, TimeoutError) as error:
            if isinstance(error, SessionError) and not error.code:
                raise
            return None

    async def _taken_up(
        self, working: Working, authority: Authority, session_id: SessionId, time_limit: asyncio.Timeout
    ) -> TurnResult | None:
        """The result of a turn that we have lost: it may have ended, or still wait for its owner's answer.

        The session is not kept: what is due may have changed since.
        """
        work, ids = self._work, [one.message_id for one in working.members]
        session, result = await attach_session(work.server, authority, session_id, *ids)
        try:
            if session.running and working.begin_turn(session):
                asks = asking(work, self._key, working.message.inbound, time_limit)
                result = await session.resume(work.live, asks)
            return result
        finally:
            working.end_turn()
            await session.close()

    def _now_ms(self) -> int:
        return unix_ms(self._work.clock.now())


def _end_of(result: TurnResult | tuple[Text, int] | None) -> TurnEnd:
    """What is counted of a turn that came to a result."""
    if not isinstance(result, TurnResult):
        return TurnEnd.EMPTY
    return TurnEnd.COMPLETED if result.ended is Ended.COMPLETED else TurnEnd.FAILED
