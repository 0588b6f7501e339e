"""The JSON that goes out: ``reply.created``, and how turns go. Pure."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from bridge.channel import OutboundFile, OutboundPart
from channels.webhook.wire import unlane

REPLY: Final = "reply.created"
STARTED: Final = "turn.started"
FINISHED: Final = "turn.finished"
FAILED: Final = "turn.failed"


def reply(part: OutboundPart | OutboundFile, attachments: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The data of one part of a reply. ``part`` counts from 1 over texts and files together.

    ``notice`` is there where the bridge itself speaks, not the agent.
    """
    notice = part.notice if isinstance(part, OutboundPart) else ""
    return {
        **place(part.to, part.reply_to),
        "reply_id": part.reply_id,
        "part": part.part + 1,
        "parts": part.parts,
        "final": part.part + 1 >= part.parts,
        "text": part.text if isinstance(part, OutboundPart) else "",
        "attachments": list(attachments),
        **({"notice": notice} if notice else {}),
    }


def place(to: str, reply_to: str) -> dict[str, Any]:
    """Where something belongs; what is not there is left out."""
    conversation, thread = unlane(to)
    fields = {"conversation_id": conversation, "thread_id": thread, "in_reply_to": reply_to}
    return {key: value for key, value in fields.items() if value}


def event(kind: str, at: datetime, data: dict[str, Any]) -> bytes:
    return dump({"type": kind, "timestamp": iso(at), "data": data})


def dump(value: object) -> bytes:
    """Compact JSON in UTF-8, the same bytes for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
