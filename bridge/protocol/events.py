"""What the server sends. ``seq`` counts one session's events from 1, so that a client notices a lost one."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from bridge.protocol.shared import DaemonStatus, Origin, Peer, QueueEntry, Usage
from bridge.protocol.wire import U32, U64, Many, Maybe, Wire

_SCALARS = frozenset({str, int, bool, float, type(None)})


def _sorted_keys(value: Any) -> Any:
    """Free-form JSON with the keys of every object in order, so that equal values have equal bytes."""
    if type(value) is dict:
        return {
            key: item if type(item := value[key]) in _SCALARS else _sorted_keys(item) for key in sorted(value)
        }
    if type(value) in (list, tuple):
        return [_sorted_keys(item) for item in value]
    return value


FreeForm = Annotated[Any, AfterValidator(_sorted_keys)]
"""Any JSON: what an agent passes to a tool. Put in order as it is read or made, so that writing is quick."""


class SessionEvent(Wire):
    """The head of an event that belongs to a session and to no turn."""

    type: str
    request_id: str
    session_id: str
    seq: U64


class TurnEvent(Wire):
    """The head of an event of one turn; ``request_id`` is the turn's, by which clients sort events."""

    type: str
    request_id: str
    session_id: str
    turn_id: str
    seq: U64


class DaemonStatusEvent(Wire):
    """``daemon.status``; the plain name belongs to the struct inside."""

    type: Literal["daemon.status"] = "daemon.status"
    request_id: str
    status: DaemonStatus


class Initialized(Wire):
    type: Literal["initialized"] = "initialized"
    request_id: str
    protocol_version: U32
    server: Peer


class SessionStarted(Wire):
    type: Literal["session.started"] = "session.started"
    request_id: str
    session_id: str
    cwd: str
    model: str
    context_max_tokens: U64
    max_server_frame_bytes: U64
    max_transcript_bytes: U64
    max_transcript_items: U64
    max_prompt_history_bytes: U64
    max_prompt_history_items: U64


class QueueSnapshot(Wire):
    """The whole queue; ``request_id`` is None unless it follows a request that met a conflict."""

    type: Literal["queue.snapshot"] = "queue.snapshot"
    request_id: str | None = None
    session_id: str
    seq: U64
    entries: Many[QueueEntry]
    paused: bool


class QueueEnqueued(SessionEvent):
    type: Literal["queue.enqueued"] = "queue.enqueued"
    entry: QueueEntry
    position: U64


class QueueUpdated(SessionEvent):
    type: Literal["queue.updated"] = "queue.updated"
    entry: QueueEntry


class QueueMoved(SessionEvent):
    type: Literal["queue.moved"] = "queue.moved"
    queue_id: str
    position: U64
    revision: U64


class QueueRemoved(SessionEvent):
    type: Literal["queue.removed"] = "queue.removed"
    queue_id: str
    revision: U64


class QueueDequeued(SessionEvent):
    type: Literal["queue.dequeued"] = "queue.dequeued"
    queue_id: str
    turn_id: str


class SessionPaused(SessionEvent):
    type: Literal["session.paused"] = "session.paused"
    paused: bool


class TurnStarted(TurnEvent):
    type: Literal["turn.started"] = "turn.started"
    origin: Maybe[Origin] = None


class AssistantDelta(TurnEvent):
    """A preview; the step's ``assistant.completed`` holds the whole text."""

    type: Literal["assistant.delta"] = "assistant.delta"
    content: str


class AssistantCompleted(TurnEvent):
    type: Literal["assistant.completed"] = "assistant.completed"
    content: str


class ToolProposed(TurnEvent):
    type: Literal["tool.proposed"] = "tool.proposed"
    call_id: str
    name: str
    arguments: FreeForm


class ApprovalRequested(TurnEvent):
    type: Literal["approval.requested"] = "approval.requested"
    approval_id: str
    call_id: str
    name: str
    risk: str
    cwd: str
    summary: str


class ToolStarted(TurnEvent):
    type: Literal["tool.started"] = "tool.started"
    call_id: str
    name: str


class ToolProgress(TurnEvent):
    """For display alone: never part of a history or an answer."""

    type: Literal["tool.progress"] = "tool.progress"
    call_id: str
    text: str


class ToolCompleted(TurnEvent):
    type: Literal["tool.completed"] = "tool.completed"
    call_id: str
    name: str
    success: bool
    output: str
    truncated: bool


class ContextCompacted(TurnEvent):
    type: Literal["context.compacted"] = "context.compacted"
    before_tokens: U64
    after_tokens: U64
    removed_messages: U64


class SessionTrimmed(SessionEvent):
    type: Literal["session.trimmed"] = "session.trimmed"
    removed_messages: U64
    history_bytes: U64


class SessionCleared(SessionEvent):
    type: Literal["session.cleared"] = "session.cleared"


class TurnCompleted(TurnEvent):
    type: Literal["turn.completed"] = "turn.completed"
    steps: U64
    usage: Usage
    origin: Maybe[Origin] = None


class TurnCancelled(TurnEvent):
    type: Literal["turn.cancelled"] = "turn.cancelled"
    origin: Maybe[Origin] = None


class TurnFailed(TurnEvent):
    type: Literal["turn.failed"] = "turn.failed"
    code: str
    message: str
    origin: Maybe[Origin] = None


class ErrorEvent(Wire):
    """``request_id`` is None when the request could not be read; ``fatal`` means that the server closes."""

    type: Literal["error"] = "error"
    request_id: Maybe[str] = None
    code: str
    message: str
    fatal: bool


CommonEvent = (
    Initialized
    | QueueSnapshot
    | QueueEnqueued
    | QueueUpdated
    | QueueMoved
    | QueueRemoved
    | QueueDequeued
    | SessionPaused
    | TurnStarted
    | AssistantDelta
    | AssistantCompleted
    | ToolProposed
    | ToolStarted
    | ToolProgress
    | ToolCompleted
    | ContextCompacted
    | SessionTrimmed
    | SessionCleared
    | ErrorEvent
)
"""Those that `ours` leaves as they are."""

ServerEvent = Annotated[
    DaemonStatusEvent
    | SessionStarted
    | ApprovalRequested
    | TurnCompleted
    | TurnCancelled
    | TurnFailed
    | CommonEvent,
    Field(discriminator="type"),
]
