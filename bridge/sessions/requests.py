"""What each message of a client is answered with, and what is refused when."""

from contextlib import suppress
from typing import assert_never

from bridge.errors import StoreError
from bridge.logs import get_logger
from bridge.protocol import messages, ours
from bridge.protocol.events import ErrorEvent, Initialized
from bridge.protocol.limits import PROTOCOL_VERSION
from bridge.protocol.shared import Peer
from bridge.sessions.choosing import configure
from bridge.sessions.compacting import compact
from bridge.sessions.contract import ControlError, Services
from bridge.sessions.errors import FrameTooLargeError, RequestError
from bridge.sessions.live import LiveSessions
from bridge.sessions.opening import Opener
from bridge.sessions.outbound import Outbound
from bridge.sessions.session import Session

log = get_logger(__name__)

Slow = ours.SessionConfigure | ours.SessionCompact
Queued = messages.QueueUpdate | messages.QueueMove | messages.QueueRemove | messages.SessionPause
OfSession = messages.TurnStart | ours.TurnSteer | ours.ApprovalResolve | messages.SessionClear | Queued | Slow


class FatalError(Exception):
    """The client was told why; the connection ends."""


class Requests:
    """``session`` is the connection's one session, once it has been opened; ``initialized`` comes first."""

    def __init__(self, services: Services, live: LiveSessions, server: Peer, outbound: Outbound) -> None:
        self.session: Session | None = None
        self.initialized = False
        self._services, self._server, self._outbound = services, server, outbound
        self._opener = Opener(services, live, outbound)

    async def answer(self, message: ours.ClientMessage) -> None:
        """Answer one message; a refusal is an answer.

        Raises:
            FatalError: the connection must end.
            StalledError: the client does not read.
            FrameTooLargeError: the answer is too large, as it can be by its request id alone.
        """
        try:
            await self._answer(message)
        except (RequestError, ControlError) as error:
            await self._refuse(message.request_id, error.code, str(error))
            if error.code == "queue_conflict" and self.session:
                await self._after_conflict(self.session, message.request_id)
        except StoreError as error:
            log.error("session.request_not_stored", error=error)
            await self._refuse(
                message.request_id, "internal_error", "it could not be stored: look at the disk"
            )

    async def _answer(self, message: ours.ClientMessage) -> None:
        if isinstance(message, messages.Initialize):
            await self._initialize(message)
        elif not self.initialized:
            raise RequestError("not_initialized", "initialize must come first")
        elif isinstance(message, ours.DaemonControl):
            status = await self._services.control.handle(message.command)
            await self._send(ours.DaemonStatusEvent(request_id=message.request_id, status=status))
        elif isinstance(message, ours.SessionStart | messages.SessionAttach):
            await self._open(message)
        elif isinstance(message, messages.TurnCancel):
            self._cancel(message)
        else:
            await self._of_session(message)

    async def _initialize(self, message: messages.Initialize) -> None:
        if self.initialized:
            raise RequestError("invalid_request", "the connection is initialized already")
        if message.protocol_version != PROTOCOL_VERSION:
            text = f"this server speaks protocol version {PROTOCOL_VERSION} only"
            await self._refuse(message.request_id, "version_mismatch", text, fatal=True)
            raise FatalError
        self.initialized = True
        await self._send(
            Initialized(request_id=message.request_id, protocol_version=PROTOCOL_VERSION, server=self._server)
        )

    async def _open(self, message: ours.SessionStart | messages.SessionAttach) -> None:
        if self.session:
            raise RequestError(
                "invalid_request", "a session runs on this connection already: open another one"
            )
        if isinstance(message, messages.SessionAttach):
            self.session = await self._opener.attach(message)
        else:
            self.session = await self._opener.start(message)

    def _cancel(self, message: messages.TurnCancel) -> None:
        if not self.session or message.session_id != self.session.context.session_id:
            raise RequestError("turn_not_found", "no such turn runs on this connection")
        self.session.active(message.turn_id).cancel()

    async def _of_session(self, message: OfSession) -> None:
        session = self.session
        if not session or message.session_id != session.context.session_id:
            raise RequestError("session_not_found", "this connection has no such session")
        match message:
            case messages.TurnStart():
                await session.start_turn(message)
            case ours.TurnSteer():
                session.active(message.turn_id).steer(message)
            case ours.ApprovalResolve():
                session.context.approvals.resolve(message.approval_id, message.approved, message.option)
            case messages.SessionClear():
                await session.clear(message)
            case ours.SessionConfigure():
                await configure(session, message)
            case ours.SessionCompact():
                await compact(session, message)
            case _:
                await self._of_queue(session, message)

    async def _after_conflict(self, session: Session, request_id: str) -> None:
        """The whole queue, unless it is too large for a frame."""
        with suppress(FrameTooLargeError):
            await session.send_snapshot(request_id)

    async def _of_queue(self, session: Session, message: Queued) -> None:
        match message:
            case messages.QueueUpdate():
                await session.update(message)
            case messages.QueueMove():
                await session.move(message)
            case messages.QueueRemove():
                await session.remove(message)
            case messages.SessionPause():
                await session.pause(message)
            case _:
                assert_never(message)

    async def _refuse(self, request_id: str, code: str, text: str, *, fatal: bool = False) -> None:
        await self._send(ErrorEvent(request_id=request_id, code=code, message=text, fatal=fatal))

    async def _send(self, answer: Initialized | ours.DaemonStatusEvent | ErrorEvent) -> None:
        await self._outbound.send(answer, self._services.deadlines.reply)
