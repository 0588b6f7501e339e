"""How a session begins on a connection: started anew, or attached as it is stored."""

import asyncio
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bridge.clock import unix_ms
from bridge.errors import StoreError
from bridge.ids import SessionId, new_uuid
from bridge.logs import get_logger
from bridge.protocol import ours
from bridge.protocol.codec import write
from bridge.protocol.limits import CHANNEL_NAME_BYTES
from bridge.protocol.messages import SessionAttach
from bridge.protocol.wire import Wire
from bridge.sessions.approvals import Approvals
from bridge.sessions.choosing import folder, judge, resolve_folder
from bridge.sessions.context import Context, SessionSettings
from bridge.sessions.contract import Services
from bridge.sessions.errors import RequestError
from bridge.sessions.history import History
from bridge.sessions.kept import Kept
from bridge.sessions.live import LiveSessions
from bridge.sessions.outbound import IDLE_RESERVE, Numbered, Outbound
from bridge.sessions.session import Session
from bridge.store.contract import EndTurn, LoadSession, OpenSession, ReserveSeq, SessionRecord, StoredSession

log = get_logger(__name__)

NUMBER_BYTES = 20  # by which a frame may grow: it is sent again under another number


class Opener:
    """Opens the session of one connection. Whoever gets a session must release it from ``live``."""

    def __init__(self, services: Services, live: LiveSessions, outbound: Outbound) -> None:
        self._services, self._live, self._outbound = services, live, outbound

    async def start(self, message: ours.SessionStart) -> Session:
        """Check and store a new session, and answer.

        Raises:
            RequestError: ``invalid_request``.
            StoreError: it could not be stored.
        """
        _check_overrides(message)
        _check_channel(message.channel)
        record = SessionRecord(
            session_id=SessionId(new_uuid()),
            cwd=str(await folder(message.cwd)),
            settings=SessionSettings.of(message).encode(),
            seq=IDLE_RESERVE,
        )
        session = self._session(record, History(), last=0)
        await self._judge(session.context)
        await self._services.store.do(OpenSession(record, self._now_ms()))
        await self._greet(session, message.request_id)
        await self._live.hold(record.session_id)  # nobody else knows it before the greeting is read
        return session

    async def attach(self, message: SessionAttach) -> Session:
        """Take up a stored session, answer, and tell how its last turn ended.

        Raises:
            RequestError: ``session_not_found`` or ``invalid_request``.
            StoreError: the end of an interrupted turn could not be stored.
        """
        session_id = SessionId(message.session_id)
        cwd = await asyncio.to_thread(resolve_folder, message.cwd)
        kept = await self._live.hold(session_id, cwd)
        try:
            if kept is not None:
                return await self._take_over(kept, message)
            return await self._attach(session_id, cwd, message)
        except BaseException:  # stopped, too: nobody will run it
            self._live.release(session_id)
            raise

    async def _take_over(self, kept: Kept, message: SessionAttach) -> Session:
        """Take up a session in its turn, which waits for an approval: it is asked for once more."""
        session = kept.session
        session.carry_on(kept.turns)
        session.context.events.lead_to(self._outbound)
        try:
            await self._greet(session, message.request_id)
            for event in session.running.so_far() if session.running else ():
                await self._replay(session, event)
        except BaseException:  # nobody will run it
            kept.turns.cancel()
            raise
        return session

    async def _attach(self, session_id: SessionId, cwd: Path | None, message: SessionAttach) -> Session:
        stored = await self._services.store.get(LoadSession(session_id))
        if stored is None or cwd is None or stored.record.cwd != str(cwd):
            raise RequestError("session_not_found", "no such session is stored for this cwd: start a new one")
        try:
            missed = self._missed(stored.last_turn)
            history = await asyncio.to_thread(History, stored.history)
            session = self._session(stored.record, history, last=stored.record.seq)
        except (ValueError, TypeError, KeyError) as error:  # another version's, or damaged
            log.error("session.unreadable", session=session_id, error=error)
            raise RequestError("session_not_found", "the session cannot be read: start a new one") from error
        await self._leave_lost_agent(session.context)
        interrupted = await self._end_interrupted(stored)
        session.context.events.reserved(await self._note_use(stored.record))
        await self._greet(session, message.request_id)
        for event in [*missed, *interrupted]:
            await self._replay(session, event)
        return session

    def _missed(self, frames: Sequence[bytes]) -> list[Wire]:
        """How the last turn ended: all of it, or nothing where a part does not fit a frame any more.

        Raises:
            ProtocolError: it cannot be read.
        """
        most_bytes = self._services.table.max_server_frame_bytes - NUMBER_BYTES
        if any(len(frame) > most_bytes for frame in frames):
            return []
        events = [ours.read_server_event(frame) for frame in frames]
        return [event for event in events if not isinstance(event, ours.UnknownEvent)]

    async def _end_interrupted(self, stored: StoredSession) -> list[ours.TurnFailed]:
        """Record the end of turns that a crash of the server cut off."""
        ended = []
        for turn_id, request_id in stored.interrupted:
            failed = ours.TurnFailed(
                request_id=request_id,
                session_id=stored.record.session_id,
                turn_id=turn_id,
                seq=stored.record.seq,
                code="internal_error",
                message="the server stopped while this turn ran",
            )
            step = EndTurn(
                session_id=stored.record.session_id,
                turn_id=turn_id,
                events=(write(failed),),
                history=(),
                seq=stored.record.seq,
                now_ms=self._now_ms(),
            )
            await self._services.store.do(step)
            ended.append(failed)
        return ended

    async def _note_use(self, record: SessionRecord) -> int:
        """Note when the session was taken up, with numbers for the answer; returns up to which it has some.

        Where that cannot be stored, the session is only forgotten the sooner.
        """
        upto = record.seq + IDLE_RESERVE
        try:
            await self._services.store.do(ReserveSeq(record.session_id, upto, self._now_ms()))
        except StoreError as error:
            log.warning("session.use_not_noted", session=record.session_id, error=error)
            return record.seq
        return upto

    async def _replay(self, session: Session, event: Wire) -> None:
        """Send an event of before under its own ids and a new number, so that numbers still rise."""
        await session.context.events.send(
            lambda seq: event.model_copy(update={"seq": seq}), self._services.deadlines.reply
        )

    def _session(self, record: SessionRecord, history: History, last: int) -> Session:
        settings = SessionSettings.decode(record.settings)
        events = Numbered(self._outbound, self._services.store, record.session_id, last, record.seq)
        return Session(
            Context(
                services=self._services,
                session_id=record.session_id,
                cwd=Path(record.cwd),
                settings=settings,
                tools=self._services.tools(settings.no_tools, settings.channel),
                history=history,
                events=events,
                approvals=Approvals(),
            )
        )

    async def _judge(self, context: Context) -> None:
        """Whether the session can be as it is to be; raises RequestError. Most say nothing of that."""
        settings = context.settings
        if settings.model or settings.mode:
            await judge(context)
        else:
            await self._services.agents.get(settings.agent, settings.no_tools)

    async def _leave_lost_agent(self, context: Context) -> None:
        """Where the agent that was chosen is not there any more the default answers: the client is told."""
        settings = context.settings
        try:
            await self._services.agents.get(settings.agent, settings.no_tools)
        except RequestError:
            context.settings = replace(settings, agent="", model="", mode="")

    async def _model(self, context: Context) -> str:
        """The model that is told; "" where not even the default agent may answer here: its turns say why."""
        settings = context.settings
        try:
            agent = await self._services.agents.get(settings.agent)
        except RequestError:
            return settings.model
        return settings.model or agent.model

    async def _greet(self, session: Session, request_id: str) -> None:
        table, reply_seconds = self._services.table, self._services.deadlines.reply
        self._outbound.limit(table.max_server_frame_bytes)
        started = ours.SessionStarted(
            request_id=request_id,
            session_id=session.context.session_id,
            cwd=str(session.context.cwd),
            model=await self._model(session.context),
            context_max_tokens=table.context_max_tokens,
            max_server_frame_bytes=table.max_server_frame_bytes,
            max_transcript_bytes=table.max_transcript_bytes,
            max_transcript_items=table.max_transcript_items,
            max_prompt_history_bytes=table.max_prompt_history_bytes,
            max_prompt_history_items=table.max_prompt_history_items,
            chosen=session.context.settings.chosen,
        )
        await self._outbound.send(started, reply_seconds)
        await session.send_snapshot(None)

    def _now_ms(self) -> int:
        return unix_ms(self._services.clock.now())


def _check_overrides(message: ours.SessionStart) -> None:
    if message.provider or message.base_url:
        raise RequestError(
            "invalid_request", "provider and base_url are set in the configuration: leave them out"
        )


def _check_channel(channel: str | None) -> None:
    if channel is None:
        return
    if not channel.strip() or len(channel.encode()) > CHANNEL_NAME_BYTES:
        raise RequestError("invalid_request", f"a channel's name has 1 to {CHANNEL_NAME_BYTES} bytes")
    if any(unicodedata.category(character) == "Cc" for character in channel):
        raise RequestError("invalid_request", "a channel's name has no control characters")
