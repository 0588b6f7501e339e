"""Brings what endpoints send into the promised shape: pure, piece by piece, dropping what fits nowhere.

A wrong statistic costs the statistic, never the answer; a broken call is passed on, to be refused as a call.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
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
    first = [_choice(choices[0])] if isinstance(choices, list) and choices and is_map(choices[0]) else []
    created = raw.get("created")
    return {
        "id": text(raw.get("id")) or "",
        "object": "chat.completion.chunk",
        "created": created if isinstance(created, int) and 0 <= created < 1 << 33 else 0,
        "model": text(raw.get("model")) or "",
        "choices": first,
        "usage": _usage(raw.get("usage")),
    }


def as_chunk(completion: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion that came whole, as the chunk that says all of it."""
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and is_map(choices[0]) else {}
    message = first.get("message")
    delta = dict(message) if is_map(message) else {}
    if isinstance(calls := delta.get("tool_calls"), list):
        delta["tool_calls"] = [{**call, "index": at} for at, call in enumerate(calls) if is_map(call)]
    return {**completion, "choices": [{**first, "delta": delta}] if first else []}


def _choice(raw: Mapping[str, Any]) -> dict[str, Any]:
    delta = raw.get("delta")
    mended = dict(delta) if is_map(delta) else {}
    if isinstance(parts := mended.get("content"), list):
        mended["content"] = "".join(filter(None, map(_part, parts)))
    for key in {"content", "refusal", "reasoning", "reasoning_content"} & mended.keys():
        if (said := text(mended.pop(key))) is not None:
            mended[key] = said
    calls = mended.get("tool_calls")
    mended["tool_calls"] = _calls(calls) if isinstance(calls, list) else None
    return {"index": 0, "delta": mended, "finish_reason": text(raw.get("finish_reason"))}


def _part(raw: Any) -> str | None:
    """The words of a part, where a content comes in parts."""
    return text(raw.get("text")) if is_map(raw) else None


def _calls(raw: list[Any]) -> list[dict[str, Any]]:
    return [_call(at, call) for at, call in enumerate(raw) if is_map(call)]


def _call(at: int, raw: Mapping[str, Any]) -> dict[str, Any]:
    function = raw.get("function")
    given = function if is_map(function) else {}
    arguments = given.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    index = raw.get("index")
    return {
        **raw,
        "index": index if isinstance(index, int) else at,
        "id": text(raw.get("id")),
        "function": {"name": text(given.get("name")), "arguments": text(arguments)},
    }


@dataclass(slots=True)
class _Slot:
    """A call that is being received, at ``index`` for the library."""

    index: int
    call_id: str | None
    name: str = ""
    has_arguments: bool = False


class Slots:
    """Which of an answer's calls a piece belongs to: endpoints leave out the index, or say names again."""

    def __init__(self) -> None:
        self._slots: dict[int, _Slot] = {}
        self._count = 0

    def place(self, call: dict[str, Any]) -> None:
        """Give ``call``, a mended piece, the index that is its own, and a name if it is the first."""
        function, call_id = call["function"], call["id"] or None
        slot = self._slots.get(call["index"])
        if slot is None or self._is_another(slot, call_id, function["name"]):
            slot = self._slots[call["index"]] = _Slot(self._count, call_id)
            self._count += 1
            function["name"] = function["name"] or ""
        elif call_id and slot.name and (slot.has_arguments or function["name"] == slot.name):
            function["name"] = None  # said again with each piece
        call["index"] = slot.index
        slot.call_id = slot.call_id or call_id
        slot.name += function["name"] or ""
        slot.has_arguments = slot.has_arguments or bool(function["arguments"])

    @staticmethod
    def _is_another(slot: _Slot, call_id: str | None, name: str | None) -> bool:
        if call_id and slot.call_id:
            return call_id != slot.call_id
        return bool(name) and slot.has_arguments


def _usage(raw: Any) -> dict[str, Any] | None:
    """Token counts, None where one of them is none."""
    if not is_map(raw):
        return None
    counts = {key: raw.get(key) or 0 for key in _COUNTS}
    if not all(map(is_count, counts.values())):
        return None
    for name in _DETAILS:
        if is_map(details := raw.get(name)):
            counts[name] = {key: value for key, value in details.items() if is_count(value)}
    return counts


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def is_map(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def text(value: Any) -> str | None:
    """A text as it can be sent back: halves of characters become ``?``."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None


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
    return dict(arguments) if is_map(arguments) else {"refused": arguments}


def call_id() -> str:
    """An id of ours: a provider's may be empty, there twice, or not to another provider's liking."""
    return new_uuid().replace("-", "")


def call_name(raw: str) -> str:
    return raw[:NAME_CHARACTERS]


def sent_name(name: str) -> str:
    """``name`` of a tool, also one that only another agent has, as a provider takes it."""
    return _ODD_NAME.sub("_", name)[:64] or "unnamed"
