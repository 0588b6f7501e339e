"""Variants that write what no server may."""

import json
from collections.abc import Callable
from typing import Any

from bridge.ids import new_hex
from bridge.sessions.outbound import Outbound
from tests.conformance.variants import (
    Event,
    Patch,
    attribute,
    everywhere,
    loses,
    sends,
    sets,
    variant,
    wraps,
    writes,
)
from tests.conformance.wire import NUMBERED

# --- the form ---------------------------------------------------------------------------------------------


def _dumped(**options: Any) -> Callable[[], Patch]:
    return lambda: writes(lambda frame: json.dumps(json.loads(frame), **options).encode() + b"\n")


COMPACT = (",", ":")

variant("crlf-out", lambda: writes(lambda frame: frame[:-1] + b"\r\n"))
variant("glued-out", lambda: writes(lambda frame: frame[:-1] if b'"turn.started"' in frame else frame))
variant("latin-out", lambda: writes(lambda frame: frame.decode().encode("latin-1", "replace")))
variant("spaced-out", _dumped(ensure_ascii=False))
variant("escaped-out", _dumped(separators=COMPACT))
variant("slashes-out", lambda: writes(lambda frame: frame.replace(b"/", b"\\/")))
variant("sorted-out", _dumped(ensure_ascii=False, separators=COMPACT, sort_keys=True))


def _tag_last(event: Event) -> Event:
    return {**{key: value for key, value in event.items() if key != "type"}, "type": event["type"]}


variant("tag-last-out", lambda: sends(_tag_last))

# --- the fields -------------------------------------------------------------------------------------------


def _without_nulls(event: Event) -> Event:
    return {key: value for key, value in event.items() if value is not None}


def _of_entry(**fields: Any) -> Callable[[Event], Event]:
    """Changes the entry inside an event: a function makes the value from the old one; None takes the key
    away."""

    def change(event: Event) -> Event:
        for name, value in fields.items():
            event["entry"][name] = value(event["entry"].get(name)) if callable(value) else value
        event["entry"] = _without_nulls(event["entry"])
        return event

    return change


def _without_transcripts(attachments: list[Event] | None) -> list[Event] | None:
    for attachment in attachments or []:
        attachment.pop("transcript", None)
    return attachments


def _unsorted(arguments: Event) -> Event:
    return dict(reversed(arguments.items()))


def _renamed(event: Event) -> Event:
    return {("call" if key == "call_id" else key): value for key, value in event.items()}


variant("unsorted-arguments", lambda: sets("tool.proposed", arguments=_unsorted))
variant("null-origin", lambda: sets("turn.completed", origin=None))
variant("drops-nulls", lambda: sends(_without_nulls))
variant(
    "writes-empty-lists", lambda: sends(_of_entry(attachments=lambda found: found or []), "queue.enqueued")
)
variant("renamed-field", lambda: sends(_renamed, "tool.started"))
variant("number-as-text", lambda: sets("turn.completed", steps=str))
variant("own-request-ids", lambda: sets("assistant.completed", request_id="own"))
variant("wrong-session-id", lambda: sets("queue.moved", session_id="none"))
variant("odd-risk", lambda: sets("approval.requested", risk="high"))
variant(
    "status-without-delegations",
    lambda: sends(
        lambda event: {**event, "status": {**event["status"], "delegations": None}}, "daemon.status"
    ),
)
variant("null-usage", lambda: sets("turn.completed", usage=None))
variant("no-usage", lambda: loses("turn.completed", "usage"))
variant("loses-transcripts", lambda: sends(_of_entry(attachments=_without_transcripts), "queue.enqueued"))
variant("nameless-server", lambda: sets("initialized", server={"name": "", "version": ""}))
variant("no-limits", lambda: sets("session.started", context_max_tokens=0))
variant("full-snapshot", lambda: sets("queue.snapshot", paused=True))

# --- ids and numbers --------------------------------------------------------------------------------------


def _request_ids(change: Callable[[str], str]) -> Callable[[Event], Event]:
    return lambda event: (
        {**event, "request_id": change(event["request_id"])} if "request_id" in event else event
    )


def _seq(change: Callable[[int], int]) -> Callable[[Event], Event]:
    return lambda event: {**event, "seq": change(event["seq"])} if "seq" in event else event


