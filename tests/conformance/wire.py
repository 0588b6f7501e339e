"""What a server may write, held to the bytes: JSON read without mercy, and a table of the events.

Of this suite's own making, so that no mistake of a server's code is shared. Keys that the table does not know
are a newer server's and pass.
"""

import json
import math
import re
from typing import Any, NoReturn

from tests.conformance.faults import BrokenError, brief, check

SERVER_FRAME_BYTES = 8_388_608
MOST_NESTING = 127

_R, _S = "request_id:str", "session_id:str"
_SQ, _TQ = f"{_R} {_S} seq:u64", f"{_R} {_S} turn_id:str seq:u64"
_CALL = f"{_TQ} call_id:str"

EVENTS = {
    "daemon.status": f"{_R} status:DaemonStatus",
    "initialized": f"{_R} protocol_version:u32 server:Peer",
    "session.started": (
        f"{_R} {_S} cwd:str model:str context_max_tokens:u64 max_server_frame_bytes:u64 "
        "max_transcript_bytes:u64 max_transcript_items:u64 max_prompt_history_bytes:u64 "
        "max_prompt_history_items:u64"
    ),
    "queue.snapshot": f"request_id|:str {_S} seq:u64 entries:[QueueEntry] paused:bool",
    "queue.enqueued": f"{_SQ} entry:QueueEntry position:u64",
    "queue.updated": f"{_SQ} entry:QueueEntry",
    "queue.moved": f"{_SQ} queue_id:str position:u64 revision:u64",
    "queue.removed": f"{_SQ} queue_id:str revision:u64",
    "queue.dequeued": f"{_SQ} queue_id:str turn_id:str",
    "session.paused": f"{_SQ} paused:bool",
    "turn.started": f"{_TQ} origin?:Origin",
    "assistant.delta": f"{_TQ} content:str",
    "assistant.completed": f"{_TQ} content:str",
    "tool.proposed": f"{_CALL} name:str arguments:json",
    "approval.requested": (f"{_TQ} approval_id:str call_id:str name:str risk:Risk cwd:str summary:str"),
    "tool.started": f"{_CALL} name:str",
    "tool.progress": f"{_CALL} text:str",
    "tool.completed": f"{_CALL} name:str success:bool output:str truncated:bool",
    "context.compacted": f"{_TQ} before_tokens:u64 after_tokens:u64 removed_messages:u64",
    "session.trimmed": f"{_SQ} removed_messages:u64 history_bytes:u64",
    "session.cleared": _SQ,
    "turn.completed": f"{_TQ} steps:u64 usage:Usage origin?:Origin",
    "turn.cancelled": f"{_TQ} origin?:Origin",
    "turn.failed": f"{_TQ} code:str message:str origin?:Origin",
    "error": "request_id?:str code:str message:str fatal:bool",
}
"""Fields after ``type``, in order: ``name:kind``. A name's mark: ``?`` left out when absent, ``~`` left
out when
empty, ``|`` null when absent."""

STRUCTS = {
    "Peer": "name:str version:str",
    "Usage": "input_tokens?:u64 output_tokens?:u64",
    "Attachment": "kind:str path:str name~:str mime~:str size:u64 transcript?:str",
    "QueueEntry": "queue_id:str revision:u64 prompt:str submitter:str attachments~:[Attachment]",
    "Origin": "kind:str jobs~:[str]",
    "ComponentHealth": (
        "id:str channel:str account:str bot_id|:str user_id|:str enabled:bool state:State "
        "last_success_unix_seconds|:u64 error|:str restarts:u64 remote_tools:RemoteTools"
    ),
    "DaemonStatus": (
        "version:str pid:u32 components:[ComponentHealth] delegations:DelegationSummary restart?:RestartInfo"
    ),
    "DelegationSummary": "active:u64 reaped:u64 entries~:[DelegationInfo] killed~:[str]",
    "DelegationInfo": (
        "handle:str agent:str session:str depth:u32 pid:u32 owner_pid:u32 processes:u32 cwd:str "
        "started_unix_seconds:u64 orphaned:bool conversation?:str turn?:u32"
    ),
    "RestartInfo": "to_version:str waiting_for?:str requester?:str origin?:str deadline_unix_seconds:u64",
}

CHOICES = {
    "Risk": "read_only filesystem process delegate network",
    "State": "disabled starting connected disconnected backoff stopping stopped failed",
    "RemoteTools": "none owner",
}
ERROR_CODES = frozenset(
    "invalid_json not_initialized version_mismatch invalid_request unsupported session_not_found turn_active "
    "turn_not_found approval_not_found queue_limit queue_not_found queue_conflict component_error "
    "delegation_error restart_error internal_error".split()
)
NUMBERED = frozenset(
    kind for kind in EVENTS if kind not in ("initialized", "session.started", "daemon.status", "error")
)
OF_TURNS = ("turn.", "assistant.", "tool.", "approval.", "context.")

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Number(float):
    """A number that is no integer, as it was written."""

    def __new__(cls, digits: str) -> "Number":
        number = super().__new__(cls, digits)
        check(math.isfinite(number), f"a number is out of range: {brief(digits)}")
        number.digits = digits
        return number

    digits: str


