"""Which of a session's messages fit the model's context: an estimate of tokens, and a choice by it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, TypeAdapter

from bridge.agents.contract import AgentError, HistoryEntry, Role
from bridge.agents.estimate import entry_tokens, text_bytes, tokens
from bridge.sessions.notes import NOTE_BYTES, note
from bridge.sessions.results import fitted
from bridge.tools.contract import Tool

RESERVE_TOKENS = 8192  # for the answer
MARGIN_TOKENS = 2048  # by which the estimate may be wrong
FULL = (
    "instructions and tools alone fill what the model reads at once: give it more (context_tokens of its "
    "profile, or sessions.context_max_tokens), or fewer tools"
)
_NOTE_SHARE = 8  # a note has so small a part of the room at the most where results have to be cut


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


def select(entries: Sequence[HistoryEntry], sizes: Sequence[int], room: int, own: int) -> Selection:
    """What the turn cannot go on without, and as many of the newest groups as fit ``room`` tokens beside it.

    A group is a user's message, or an assistant's with the results of its calls. The last ``own`` entries are
    the turn's, its question first: all that its user says stays, and its newest step, of which results are
    cut where they do not fit. A note stands for the rest. ``sizes`` are the estimates of the ``entries``.

    Raises:
        AgentError: ``context_limit``: the user's words alone do not fit, or the newest step beside them, or
            nothing does.
    """
    if room <= 0:
        raise AgentError("context_limit", FULL)
    before = sum(sizes)
    if before <= room:
        return Selection(tuple(entries), 0, before, before)
    kept = _needed(entries, sizes, room, own)
    start = _start(entries, sizes, kept, room - _total(kept, entries, sizes) - tokens(NOTE_BYTES))
    kept |= {at: entries[at] for at in range(start, len(entries)) if at not in kept}
    after = _total(kept, entries, sizes)
    left_out = [entry for at, entry in enumerate(entries) if at not in kept]
    told = note(left_out, text_bytes(room - after))
    chosen = ([told] if told else []) + [kept[at] for at in sorted(kept)]
    removed = sum(entry.role is not Role.NOTE for entry in left_out)
    return Selection(tuple(chosen), removed, before, after + (entry_tokens(told) if told else 0))


Kept = dict[int, HistoryEntry]
"""Those that are chosen, cut where they had to be, by their places among all."""


def _needed(entries: Sequence[HistoryEntry], sizes: Sequence[int], room: int, own: int) -> Kept:
    """The words of the turn's user, and its newest step, as it fits beside them."""
    turn = range(len(entries) - own, len(entries))
    kept = {at: entries[at] for at in turn if entries[at].role is Role.USER}
    room -= _total(kept, entries, sizes)
    if room < 0:
        raise AgentError("context_limit", "the message is too long for the model: send a shorter one")
    begins = max((at for at in turn if entries[at].role is Role.ASSISTANT), default=len(entries))
    step = [at for at in range(begins, len(entries)) if at not in kept]
    has_more = len(kept) + len(step) < len(entries)
    spare = min(tokens(NOTE_BYTES), room // _NOTE_SHARE) if has_more else 0
    found = fitted([entries[at] for at in step], [sizes[at] for at in step], room, spare)
    return kept | dict(zip(step, found, strict=True))


def _total(kept: Kept, entries: Sequence[HistoryEntry], sizes: Sequence[int]) -> int:
    """The estimate for all of them."""
    return sum(sizes[at] if one is entries[at] else entry_tokens(one) for at, one in kept.items())


def _start(entries: Sequence[HistoryEntry], sizes: Sequence[int], kept: Kept, room: int) -> int:
    """Where the newest groups begin that fit ``room`` together, those not counted that are kept anyway."""
    start = end = len(entries)
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].role is Role.TOOL:
            continue  # belongs to the message before it
        size = sum(sizes[one] for one in range(at, end) if one not in kept)
        if size > max(room, 0) or entries[at].role is Role.NOTE:
            break
        room -= size
        start = end = at
    return start
