"""Mends an answer of Anthropic's messages; see ``mending.py``."""

from collections.abc import Mapping
from typing import Any

from bridge.agents.llm.oddities import is_count, is_map, text
from bridge.agents.llm.sse import Event, event

# What may be in an answer to us, each with its texts; a call's input comes in pieces.
_BLOCKS = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name"),
}
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class ClaudeMender:
    """Of one message."""

    def __init__(self) -> None:
        self.is_whole = False
        self._counted: list[bool] = []
        self._has_started = False
        self._open: set[int] = set()

    @property
    def is_counted(self) -> bool:
        """Nothing that was told of tokens was odd."""
        return bool(self._counted) and all(self._counted)

    def mend(self, given: Event) -> list[Event]:
        value = given.value
        if not is_map(value):
            return []
        kind = text(value.get("type")) or given.name
        if kind == "error":
            return [event("error", value)]
        found = self._mended(kind, value)
        if found is None:
            return []
        return [*self._start(kind), event(kind, {"type": kind, **found})]

    def whole(self, data: bytes) -> list[Event]:
        return []  # nothing speaks this wire without events

    def rest(self) -> list[Event]:
        return []

    def _start(self, kind: str) -> list[Event]:
        """A message begins with its start, also where none came."""
        if self._has_started:
            return []
        self._has_started = True
        if kind == "message_start":
            return []
        return [event("message_start", {"type": "message_start", **self._message({})})]

    def _mended(self, kind: str, value: Mapping[str, Any]) -> dict[str, Any] | None:
        match kind:
            case "message_start":
                return self._message(value)
            case "content_block_start":
                return self._block(value)
            case "content_block_delta":
                return self._delta(value)
            case "content_block_stop" if self._is_open(value.get("index")):
                return {"index": value["index"]}
            case "message_delta":
                return self._ending(value)
            case "message_stop":
                self.is_whole = True
                return {}
        return None

    def _message(self, value: Mapping[str, Any]) -> dict[str, Any]:
        given = value.get("message")
        message = given if is_map(given) else {}
        told: dict[str, Any] = {key: text(message.get(key)) or "" for key in ("id", "model")}
        told |= {"type": "message", "role": "assistant", "content": []}
        told |= {"stop_reason": None, "stop_sequence": None}
        return {"message": {**told, "usage": {"input_tokens": 0, **self._usage(message.get("usage"))}}}

    def _block(self, value: Mapping[str, Any]) -> dict[str, Any] | None:
        index, block = value.get("index"), value.get("content_block")
        kind = text(block.get("type")) if is_map(block) else None
        if not isinstance(index, int) or not is_map(block) or kind not in _BLOCKS:
            return None
        self._open.add(index)
        mended: dict[str, Any] = {key: text(block.get(key)) or "" for key in _BLOCKS[kind]}
        if kind == "tool_use":
            mended["input"] = dict(given) if is_map(given := block.get("input")) else {}
        return {"index": index, "content_block": {"type": kind, **mended}}

    def _is_open(self, index: Any) -> bool:
        return isinstance(index, int) and index in self._open

    def _delta(self, value: Mapping[str, Any]) -> dict[str, Any] | None:
        index, delta = value.get("index"), value.get("delta")
        kind = text(delta.get("type")) if is_map(delta) else None
        if not is_map(delta) or kind not in _DELTAS or not self._is_open(index):
            return None
        said = text(delta.get(_DELTAS[kind]))
        return None if said is None else {"index": index, "delta": {"type": kind, _DELTAS[kind]: said}}

    def _ending(self, value: Mapping[str, Any]) -> dict[str, Any]:
        delta = value.get("delta")
        reason = text(delta.get("stop_reason")) if is_map(delta) else None
        self.is_whole = self.is_whole or reason is not None
        usage = self._usage(value.get("usage"))
        return {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}

    def _usage(self, given: Any) -> dict[str, int]:
        counts = {key: given[key] for key in _COUNTS if given.get(key) is not None} if is_map(given) else {}
        is_right = bool(counts) and all(map(is_count, counts.values()))
        self._counted.append(is_right)
        return {"output_tokens": 0, **(counts if is_right else {})}
