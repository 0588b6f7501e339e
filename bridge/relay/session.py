"""Our end of one conversation's agent session: opened or attached, one turn at a time."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bridge.client import Connection, connected, expect
from bridge.errors import SessionError
from bridge.ids import SessionId
from bridge.protocol import ours
from bridge.protocol.events import (
    AssistantCompleted,
    ErrorEvent,
    QueueSnapshot,
    SessionCleared,
    ToolCompleted,
    TurnStarted,
)
from bridge.protocol.helpers import reply_attachment, turn_request_id
from bridge.protocol.messages import SessionAttach, SessionClear, TurnCancel, TurnStart
from bridge.protocol.shared import Attachment, ReplyAttachment, Usage
from bridge.relay.judge import Answer, Asks, Judge
from bridge.relay.live import Sees
from bridge.store.contract import (
    Used,
)
from bridge.store.usage_steps import NOTHING_USED


@dataclass(frozen=True, slots=True)
class Authority:
    """What a session is started with. A session whose rights differ from what is due is replaced.

    ``asks``: its risky calls are put to the owner, one by one. Who answers, with which model and in which
    mode ("": the server's default), is no right: it changes in the session that there is.
    """

    tools: bool
    channel: str
    cwd: str
    asks: bool = False
    agent: str = ""
    model: str = ""
    mode: str = ""

    @property
    def chosen(self) -> ours.Chosen:
        return ours.Chosen(agent=self.agent, model=self.model, mode=self.mode)

    def can_become(self, due: Authority) -> bool:
        """Whether a session with this one may go on with ``due``. One with tools may change its folder."""
        same = (self.tools, self.channel, self.asks) == (due.tools, due.channel, due.asks)
        return same and (self.tools or self.cwd == due.cwd)

    def as_text(self) -> str:
        asks = [True] if self.asks else []  # as it was before there was any asking
        return json.dumps([self.tools, self.channel, self.cwd, *asks], ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Authority:
        """What ``as_text`` made a text of."""
        return cls(*json.loads(text))


class Ended(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended, its last text, and what its ``chat_attach`` calls attached.

    ``cure`` is what the owner has to do before any turn can succeed, "" where there is nothing. ``used`` is
    without its sender, and without an agent where none was chosen.
    """

    ended: Ended
    text: str = ""
    files: tuple[ReplyAttachment, ...] = ()
    cure: str = ""
    used: Used = NOTHING_USED


FOR_OWNER = (ours.SIGN_IN_REQUIRED, ours.SETUP_REQUIRED, "context_limit")
"""Codes of failures whose messages tell what to do, in words that an owner may be shown."""


class RefusedError(SessionError):
    """The server refused to start or change a session; ``why`` is in its words, for the owner alone."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(f"the session server refused: {code}", code)
        self.why = why

    @property
    def cure(self) -> str:
        """What the owner has to do before it is not refused, "" where nothing is known of that."""
        return self.why if self.code in FOR_OWNER else ""


@dataclass(frozen=True, slots=True)
class Server:
    """Where the session server is, and who we are to it."""

    socket: Path
    version: str


class Session:
    """A started session. Calls are approved by what it was granted, and as its owner says.

    ``running`` is the turn that it was taken up in, "" for none; ``replayed`` what was told of it then.
    ``chosen`` is who answers, as the server last told it.
    """

    def __init__(
        self, connection: Connection, exits: AsyncExitStack, session_id: SessionId, tools: bool
    ) -> None:
        self._connection, self._exits = connection, exits
        self.session_id, self._tools = session_id, tools
        self.running = ""
        self.chosen = ours.Chosen()
        self._asking = False
        self.replayed: deque[ours.ServerEvent] = deque()
        self._turn_id, self._cancelled = "", False
        self._steers: dict[str, asyncio.Future[bool]] = {}

    @property
    def alive(self) -> bool:
        """Whether it can be used: it is connected, and no question was left without its answer."""
        return self._connection.alive and not self._asking

    async def turn(
        self,
        request_id: str,
        prompt: str,
        attachments: Sequence[Attachment],
        live: Sees | None = None,
        asks: Asks | None = None,
    ) -> TurnResult:
        """Run one turn to its end. Calls are approved by what the session was granted.

        ``live`` is shown what happens meanwhile; ``asks`` puts risky calls to the owner.

        Raises:
            SessionError: the session broke, or the server refused the turn (``code`` tells).
        """
        start = TurnStart(
            request_id=request_id, session_id=self.session_id, prompt=prompt, attachments=tuple(attachments)
        )
        self._turn_id, self._cancelled = "", False
        await self._connection.send(start)
        return await self._follow(request_id, live, asks)

    async def resume(self, live: Sees | None = None, asks: Asks | None = None) -> TurnResult:
        """Take the turn that was running to its end; as ``turn``."""
        request_id, self.running = self.running, ""
        return await self._follow(request_id, live, asks)

    async def _follow(self, request_id: str, live: Sees | None, asks: Asks | None) -> TurnResult:
        async with asyncio.TaskGroup() as tasks:
            judge = Judge(request_id, self._tools, asks, self._resolve, tasks)
            try:
                ended: TurnResult | SessionError = await self._read(request_id, live, judge)
            except SessionError as error:  # kept from the group, which would wrap it
                judge.stop()
                ended = error
            else:
                judge.over()
            finally:
                self._turn_id = ""
                self._steered(*self._steers, taken=False)
        if isinstance(ended, SessionError):
            raise ended
        return ended

    async def _read(self, request_id: str, live: Sees | None, judge: Judge) -> TurnResult:
        """Read the turn's events up to its end."""
        collector = Collector(request_id, self.chosen.agent)
        while True:
            event = self.replayed.popleft() if self.replayed else await self._connection.next()
            if live is not None and turn_request_id(event) == request_id:
                live.see(request_id, event)
            await judge.see(event)
            match event:
                case ours.TurnSteered(request_id=taken):
                    self._steered(taken, taken=True)
                case ErrorEvent(request_id=str(refused)) if refused in self._steers:
                    self._steered(refused, taken=False)
                case ErrorEvent(request_id=None, code="invalid_json") if self._steers:
                    self._steered(*self._steers, taken=False)  # an older server, which knows of no steering
                case TurnStarted(request_id=started, turn_id=turn_id) if started == request_id:
                    self._turn_id = turn_id
                    if self._cancelled:
                        await self.cancel()
                case ErrorEvent(request_id=refused) if refused in (None, request_id):
                    raise SessionError(f"the session server refused the turn: {event.code}", event.code)
                case _:
                    result = collector.see(event)
                    if result is not None:
                        return result

    async def steer(self, message_id: str, text: str) -> bool:
        """Give ``text`` to the turn that runs, at its next step. False: it ended, or goes on, without it.

        It is known when ``turn`` returns, at the latest.

        Raises:
            SessionError: the session broke.
        """
        if not self._turn_id:
            return False  # it has not begun, or has ended
        request_id = f"steer-{message_id}"
        taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._steers[request_id] = taken
        try:
            await self._connection.send(
                ours.TurnSteer(
                    request_id=request_id, session_id=self.session_id, turn_id=self._turn_id, prompt=text
                )
            )
            return await taken
        finally:
            self._steers.pop(request_id, None)

    def _steered(self, *request_ids: str, taken: bool) -> None:
        for request_id in request_ids:
            if (waiting := self._steers.pop(request_id, None)) is not None and not waiting.done():
                waiting.set_result(taken)

    async def cancel(self) -> None:
        """Have the server end the turn that runs, or is about to; ``turn`` returns how it ended.

        Raises:
            SessionError: the session broke.
        """
        self._cancelled = True
        if self._turn_id:
            await self._connection.send(_cancelling(self.session_id, self._turn_id))

    async def _resolve(self, approval_id: str, answer: Answer) -> None:
        message = ours.ApprovalResolve(
            request_id=f"approve-{approval_id}",
            session_id=self.session_id,
            approval_id=approval_id,
            approved=answer.approved,
            option=answer.option or None,
        )
        await self._connection.send(message)

    async def configure(
        self,
        agent: str | None = None,
        model: str | None = None,
        mode: str | None = None,
        cwd: str | None = None,
    ) -> ours.SessionConfigured:
        """Change who answers from now on; without a change, ask what there is.

        Raises:
            SessionError: the session broke, or the server refused (``code`` tells; ``RefusedError`` why).
        """
        request_id, session_id = "channel-configure", self.session_id
        asked = ours.SessionConfigure(
            request_id=request_id, session_id=session_id, agent=agent, model=model, mode=mode, cwd=cwd
        )
        event = expect(await self._answer(asked), ours.SessionConfigured)
        self.chosen = event.chosen or ours.Chosen()
        return event

    async def compact(self) -> ours.SessionCompacted:
        """Have the agent sum up what was said; raises as ``configure``."""
        asked = ours.SessionCompact(request_id="channel-compact", session_id=self.session_id)
        return expect(await self._answer(asked), ours.SessionCompacted)

    async def _answer(self, asked: ours.SessionConfigure | ours.SessionCompact) -> ours.ServerEvent:
        """Cut off, it leaves the session unusable: nobody could tell its answer from another's."""
        self._asking = True
        await self._connection.send(asked)
        while not _answers(event := await self._connection.next(), asked.request_id):
            pass  # what is left of the turn before
        self._asking = False
        return _accepted(event)

    async def clear(self) -> None:
        """Drop the session's history."""
        await self._connection.send(SessionClear(request_id="channel-clear", session_id=self.session_id))
        while not isinstance(event := await self._connection.next(), SessionCleared):
            if isinstance(event, ErrorEvent):
                raise SessionError("the session server refused to clear the session", event.code)

    async def close(self) -> None:
        """Hang up. The server ends what runs, unless its owner is asked, and keeps the history."""
        await self._exits.aclose()


class Collector:
    """Reads the events of one turn of ``agent``, by its request id, into its result."""

    def __init__(self, request_id: str, agent: str) -> None:
        self._request_id, self._agent = request_id, agent
        self._text = ""
        self._files: list[ReplyAttachment] = []

    def see(self, event: ours.ServerEvent) -> TurnResult | None:
        """The result once ``event`` ended the turn."""
        if turn_request_id(event) != self._request_id:
            return None
        match event:
            case AssistantCompleted(content=content):
                self._text = content
            case ToolCompleted(name=name, success=success, output=output):
                attached = reply_attachment(name, success, output)
                self._files += [attached] if attached else []
            case ours.TurnCompleted():
                return TurnResult(Ended.COMPLETED, self._text, tuple(self._files), "", self._used(event))
            case ours.TurnFailed(code=code, message=message):
                cure = message if code in FOR_OWNER else ""
                return TurnResult(Ended.FAILED, "", tuple(self._files), cure, self._used(event))
            case ours.TurnCancelled():
                return TurnResult(Ended.CANCELLED, "", tuple(self._files), "", self._used(event))
        return None

    def _used(self, event: ours.TurnCompleted | ours.TurnFailed | ours.TurnCancelled) -> Used:
        tokens = event.usage or Usage()
        return Used("", self._agent, tokens.input_tokens, tokens.output_tokens, event.cost_micros)


def _accepted(event: ours.ServerEvent) -> ours.ServerEvent:
    """Raises RefusedError."""
    if isinstance(event, ErrorEvent):
        raise RefusedError(event.code, event.message)
    return event


async def open_session(
    server: Server, authority: Authority, chat: ours.Chat, keep_asking_seconds: int = 0
) -> Session:
    """Start a new session. A turn of it that asks waits on for so long after we hung up.

    Raises:
        SessionError: the server refuses, or is gone.
    """
    start = ours.SessionStart(
        request_id="channel-session",
        cwd=authority.cwd,
        no_tools=not authority.tools,
        channel=authority.channel,
        auto_approve=authority.tools and not authority.asks,
        keep_asking_seconds=keep_asking_seconds or None,
        chat=chat,
        agent=authority.agent or None,
        model=authority.model or None,
        mode=authority.mode or None,
    )
    async with AsyncExitStack() as exits:
        connection = await _connect(server, exits)
        await connection.send(start)
        started = expect(_accepted(await connection.next()), ours.SessionStarted)
        expect(await connection.next(), QueueSnapshot)
        session = Session(connection, exits.pop_all(), SessionId(started.session_id), authority.tools)
        session.chosen = started.chosen or ours.Chosen()
        return session


async def attach_session(
    server: Server, authority: Authority, session_id: SessionId, *request_ids: str
) -> tuple[Session, TurnResult | None]:
    """Take up a stored session, with the result of its last ended turn where that is of ``request_ids``.

    A turn that still runs, because its owner is asked, is the session's ``running`` one where it is of
    ``request_ids``, and is cancelled otherwise.

    The server tells all this right behind the snapshot; the mark behind it is the answer to a second
    request, which it must refuse, so that nobody waits for events that do not come.

    Raises:
        SessionError: ``session_not_found``, or the server refuses, or is gone.
    """
    async with AsyncExitStack() as exits:
        connection = await _connect(server, exits)
        await connection.send(
            SessionAttach(request_id="channel-session", session_id=session_id, cwd=authority.cwd)
        )
        started = expect(await connection.next(), ours.SessionStarted)
        await connection.send(SessionAttach(request_id=_MARK, session_id=session_id, cwd=authority.cwd))
        events: list[ours.ServerEvent] = []
        while not _is_mark(event := await connection.next()):
            events.append(event)
        running = _running(events)
        if running is not None and running.request_id not in request_ids:
            await connection.send(_cancelling(session_id, running.turn_id))
            running = None
        session = Session(connection, exits.pop_all(), session_id, authority.tools)
        session.chosen = started.chosen or ours.Chosen()
    if running is not None:
        session.running, session.replayed = running.request_id, deque(events)
        return session, None
    agent = session.chosen.agent
    results = (next(filter(None, map(Collector(one, agent).see, events)), None) for one in request_ids)
    return session, next(filter(None, results), None)


def _running(events: Sequence[ours.ServerEvent]) -> TurnStarted | None:
    """The turn that was told to have started, and not to have ended."""
    ended = {
        event.turn_id
        for event in events
        if isinstance(event, ours.TurnCompleted | ours.TurnFailed | ours.TurnCancelled)
    }
    started = [event for event in events if isinstance(event, TurnStarted) and event.turn_id not in ended]
    return started[-1] if started else None


def _cancelling(session_id: str, turn_id: str) -> TurnCancel:
    return TurnCancel(request_id="channel-cancel", session_id=session_id, turn_id=turn_id)


def _answers(event: ours.ServerEvent, request_id: str) -> bool:
    """An older server, which cannot read the request, refuses it without its id."""
    unread = isinstance(event, ErrorEvent) and event.request_id is None
    return unread or event.request_id == request_id


_MARK = "channel-attached"


def _is_mark(event: ours.ServerEvent) -> bool:
    return isinstance(event, ErrorEvent) and event.request_id == _MARK


async def _connect(server: Server, exits: AsyncExitStack) -> Connection:
    return await exits.enter_async_context(
        connected(server.socket, "turnbridge", server.version, "channel-init")
    )