def _guessed(event: Event) -> Event:
    return {"type": "error", "request_id": event.get("request_id", "a"), **event}


variant("trims-request-ids", lambda: sends(_request_ids(lambda text: text.strip())))
variant("short-request-ids", lambda: sends(_request_ids(lambda text: text[:1000]), "error"))
variant("guesses-request-ids", lambda: sends(_guessed, "error"))
variant("plain-ids", lambda: everywhere("new_uuid", new_hex))
variant("ids-again", lambda: sends(lambda event: {**event, "turn_id": "1"} if "turn_id" in event else event))
variant("gaps-in-seq", lambda: sends(_seq(lambda seq: 2 * seq - 1)))
variant("seq-from-zero", lambda: sends(_seq(lambda seq: seq - 1)))
variant("seq-repeats", lambda: sends(_seq(lambda seq: max(1, seq - 1))))
variant("numbers-errors", lambda: sets("error", seq=1))


def _clear_resets() -> Patch:
    gone = 0

    def change(event: Event) -> Event:
        nonlocal gone
        if event["type"] == "session.cleared":
            gone = event["seq"] - 1
        return _seq(lambda seq: seq - gone)(event)

    return sends(change)


def _shared() -> Patch:
    used = 0

    def change(event: Event) -> Event:
        nonlocal used
        used += event["type"] in NUMBERED
        return _seq(lambda _: used)(event)

    return sends(change)


variant("clear-resets-seq", _clear_resets)
variant("shared-seq", _shared)

# --- the order --------------------------------------------------------------------------------------------


def _held_back(first: str, *until: str) -> Callable[[], Patch]:
    """Events of the kind ``first`` are sent behind the next one of the kinds ``until``."""

    def make() -> Patch:
        held: list[Event] = []

        def change(event: Event) -> list[Event]:
            if event["type"] == first:
                held.append(event)
                return []
            if event["type"] in until:
                sent = [event, *held]
                held.clear()
                return sent
            return [event]

        return sends(change)

    return make


def _and(kind: str, **fields: Any) -> Callable[[Event], list[Event]]:
    """Behind an event comes another of ``kind`` with the same head."""
    head = ("request_id", "session_id", "turn_id", "seq", "call_id", "name")

    def change(event: Event) -> list[Event]:
        return [event, {"type": kind, **{key: event[key] for key in head if key in event}, **fields}]

    return change


def _before(kind: str, **fields: Any) -> Callable[[Event], list[Event]]:
    return lambda event: _and(kind, **fields)(event)[::-1]


ENDS = ("turn.completed", "turn.failed", "turn.cancelled")

variant("late-snapshot", _held_back("session.started", "queue.snapshot"))
variant("dequeues-early", _held_back("turn.cancelled", "queue.dequeued"))
variant("late-progress", _held_back("tool.progress", "tool.completed"))
variant("two-ends", lambda: sends(lambda event: [event, event], *ENDS))
variant("talks-on", lambda: sends(_and("assistant.delta", content="x"), *ENDS))
variant("tools-run-on", lambda: sends(_and("tool.progress", call_id="c", text="x"), "turn.cancelled"))
variant("queues-when-idle", lambda: sends(_before("queue.enqueued", entry={}, position=0), "turn.started"))
variant("starts-before-asking", lambda: sends(_before("tool.started"), "approval.requested"))
variant("fails-by-error", lambda: sends(_before("error", code="x", message="x", fatal=False), "turn.failed"))
variant("cancel-answers", lambda: sends(_before("turn.accepted"), "turn.cancelled"))
variant("answers-resolves", lambda: sends(_before("approval.accepted"), "tool.started"))
variant("dequeues-silently", lambda: sends(lambda _: None, "queue.dequeued"))
variant("clears-silently", lambda: sends(lambda _: None, "session.cleared"))
variant("stops-in-silence", lambda: sends(lambda _: None, "turn.cancelled"))
variant("errors-twice", lambda: sends(lambda event: [event, event], "error"))

# --- the values -------------------------------------------------------------------------------------------

