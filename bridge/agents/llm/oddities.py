"""Brings what endpoints send into the promised shape: pure, piece by piece, dropping what fits nowhere.

A wrong statistic costs the statistic, never the answer; a broken call is passed on, to be refused as a call.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from bridge.ids import new_uuid
from bridge.protocol import json_rules
from bridge.protocol.errors import ProtocolError

NAME_CHARACTERS = 128
_ODD_NAME = re.compile(r"[^A-Za-z0-9_-]")
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = ("prompt_tokens_details", "completion_tokens_details")


def mend_chunk(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk of a chat completion as the library can take it."""
    choices = raw.get("choices")
    first = [_choice(choices[0])] if isinstance(choices, list) and choices and _is_map(choices[0]) else []
    created = raw.get("created")
    return {
        "id": _text(raw.get("id")) or "",
        "object": "chat.completion.chunk",
        "created": created if isinstance(created, int) and 0 <= created < 1 << 33 else 0,
        "model": _text(raw.get("model")) or "",
        "choices": first,
        "usage": _usage(raw.get("usage")),
    }


def _choice(raw: Mapping[str, Any]) -> dict[str, Any]:
    delta = raw.get("delta")
    mended = dict(delta) if _is_map(delta) else {}
    for key in ("content", "refusal", "reasoning", "reasoning_content"):
        if key in mended and not (isinstance(mended[key], str) or (key == "content" and mended[key])):
            del mended[key]
    calls = mended.get("tool_calls")
    mended["tool_calls"] = _calls(calls) if isinstance(calls, list) else None
    return {"index": 0, "delta": mended, "finish_reason": _text(raw.get("finish_reason"))}


def _calls(raw: list[Any]) -> list[dict[str, Any]]:
    return [_call(at, call) for at, call in enumerate(raw) if _is_map(call)]


def _call(at: int, raw: Mapping[str, Any]) -> dict[str, Any]:
    function = raw.get("function")
    given = function if _is_map(function) else {}
    arguments = given.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    index = raw.get("index")
    return {
        **raw,
        "index": index if isinstance(index, int) else at,
        "id": _text(raw.get("id")),
        "function": {"name": _text(given.get("name")), "arguments": arguments},
    }


def _usage(raw: Any) -> dict[str, Any] | None:
    """Token counts, None where one of them is none."""
    if not _is_map(raw):
        return None
    counts = {key: raw.get(key) or 0 for key in _COUNTS}
    if not all(map(_is_count, counts.values())):
        return None
    for name in _DETAILS:
        if _is_map(details := raw.get(name)):
            counts[name] = {key: value for key, value in details.items() if _is_count(value)}
    return counts


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _is_map(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def read_arguments(raw: Any) -> Any:
    """A call's arguments. What is no JSON stays a text, which every tool refuses with a reason."""
    if raw is None or raw == "":
        return {}
    if not isinstance(raw, str):
        return raw
    try:
        [[value]] = json_rules.parse(b"[[" + raw.encode(errors="replace") + b"]]")
    except (ProtocolError, ValueError):
        return raw
    return value


def sent_arguments(arguments: Any) -> dict[str, Any]:
    """``arguments`` as a provider takes them back: an object, whatever the model made of them."""
    return dict(arguments) if _is_map(arguments) else {"refused": arguments}


def call_id() -> str:
    """An id of ours: a provider's may be empty, there twice, or not to another provider's liking."""
    return new_uuid().replace("-", "")


def call_name(raw: str) -> str:
    return raw[:NAME_CHARACTERS]


def sent_name(name: str) -> str:
    """``name`` of a tool, also one that only another agent has, as a provider takes it."""
    return _ODD_NAME.sub("_", name)[:64] or "unnamed"
