"""What is remembered of a session from turn to turn: its id in the program, and how far that has heard."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bridge.agents.contract import HistoryEntry, Role


@dataclass(frozen=True, slots=True)
class Memory:
    """``heard`` is the mark of the newest turn that the program has taken part in, "" for none."""

    session: str = ""
    cwd: str = ""
    heard: str = ""

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "Memory":
        """What ``encode`` made; nothing is remembered of what another version wrote."""
        try:
            return cls(**{key: str(value) for key, value in json.loads(text).items()})
        except (ValueError, TypeError, AttributeError):
            return cls()


def mark(question: str, answer: str) -> str:
    """Of a turn, by its question and its last words."""
    return hashlib.sha256(f"{question}\0{answer}".encode(errors="replace")).hexdigest()[:32]


def split(entries: Sequence[HistoryEntry]) -> tuple[list[HistoryEntry], list[HistoryEntry]]:
    """What was before, and what this turn has been asked: the users' messages at the end."""
    at = len(entries)
    while at and entries[at - 1].role is Role.USER:
        at -= 1
    return list(entries[:at]), list(entries[at:])


def unheard(before: Sequence[HistoryEntry], heard: str) -> list[HistoryEntry]:
    """What came after the turn of that mark; all, where it is not found."""
    starts = [at for at, entry in enumerate(before) if entry.role is Role.USER]
    ends = [*starts[1:], len(before)]
    for start, end in reversed(list(zip(starts, ends, strict=False))):
        if heard and mark(before[start].text, _last_words(before[start:end])) == heard:
            return list(before[end:])
    return list(before)


def _last_words(turn: Sequence[HistoryEntry]) -> str:
    said = [entry.text for entry in turn if entry.role is Role.ASSISTANT and not entry.calls]
    return said[-1] if said else ""
