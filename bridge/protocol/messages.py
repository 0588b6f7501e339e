"""What a client sends. Each ``request_id`` is the client's own and comes back in what answers it."""

from typing import Annotated, Literal

from pydantic import Field

from bridge.protocol.commands import Command
from bridge.protocol.shared import Attachment, Peer
from bridge.protocol.wire import U32, U64, Items, Maybe, Wire


class DaemonControl(Wire):
    type: Literal["daemon.control"] = "daemon.control"
    request_id: str
    command: Command


class Initialize(Wire):
    """Must come first on a connection."""

    type: Literal["initialize"] = "initialize"
    request_id: str
    protocol_version: U32
    client: Peer


class SessionStart(Wire):
    """``no_tools`` takes every tool away; ``auto_approve`` says that this client asks nobody."""

    type: Literal["session.start"] = "session.start"
    request_id: str
    cwd: str
    provider: Maybe[str] = None
    model: Maybe[str] = None
    base_url: Maybe[str] = None
    no_tools: Maybe[bool] = None
    delegation_depth: Maybe[U32] = None
    channel: Maybe[str] = None
    auto_approve: Maybe[bool] = None


class SessionAttach(Wire):
    type: Literal["session.attach"] = "session.attach"
    request_id: str
    session_id: str
    cwd: str


class TurnStart(Wire):
    type: Literal["turn.start"] = "turn.start"
    request_id: str
    session_id: str
    prompt: str
    attachments: Items[Attachment] = ()


class QueueUpdate(Wire):
    type: Literal["queue.update"] = "queue.update"
    request_id: str
    session_id: str
    queue_id: str
    revision: U64
    prompt: str


class QueueMove(Wire):
    """Put an entry right before another, or at the end when ``before_queue_id`` is None."""

    type: Literal["queue.move"] = "queue.move"
    request_id: str
    session_id: str
    queue_id: str
    revision: U64
    before_queue_id: str | None = None


class QueueRemove(Wire):
    type: Literal["queue.remove"] = "queue.remove"
    request_id: str
    session_id: str
    queue_id: str
    revision: U64


class SessionPause(Wire):
    type: Literal["session.pause"] = "session.pause"
    request_id: str
    session_id: str
    paused: bool


class TurnCancel(Wire):
    type: Literal["turn.cancel"] = "turn.cancel"
    request_id: str
    session_id: str
    turn_id: str


class ApprovalResolve(Wire):
    type: Literal["approval.resolve"] = "approval.resolve"
    request_id: str
    session_id: str
    approval_id: str
    approved: bool


class SessionClear(Wire):
    type: Literal["session.clear"] = "session.clear"
    request_id: str
    session_id: str


CommonMessage = (
    Initialize
    | SessionAttach
    | TurnStart
    | QueueUpdate
    | QueueMove
    | QueueRemove
    | SessionPause
    | TurnCancel
    | SessionClear
)
"""Those that `ours` leaves as they are."""

ClientMessage = Annotated[
    DaemonControl | SessionStart | ApprovalResolve | CommonMessage, Field(discriminator="type")
]
