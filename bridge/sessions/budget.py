"""Which of a session's messages fit the model's context: an estimate of tokens, and a choice by it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, TypeAdapter

from bridge.agents.contract import AgentError, HistoryEntry, Role, ToolCall, TurnFile
from bridge.sessions.notes import NOTE_BYTES, note
from bridge.tools.contract import Tool

RESERVE_TOKENS = 8192  # for the answer
MARGIN_TOKENS = 2048  # by which the estimate may be wrong
FULL = (
    "instructions and tools alone fill what the model reads at once: give it more (context_tokens of its "
    "profile, or sessions.context_max_tokens), or fewer tools"
)
_MESSAGE_TOKENS = 4  # of a message beside its words
_TOKEN_BYTES = 3

_calls = TypeAdapter(tuple[ToolCall, ...])
_files = TypeAdapter(tuple[TurnFile, ...])


def tokens(size_bytes: int) -> int:
    """The estimate for a message of so many bytes of UTF-8."""
    return -(-size_bytes // _TOKEN_BYTES) + _MESSAGE_TOKENS


def entry_tokens(entry: HistoryEntry) -> int:
    size = len(entry.text.encode()) + len(entry.name.encode())
    if entry.calls:
        size += len(_calls.dump_json(entry.calls, exclude={"__all__": {"call_id"}}))
    if entry.files:
        size += len(_files.dump_json(entry.files))
    return tokens(size)


def budget(max_tokens: int, system: str, tools: Iterable[Tool], room_tokens: int = 0) -> int:
    """The tokens that are left for messages beside ``system`` and the ``tools``; maybe none.

    All of these have what a context of ``max_tokens`` leaves, and no more than ``room_tokens`` where given.
    """
    room = max_tokens - RESERVE_TOKENS - MARGIN_TOKENS
    room = min(room, room_tokens) if room_tokens else room
    room -= sum(_tool_tokens(tool) for tool in tools)
    return room - (tokens(len(system.encode(errors="replace"))) if system else 0)


def _tool_tokens(tool: Tool) -> int:
    return tokens(len(f"{tool.name}{tool.description}".encode()) + _schema_bytes(tool.arguments))


@lru_cache(256)
def _schema_bytes(arguments: type[BaseModel]) -> int:
    return len(TypeAdapter(dict).dump_json(arguments.model_json_schema()))


@dataclass(frozen=True, slots=True)
class Selection:
    """``entries`` fit, ``removed`` messages do not. Tokens are estimates: of all messages, and of these."""

    entries: tuple[HistoryEntry, ...]
    removed: int
    before_tokens: int
    after_tokens: int


def select(entries: Sequence[HistoryEntry], sizes: Sequence[int], room: int) -> Selection:
    """The newest user message, and as many of the newest groups as fit ``room`` tokens; a note for the rest.

    A group is a user's message, or an assistant's with the results of its calls. ``sizes`` are the estimates
    of the ``entries``, of which one is the user's.

    Raises:
        AgentError: ``context_limit``: the newest user message alone does not fit, or nothing does.
    """
    if room <= 0:
        raise AgentError("context_limit", FULL)
    before = sum(sizes)
    if before <= room:
        return Selection(tuple(entries), 0, before, before)
    question = max(at for at, entry in enumerate(entries) if entry.role is Role.USER)
    room -= sizes[question]
    if room < 0:
        raise AgentError("context_limit", "the message is too long for the model: send a shorter one")
    start = _start(entries, sizes, question, room - tokens(NOTE_BYTES))
    kept = [at for at in range(len(entries)) if at >= start or at == question]
    left_out = [entry for at, entry in enumerate(entries) if at < start and at != question]
    room -= sum(sizes[at] for at in kept if at != question)
    told = note(left_out, (room - _MESSAGE_TOKENS) * _TOKEN_BYTES)
    chosen = ([told] if told else []) + [entries[at] for at in kept]
    after = sum(sizes[at] for at in kept) + (entry_tokens(told) if told else 0)
    removed = sum(entry.role is not Role.NOTE for entry in left_out)
    return Selection(tuple(chosen), removed, before, after)


def _start(entries: Sequence[HistoryEntry], sizes: Sequence[int], question: int, room: int) -> int:
    """Where the newest groups begin that fit ``room`` together, the ``question`` not counted."""
    start = end = len(entries)
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].role is Role.TOOL:
            continue  # belongs to the message before it
        room -= sum(sizes[at:end]) if at != question else sum(sizes[at + 1 : end])
        if room < 0 or entries[at].role is Role.NOTE:
            break
        start = end = at
    return start
