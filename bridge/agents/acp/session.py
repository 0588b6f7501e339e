"""One session in an agent's process: opened or loaded, what is chosen for it, and its turn."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    DeniedOutcome,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    UsageUpdate,
)

from bridge.agents.acp.errors import UNKNOWN_SESSION, LostError, refused
from bridge.agents.acp.options import Kind, Options
from bridge.agents.acp.peer import Peer, joined
from bridge.agents.contract import AgentError
from bridge.protocol.ours import SETUP_REQUIRED

MICROS = 1_000_000
MOST_DOLLARS = 1_000_000.0


class Listener(Protocol):
    """The turn that runs in a session: takes in what concerns it, without waiting."""

    def update(self, update: Any) -> None: ...

    async def permission(self, request: RequestPermissionRequest) -> str | None:
        """The id of the option that was chosen; None: the turn is over."""
        ...


class Session:
    """``told`` is the answer that opened it. ``cost_micros`` is what it has cost so far, None: not known."""

    def __init__(self, peer: Peer, session_id: str, cwd: Path, told: Mapping[str, Any]) -> None:
        self.peer, self.session_id, self.cwd = peer, session_id, cwd
        self.options = Options(told)
        self.listener: Listener | None = None
        self.cost_micros: int | None = None

    @property
    def is_busy(self) -> bool:
        return self.listener is not None

    def update(self, notification: SessionNotification) -> None:
        match update := notification.update:
            case ConfigOptionUpdate():
                self.options.take([one.model_dump(by_alias=True) for one in update.config_options])
            case CurrentModeUpdate():
                self.options.is_now("mode", update.current_mode_id)
            case UsageUpdate():
                if update.cost is not None and update.cost.currency.upper() == "USD":
                    self.cost_micros = _micros(update.cost.amount)
        if self.listener is not None:
            self.listener.update(update)

    async def permission(self, request: RequestPermissionRequest) -> RequestPermissionResponse:
        chosen = await self.listener.permission(request) if self.listener is not None else None
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def choose(self, kind: Kind, value: str, seconds: float) -> None:
        """Set the model or mode; "" is what the session began with.

        Raises:
            AgentError: there is none of that name, or it was refused.
        """
        offer = self.options.of(kind)
        value = value or offer.first
        if not value or value == offer.current:
            return
        if value not in offer.names:
            known = ", ".join(offer.names) or "none"
            raise AgentError(
                SETUP_REQUIRED, f"{self.peer.launch.title} has no {kind} {value}: there is {known}"
            )
        try:
            answer = await self.peer.request(*self._setting(kind, offer.config_id, value), seconds)
        except RequestError as error:
            raise refused(error, self.peer.launch, f"the {kind} {value}") from error
        self.options.is_now(kind, value)
        self.options.take(answer.get("configOptions") if isinstance(answer, dict) else None)

    def _setting(self, kind: Kind, config_id: str, value: str) -> tuple[str, dict[str, Any]]:
        session = {"sessionId": self.session_id}
        if config_id:
            return "session_set_config_option", {**session, "configId": config_id, "value": value}
        if kind == "mode":
            return "session_set_mode", {**session, "modeId": value}
        return "session/set_model", {**session, "modelId": value}  # of earlier versions of the protocol


def _micros(dollars: float) -> int | None:
    """None for what is no cost of a session, as a program may tell anything."""
    return round(dollars * MICROS) if 0 <= dollars <= MOST_DOLLARS else None


async def open_session(
    peer: Peer, cwd: Path, servers: Sequence[Mapping[str, Any]], seconds: float
) -> Session:
    """A new session.

    Raises:
        AgentError: it was refused, with ``sign_in_required`` where a sign-in is missing.
    """
    params = {"cwd": str(cwd), "mcpServers": joined(servers, peer.about)}
    try:
        told = await peer.request("session_new", params, seconds)
    except RequestError as error:
        raise refused(error, peer.launch, "a new session") from error
    session_id = told.get("sessionId") if isinstance(told, dict) else None
    if not isinstance(session_id, str) or not session_id:
        raise LostError(f"{peer.launch.title} gave a session without an id")
    if session_id in peer.sessions:  # what is asked and said in the one chat would come to the other
        raise LostError(f"{peer.launch.title} gave a session the id of another")
    session = Session(peer, session_id, cwd, told)
    session.cost_micros = 0
    peer.sessions[session_id] = session
    return session


async def load_session(
    peer: Peer, session_id: str, cwd: Path, servers: Sequence[Mapping[str, Any]], seconds: float
) -> Session | None:
    """A session of before; None where the program has it no more, or another session of ours has it.

    What it tells of the past while it loads is in our history, and dropped.

    Raises:
        AgentError: it was refused for another reason.
    """
    if session_id in peer.sessions:
        return None
    params = {"sessionId": session_id, "cwd": str(cwd), "mcpServers": joined(servers, peer.about)}
    method = "session_resume" if can_resume(peer) else "session_load"
    try:
        told = await peer.request(method, params, seconds)
    except RequestError as error:
        if error.code in UNKNOWN_SESSION:
            return None
        raise refused(error, peer.launch, "to go on with a session") from error
    session = Session(peer, session_id, cwd, told if isinstance(told, dict) else {})
    peer.sessions[session_id] = session
    return session


def can_resume(peer: Peer) -> bool:
    capabilities = peer.about.agent_capabilities
    sessions = capabilities.session_capabilities if capabilities else None
    return bool(sessions and sessions.resume is not None)


def can_load(peer: Peer) -> bool:
    """Whether it can go on with a session of before."""
    capabilities = peer.about.agent_capabilities
    return can_resume(peer) or bool(capabilities and capabilities.load_session)


async def close_session(session: Session, seconds: float) -> None:
    """Let a program that goes on forget what it holds of a session, if it can."""
    capabilities = session.peer.about.agent_capabilities
    sessions = capabilities.session_capabilities if capabilities else None
    if sessions and sessions.close is not None:
        with suppress(AgentError, RequestError):
            await session.peer.request("session_close", {"sessionId": session.session_id}, seconds)
