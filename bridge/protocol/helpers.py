"""What clients read out of messages, events and the outputs of tools."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from bridge.protocol import json_rules, ours
from bridge.protocol.errors import ProtocolError
from bridge.protocol.events import QueueDequeued, ServerEvent, TurnEvent
from bridge.protocol.messages import ClientMessage
from bridge.protocol.shared import ReplyAttachment

CHAT_ATTACH = "chat_attach"


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """Handles of background jobs, in the order in which a tool's output names them, repeats included."""

    started: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()


def background_job_update(output: str) -> JobUpdate:
    """Which background jobs the output of a ``tool.completed`` reports as started, and which as settled."""
    found = _json_object(output)
    listed = found.get("jobs")
    jobs = [found, *(listed if isinstance(listed, list) else [])]
    named = [job for job in jobs if isinstance(job, dict) and _is_job(job)]
    return JobUpdate(
        started=tuple(job["job"] for job in named if _runs(job) and job.get("background") is True),
        settled=tuple(job["job"] for job in named if not _runs(job)),
    )


def _is_job(found: dict[str, Any]) -> bool:
    return isinstance(found.get("job"), str) and isinstance(found.get("status"), str)


def _runs(job: dict[str, Any]) -> bool:
    return bool(job["status"] == "running")


def reply_attachment(tool: str, success: bool, output: str) -> ReplyAttachment | None:
    """The file that a call of ``chat_attach`` attached, if it did. Its path is not judged here."""
    if tool != CHAT_ATTACH or not success:
        return None
    try:
        return ReplyAttachment.model_validate(_json_object(output).get("attached"))
    except ValidationError:
        return None


def turn_request_id(event: ServerEvent | ours.ServerEvent) -> str | None:
    """The request id of the turn that ``event`` belongs to; clients sort interleaved turns by it."""
    return event.request_id if isinstance(event, TurnEvent | QueueDequeued) else None


def request_id(message: ClientMessage | ours.ClientMessage) -> str:
    """Every client message has one."""
    return message.request_id


def _json_object(text: str) -> dict[str, Any]:
    """The JSON object that ``text`` is, or an empty one."""
    try:
        found = json_rules.parse(text.encode())
    except (ProtocolError, UnicodeEncodeError):
        return {}
    return found if isinstance(found, dict) else {}