variant("miscounts-steps", lambda: sets("turn.completed", steps=lambda steps: steps + 1))
variant(
    "silent-steps",
    lambda: sends(lambda event: event if len(event["content"]) > 15 else None, "assistant.completed"),
)
variant("partial-text", lambda: sets("assistant.completed", content=lambda text: text[-1000:]))
variant("rough-progress", lambda: sets("tool.progress", text=lambda text: f"{text}\x07"))
variant("long-progress", lambda: sets("tool.progress", text=lambda text: text * 50))
variant("vague-frame-limit", lambda: sets("turn.failed", code="internal_error"))
variant("positions-from-one", lambda: sets("queue.enqueued", position=lambda at: at + 1))
variant("revision-zero", lambda: sends(_of_entry(revision=0), "queue.enqueued"))
variant("own-submitters", lambda: sends(_of_entry(submitter="own"), "queue.enqueued"))
variant("dequeues-by-new-id", lambda: sets("queue.dequeued", request_id="own"))
variant("loses-attachments", lambda: sends(_of_entry(attachments=None), "queue.updated"))
variant("keeps-prompts", lambda: sends(_of_entry(prompt="old"), "queue.updated"))
variant("removal-raises-revision", lambda: sets("queue.removed", revision=lambda revision: revision + 1))
variant("nameless-snapshots", lambda: sets("queue.snapshot", request_id=None))
variant(
    "cancel-fails-turns",
    lambda: sends(
        lambda event: {**event, "type": "turn.failed", "code": "x", "message": "x"}, "turn.cancelled"
    ),
)
variant("own-cancel-ids", lambda: sets("turn.cancelled", request_id="own"))
variant("multi-line-summaries", lambda: sets("approval.requested", summary=lambda text: f"{text}\nmore"))
variant("wrong-question-cwd", lambda: sets("approval.requested", cwd="/"))
variant("own-codes", lambda: sets("error", code="oops"))
variant("fatal-errors", lambda: sets("error", fatal=True))
variant("vague-version", lambda: sets("error", message="no"))
variant("unbuilt-is-invalid", lambda: sets("error", code="invalid_json"))
variant("cancel-needs-session", lambda: sets("error", code="session_not_found"))


def _keeps_revisions(event: Event) -> Event:
    if event["type"] == "queue.moved":
        return {**event, "revision": event["revision"] - 1}
    return _of_entry(revision=1)(event)


variant("keeps-revisions", lambda: sends(_keeps_revisions, "queue.moved", "queue.updated"))
variant(
    "mild-version",
    lambda: sends(lambda event: {**event, "fatal": False}, "error"),
)


def _bare(output: str) -> str:
    return json.dumps({"attached": json.loads(output)["attached"]})


def _talkative() -> Patch:
    said = 0

    def more(text: str) -> str:
        nonlocal said
        said += 1
        return f"{text} {said}"

    return sets("tool.completed", output=more)


def _progress_in_output() -> Patch:
    seen = [""]

    def change(event: Event) -> Event:
        if event["type"] == "tool.progress":
            seen[0] = event["text"]
        if event["type"] == "tool.completed":
            event["output"] += seen[0]
        return event

    return sends(change)


def _first_compaction() -> Patch:
    seen: set[str] = set()

    def change(event: Event) -> Event | None:
        if event["turn_id"] in seen:
            return None
        seen.add(event["turn_id"])
        return event

    return sends(change, "context.compacted")


variant("compacts-silently", lambda: sends(lambda _: None, "context.compacted"))
variant("odd-compaction", lambda: sets("context.compacted", removed_messages=0))
variant("compacts-once", _first_compaction)
variant("trims-silently", lambda: sends(lambda _: None, "session.trimmed"))
variant("own-trim-ids", lambda: sets("session.trimmed", request_id="own"))
variant("bare-reports", lambda: sets("tool.completed", output=_bare))
variant("talkative-denials", _talkative)
variant("progress-in-output", _progress_in_output)

# --- frames that are too large, and clients of others -----------------------------------------------------

variant("huge-frames", lambda: attribute(Outbound, "limit", _no_limit))


def _no_limit(outbound: Any, frame_bytes: int) -> None:
    outbound._frame_bytes, outbound._most_bytes = 2**23, 2**24


def _broadcasts() -> Patch:
    everybody: list[Outbound] = []

    def make(append: Callable[..., None]) -> Callable[..., None]:
        def changed(self: Outbound, frame: bytes) -> None:
            if self not in everybody:
                everybody.append(self)
            for each in everybody:
                append(each, frame)

        return changed

    return wraps(Outbound, "append", make)


variant("broadcasts", _broadcasts)
