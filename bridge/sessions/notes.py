"""One note in the place of messages that were left out: bounded, and the same for the same messages."""

from collections.abc import Sequence

from bridge.agents.contract import HistoryEntry, Role
from bridge.sessions.progress import clean, cut

NOTE_BYTES = 2048  # the longest note's text
_LEAST_BYTES = 128  # a shorter one would say nothing
_QUOTE_BYTES = 200

_WHOSE = {Role.USER: "user", Role.ASSISTANT: "assistant"}


def note(left_out: Sequence[HistoryEntry], most_bytes: int = NOTE_BYTES) -> HistoryEntry | None:
    """What stands for ``left_out``: how many they were, and the beginnings of the newest.

    A note among them is taken over, so that there is one only. None where ``most_bytes`` is too little.
    """
    most_bytes = min(most_bytes, NOTE_BYTES)
    covers = messages(left_out)
    if not covers or most_bytes < _LEAST_BYTES:
        return None
    lines = [line for entry in left_out for line in _lines(entry)]
    head = f"{covers} earlier messages were left out here. The newest of them began:"
    while lines and _size([head, *lines]) > most_bytes:
        del lines[0]
    text = "\n".join([head, *lines]) if lines else head.partition(".")[0] + "."
    return HistoryEntry(role=Role.NOTE, text=text, covers=covers)


def messages(entries: Sequence[HistoryEntry]) -> int:
    """How many messages ``entries`` are or stand for."""
    return sum(entry.covers if entry.role is Role.NOTE else 1 for entry in entries)


def _lines(entry: HistoryEntry) -> list[str]:
    if entry.role is Role.NOTE:
        return entry.text.split("\n")[1:]
    text = cut(" ".join(clean(entry.text[: 2 * _QUOTE_BYTES]).split()), _QUOTE_BYTES)
    return [f"{_WHOSE[entry.role]}: {text}"] if entry.role in _WHOSE and text else []


def _size(lines: Sequence[str]) -> int:
    return len("\n".join(lines).encode())
