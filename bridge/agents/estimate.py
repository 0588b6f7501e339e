"""How many tokens words are for a model, by a careful estimate: each model counts in its own way."""

from pydantic import TypeAdapter

from bridge.agents.contract import HistoryEntry, ToolCall, TurnFile

TOKEN_BYTES = 3  # of UTF-8
MESSAGE_TOKENS = 4  # of a message beside its words

_calls = TypeAdapter(tuple[ToolCall, ...])
_files = TypeAdapter(tuple[TurnFile, ...])


def tokens(size_bytes: int) -> int:
    """The estimate for a message of so many bytes of UTF-8."""
    return -(-size_bytes // TOKEN_BYTES) + MESSAGE_TOKENS


def text_bytes(room_tokens: int) -> int:
    """The longest message that so many tokens have room for, in bytes of UTF-8; below 0: not even a blank."""
    return (room_tokens - MESSAGE_TOKENS) * TOKEN_BYTES


def entry_tokens(entry: HistoryEntry) -> int:
    size = len(entry.text.encode()) + len(entry.name.encode())
    if entry.calls:
        size += len(_calls.dump_json(entry.calls, exclude={"__all__": {"call_id"}}))
    if entry.files:
        size += len(_files.dump_json(entry.files))
    return tokens(size)
