"""One process of an agent, started and initialized: what it is asked, with deadlines, and what it asks."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION
from acp.schema import (
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
)
from pydantic import BaseModel, ValidationError

from bridge.agents.acp.errors import LostError, refused
from bridge.agents.acp.frames import Frames
from bridge.agents.acp.launch import Launch
from bridge.agents.contract import AgentError
from bridge.logs import get_logger
from bridge.protocol.ours import SETUP_REQUIRED
from bridge.tools.processes import Process, StartError, process_group
from bridge.version import VERSION

log = get_logger(__name__)

STDERR_BYTES = 4096
"""Of what it says to people: the end is kept, for a check alone."""

EXIT_SECONDS = 1.0  # between the end of its output and its own

CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}


class Listens(Protocol):
    """A session of the program's."""

    def update(self, notification: SessionNotification) -> None:
        """Take in news, without waiting."""
        ...

    async def permission(self, request: RequestPermissionRequest) -> RequestPermissionResponse:
        """Answer a question; cancelled when the program goes."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs in it."""
        ...


class Peer:
    """``run`` is the process's life; ``gone`` is set after it. ``about`` is there once it is ``ready``.

    ``sessions`` are found by the program's own ids; what comes for others is dropped.
    """

    def __init__(self, launch: Launch, cwd: Path, start_seconds: float) -> None:
        self.launch = launch
        self.sessions: dict[str, Listens] = {}
        self.about = InitializeResponse(protocol_version=PROTOCOL_VERSION)
        self.gone = asyncio.Event()
        self.stderr = b""
        self.retired = False
        self._cwd, self._start_seconds = cwd, start_seconds
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._stopped = False
        self._failure: AgentError | None = None
        self._connection: Connection | None = None

    @property
    def alive(self) -> bool:
        return not self._over.is_set()

    @property
    def is_busy(self) -> bool:
        return any(session.is_busy for session in self.sessions.values())

    def stop(self, reason: str = "") -> None:
        """End the process and all that came of it; ``gone`` tells when that is done."""
        if reason and self.alive:
            log.warning("acp.stopped", agent=self.launch.name, reason=reason)
        self._stopped = True
        self._over.set()

    async def ready(self) -> None:
        """Wait until it is initialized.

        Raises:
            AgentError: it cannot be started, or is no agent.
        """
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    async def run(self) -> None:
        """Start it, and let it run until it ends, or ``stop``. Raises nothing but CancelledError."""
        try:
            argv = [self.launch.program() or self.launch.command[0], *self.launch.command[1:]]
            async with process_group(argv, self._cwd, self.launch.environment()) as process:
                await self._live(process)
        except StartError as error:
            self._fail(self.launch.missing if self.launch.program() is None else str(error))
        finally:
            self._over.set()
            self._fail("")
            self.gone.set()

    async def _live(self, process: Process) -> None:
        frames = Frames(process, self.launch.name, self._over.set)
        self._connection = connection = Connection(self._serve, frames)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read_stderr(process.stderr))
            starting = tasks.create_task(self._initialize())
            try:
                await self._over.wait()
                if not self._stopped:
                    await self._ended(frames, process)
            finally:
                starting.cancel()
                reading.cancel()
                await connection.close()

    async def _ended(self, frames: Frames, process: Process) -> None:
        """By itself, or by what it sent."""
        reason = frames.problem
        if not reason:
            with suppress(TimeoutError):
                async with asyncio.timeout(EXIT_SECONDS):
                    await process.wait()
            code = process.returncode
            reason = "it closed its output" if code is None else f"it ended with exit code {code}"
        log.warning("acp.ended", agent=self.launch.name, reason=reason)
        self._fail(f"{self.launch.title} cannot be used: {reason}")

    def _fail(self, text: str) -> None:
        """What ``ready`` raises, unless that is past."""
        if not self._ready.is_set():
            lost = LostError(f"{self.launch.title} was stopped")
            self._failure = self._failure or (AgentError(SETUP_REQUIRED, text) if text else lost)
            self._ready.set()

    async def _initialize(self) -> None:
        request = InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=False, write_text_file=False), terminal=False
            ),
            client_info=Implementation(name="turnbridge", version=VERSION),
        )
        try:
            answer = await self.request("initialize", request, self._start_seconds)
            self.about = InitializeResponse.model_validate(answer)
            if self.about.protocol_version != PROTOCOL_VERSION:
                text = f"{self.launch.title} speaks another version of the protocol: update it"
                self._failure = AgentError(SETUP_REQUIRED, text)
        except ValidationError:
            text = f"{self.launch.title} answers with what is no Agent Client Protocol"
            self._failure = AgentError(SETUP_REQUIRED, text)
        except RequestError as error:
            self._failure = refused(error, self.launch, "to start")
        except AgentError as error:
            if not self.alive:
                return  # why is told by its end
            self._failure = error
        if self._failure is not None:
            self.stop()
        self._ready.set()

    async def request(self, method: str, params: BaseModel | Mapping[str, Any], seconds: float | None) -> Any:
        """Ask it, and wait for its answer, at most ``seconds``. ``method`` is named as in the SDK.

        Raises:
            RequestError: it refused.
            LostError: it is gone, or does not answer in time.
        """
        connection, title = self._connection, self.launch.title
        if connection is None or not self.alive:
            raise LostError(f"{title} has ended")
        try:
            async with asyncio.timeout(seconds):
                return await connection.send_request(_method(method), _wire(params))
        except TimeoutError:
            raise LostError(f"{title} did not answer within {seconds:g} s") from None
        except OSError as error:
            self._over.set()
            raise LostError(f"{title} ended in the middle of its work") from error

    async def notify(self, method: str, params: BaseModel, seconds: float) -> None:
        """Tell it something, if it can still be told within ``seconds``."""
        if self._connection is None or not self.alive:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._connection.send_notification(_method(method), _wire(params))
        except OSError:  # also TimeoutError: whoever tells it something looks after its end, too
            log.info("acp.not_told", agent=self.launch.name, method=method)

    async def _serve(self, method: str, params: Any, is_notification: bool) -> Any:
        """What the program sends; raises RequestError, as the SDK wants it."""
        try:
            if method == CLIENT_METHODS["session_update"]:
                self._update(SessionNotification.model_validate(params))
                return None
            if method == CLIENT_METHODS["session_request_permission"]:
                return await self._permission(RequestPermissionRequest.model_validate(params))
        except ValidationError as error:
            log.info("acp.unreadable", agent=self.launch.name, method=method)
            if is_notification:
                return None
            raise RequestError.invalid_params() from error
        if is_notification:
            return None
        raise RequestError.method_not_found(method)

    def _update(self, notification: SessionNotification) -> None:
        if (session := self.sessions.get(notification.session_id)) is not None:
            session.update(notification)

    async def _permission(self, request: RequestPermissionRequest) -> Any:
        session = self.sessions.get(request.session_id)
        return CANCELLED if session is None else await session.permission(request)

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(65_536):
            self.stderr = (self.stderr + data)[-STDERR_BYTES:]


def _method(name: str) -> str:
    return AGENT_METHODS.get(name, name)


def _wire(params: BaseModel | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(params, BaseModel):
        return params.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dict(params)


def joined(servers: Sequence[Mapping[str, Any]], about: InitializeResponse) -> list[dict[str, Any]]:
    """Those of the servers of tools that the program can reach: stdio always, HTTP where it says so."""
    capabilities = about.agent_capabilities
    mcp = capabilities.mcp_capabilities if capabilities else None
    http = bool(mcp and mcp.http)
    return [dict(one) for one in servers if one.get("type") != "http" or http]