def read(line: bytes, frame_bytes: int = SERVER_FRAME_BYTES) -> dict[str, Any]:
    """The object that the frame ``line`` holds.

    Raises:
        BrokenError: it is not one object, compact, on one line, in UTF-8, its strings in the agreed form.
    """
    check(line.endswith(b"\n"), "a frame does not end with a newline")
    check(len(line) <= frame_bytes + 1, f"a frame is over {frame_bytes} bytes")
    try:
        text = line[:-1].decode()
        value = json.loads(
            text, object_pairs_hook=_object, parse_float=Number, parse_constant=_no_number, parse_int=_integer
        )
    except (ValueError, RecursionError) as error:
        raise BrokenError(f"a frame is no JSON in UTF-8: {brief(line)}") from error
    if not isinstance(value, dict):
        raise BrokenError(f"a frame is no object: {brief(line)}")
    if (compact := write(value)) != text:
        at = next((n for n, pair in enumerate(zip(compact, text, strict=False)) if pair[0] != pair[1]), 0)
        raise BrokenError(f"a frame is not written compactly: {brief(text[max(0, at - 20) : at + 20])}")
    return value


def write(value: Any, depth: int = 0) -> str:
    """The one compact form of ``value``; the keys of objects stay in their order."""
    check(depth < MOST_NESTING or not isinstance(value, dict | list), f"over {MOST_NESTING} containers deep")
    match value:
        case dict():
            return (
                "{" + ",".join(f"{write(key)}:{write(item, depth + 1)}" for key, item in value.items()) + "}"
            )
        case list():
            return "[" + ",".join(write(item, depth + 1) for item in value) + "]"
        case str():
            return (
                '"' + _ESCAPED.sub(lambda found: _SHORT.get(found[0], f"\\u{ord(found[0]):04x}"), value) + '"'
            )
        case Number():
            return value.digits
        case _:
            return json.dumps(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    check(len(found) == len(pairs), f"a key is there twice: {brief([key for key, _ in pairs])}")
    return found


def _integer(digits: str) -> int:
    check(digits != "-0", "-0 is no integer")
    return int(digits)


def _no_number(word: str) -> NoReturn:
    raise BrokenError(f"{word} is no JSON")


def check_event(event: dict[str, Any]) -> None:
    """Hold ``event`` to the table: its fields, their types, their order, and what is left out when empty.

    Raises:
        BrokenError: it is none of these.
    """
    kind = event.get("type")
    check(isinstance(kind, str), f"an event has no type: {brief(event)}")
    check(next(iter(event)) == "type", f"{kind}: the tag does not come first")
    if kind in EVENTS:
        _check_fields({key: event[key] for key in event if key != "type"}, EVENTS[kind], str(kind))


def _check_fields(value: Any, table: str, where: str) -> None:
    check(isinstance(value, dict), f"{where}: {brief(value)} is no object")
    order = []
    for field in table.split():
        marked, _, kind = field.partition(":")
        name = marked.rstrip("?~|")
        order.append(name)
        _check_field(value, name, marked[len(name) :], kind, f"{where}.{name}")
    known = [key for key in value if key in order]
    check(
        known == [name for name in order if name in value], f"{where}: the keys are in another order: {known}"
    )


def _check_field(value: dict[str, Any], name: str, mark: str, kind: str, where: str) -> None:
    if name not in value:
        check(mark in ("?", "~") and mark, f"{where} is missing")
    elif value[name] is None and mark == "|":
        return
    else:
        check(mark != "~" or value[name], f"{where} is empty, and written nevertheless")
        _check_value(value[name], kind, where)


def _check_value(value: Any, kind: str, where: str) -> None:
    if kind.startswith("["):
        check(isinstance(value, list), f"{where}: {brief(value)} is no list")
        for item in value:
            _check_value(item, kind[1:-1], where)
    elif kind in STRUCTS:
        _check_fields(value, STRUCTS[kind], where)
    elif kind in CHOICES:
        check(value in CHOICES[kind].split(), f"{where}: {brief(value)} is none of {CHOICES[kind]}")
    elif kind == "json":
        check(_is_sorted(value), f"{where}: the keys are not sorted: {brief(value)}")
    else:
        check(_is_scalar(value, kind), f"{where}: {brief(value)} is no {kind}")


def _is_scalar(value: Any, kind: str) -> bool:
    if kind in ("u32", "u64"):
        return type(value) is int and 0 <= value < 2 ** int(kind[1:])
    return type(value) is {"str": str, "bool": bool}[kind]


def _is_sorted(value: Any) -> bool:
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(_is_sorted, value.values()))
    return not isinstance(value, list) or all(map(_is_sorted, value))
