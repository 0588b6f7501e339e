"""One client's connection: lines in, answers out, and the end of everything that belongs to it."""

import asyncio

from bridge.protocol import ours
from bridge.protocol.errors import ProtocolError
from bridge.protocol.events import ErrorEvent
from bridge.protocol.frames import LineDecoder, TooLong
from bridge.protocol.limits import CLIENT_FRAME_BYTES
from bridge.protocol.shared import Peer
from bridge.sessions.contract import Services
from bridge.sessions.errors import RequestError
from bridge.sessions.kept import Kept
from bridge.sessions.live import LiveSessions
from bridge.sessions.outbound import Outbound
from bridge.sessions.requests import FatalError, Requests, Slow
from bridge.sessions.session import Session

READ_BYTES = 65_536


class Connection:
    """``run`` serves the client until it is gone; cancelling ends its turn, and says so if it reads."""

    def __init__(
        self,
        services: Services,
        live: LiveSessions,
        server: Peer,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._clock, self._deadlines, self._live = services.clock, services.deadlines, live
        self._reader, self._writer = reader, writer
        self._outbound = Outbound()
        self._requests = Requests(services, live, server, self._outbound)
        self._turns: asyncio.Task[None] | None = None
        self._control: asyncio.Task[None] | None = None
        self._slow: asyncio.Task[None] | None = None
        self._handed_over = False

    async def run(self) -> None:
        """Raises StalledError or FrameTooLargeError, in a group, for a client that could not be answered."""
        self._writer.transport.set_write_buffer_limits(high=0)  # so that drained means given to the kernel
        try:
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(self._outbound.run(self._writer))
                try:
                    await self._serve()
                finally:
                    self._outbound.finish()
                    if not self._outbound.stalled:
                        await asyncio.wait([writing], timeout=self._deadlines.writer)
                    writing.cancel()
        finally:
            self._writer.transport.abort()

    async def _serve(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                try:
                    await self._read(tasks)
                    self._cut_short()
                    await self._control_done(self._deadlines.reply)
                    self._outbound.mute()  # the client has gone: what waits is written, nothing is added
                    await self._keep()
                finally:
                    self._cut_short()
                    self._hang_up()
        finally:
            if self._requests.session and not self._handed_over:
                await self._leave(self._requests.session)

    async def _leave(self, session: Session) -> None:
        """Nobody is in the session any more, until somebody takes it up again."""
        session_id = session.context.session_id
        self._live.closing(session_id)
        try:
            await session.context.leave()
        finally:
            self._live.release(session_id)

    def _cut_short(self) -> None:
        """Nobody waits for what the agent is asked."""
        if self._slow is not None:
            self._slow.cancel()

    async def _keep(self) -> None:
        """Where its turn waits for an approval, be there for the session's next client, for a while."""
        session, turns = self._requests.session, self._turns
        if session is None or turns is None or not session.context.approvals.told:
            return
        settings, kept = session.context.settings, Kept(session, turns)
        if settings.keep_asking_seconds:
            self._writer.close()
            session.leave()
            self._live.keep(session.context.session_id, kept)
            self._handed_over = await kept.is_taken(settings.keep_asking_seconds, self._clock)
        if self._handed_over:
            await asyncio.wait([turns])

    def _hang_up(self) -> None:
        if self._requests.session and self._turns and not self._handed_over:
            self._live.closing(self._requests.session.context.session_id)
            self._turns.cancel()

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        """Answer line by line until the client's end, or a request that ends the connection."""
        decoder = LineDecoder(CLIENT_FRAME_BYTES)
        try:
            while data := await self._receive():
                for line in decoder.feed(data):
                    await self._take(line, tasks)
            for line in decoder.end():
                await self._take(line, tasks)
        except FatalError:
            return

    async def _receive(self) -> bytes:
        try:
            return await self._reader.read(READ_BYTES)
        except OSError:
            return b""

    async def _take(self, line: bytes | TooLong, tasks: asyncio.TaskGroup) -> None:
        try:
            if isinstance(line, TooLong):
                raise RequestError("invalid_request", f"a line is over {CLIENT_FRAME_BYTES} bytes")
            await self._answer(ours.read_client_message(line), tasks)
        except ProtocolError as error:
            await self._refuse("invalid_json", f"that is no message of the protocol: {error}")
        except RequestError as error:
            await self._refuse(error.code, str(error))
        if self._turns is None and self._requests.session:
            self._turns = tasks.create_task(self._requests.session.run())

    async def _answer(self, message: ours.ClientMessage, tasks: asyncio.TaskGroup) -> None:
        """What is asked of the daemon, or of an agent, may take long and holds up nothing else."""
        if isinstance(message, ours.DaemonControl) and self._requests.initialized:
            await self._control_done(None)
            self._control = tasks.create_task(self._requests.answer(message))
        elif isinstance(message, Slow) and self._requests.initialized:
            if self._slow is not None and not self._slow.done():
                text = "something is being chosen or summed up already: wait for its answer"
                await self._refuse("turn_active", text, message.request_id)
                return
            self._slow = tasks.create_task(self._requests.answer(message))
            await asyncio.sleep(0)  # it begins before the next line is looked at: a turn that follows waits
        else:
            await self._requests.answer(message)

    async def _control_done(self, seconds: float | None) -> None:
        if self._control is not None:
            await asyncio.wait([self._control], timeout=seconds)

    async def _refuse(self, code: str, text: str, request_id: str | None = None) -> None:
        refusal = ErrorEvent(request_id=request_id, code=code, message=text, fatal=False)
        await self._outbound.send(refusal, self._deadlines.reply)
