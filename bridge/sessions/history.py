"""A session's messages, oldest first, as the agent sees them and as the store keeps them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bridge.agents.contract import HistoryEntry, Role
from bridge.agents.estimate import entry_tokens
from bridge.sessions.notes import NOTE_BYTES, note

MOST_BYTES = 16 * 1_048_576  # of the entries as they are stored
MOST_ENTRIES = 10_000
_NOTE_STORED_BYTES = 2 * NOTE_BYTES + 256  # the most that a note takes: its text has nothing longer than \n


@dataclass(frozen=True, slots=True)
class Trim:
    """What a turn drives out: the ``dropped`` oldest entries, an older note among them, give way to ``note``.

    ``removed`` counts the messages, ``left_bytes`` is what is stored then, the turn included.
    """

    dropped: int
    note: HistoryEntry | None
    removed: int
    left_bytes: int


class History:
    """Whole turns: one is added when it has completed; the oldest give way to a note over a limit."""

    def __init__(self, stored: Iterable[str] = ()) -> None:
        self._entries = [HistoryEntry.model_validate_json(entry) for entry in stored]
        self._sizes = [_size(entry) for entry in self._entries]
        self._tokens = [entry_tokens(entry) for entry in self._entries]

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        return tuple(self._entries)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The estimate for each of the entries."""
        return tuple(self._tokens)

    def trim(self, turn: Sequence[HistoryEntry]) -> Trim | None:
        """What must go, in whole turns, so that ``turn`` fits, which alone is within the limits."""
        count, size = len(self._entries) + len(turn), sum(self._sizes) + sum(map(_size, turn))
        if count <= MOST_ENTRIES and size <= MOST_BYTES:
            return None
        dropped = 0
        while dropped < len(self._entries) and not (
            self._entries[dropped].role is Role.USER and _fits_with_note(count - dropped, size)
        ):
            size -= self._sizes[dropped]
            dropped += 1
        gone = self._entries[:dropped]
        told = note(gone) if _fits_with_note(count - dropped, size) else None
        removed = sum(entry.role is not Role.NOTE for entry in gone)
        return Trim(dropped, told, removed, size + (_size(told) if told else 0))

    def add(self, turn: Sequence[HistoryEntry], trim: Trim | None = None) -> None:
        """Do what ``trim`` says, and add a completed turn."""
        if trim:
            head = [trim.note] if trim.note else []
            self._entries[: trim.dropped] = head
            self._sizes[: trim.dropped] = map(_size, head)
            self._tokens[: trim.dropped] = map(entry_tokens, head)
        self._entries += turn
        self._sizes += map(_size, turn)
        self._tokens += map(entry_tokens, turn)

    def replace(self, entry: HistoryEntry) -> None:
        """Let ``entry`` stand for all of it."""
        self.clear()
        self.add([entry])

    def clear(self) -> None:
        for kept in (self._entries, self._sizes, self._tokens):
            kept.clear()


def encode(entry: HistoryEntry) -> str:
    return entry.model_dump_json(exclude_defaults=True)


def is_too_large(turn: Sequence[HistoryEntry]) -> bool:
    """Whether ``turn`` alone is over a limit."""
    return len(turn) > MOST_ENTRIES or sum(map(_size, turn)) > MOST_BYTES


def _fits_with_note(count: int, size: int) -> bool:
    return count < MOST_ENTRIES and size + _NOTE_STORED_BYTES <= MOST_BYTES


def _size(entry: HistoryEntry) -> int:
    return len(encode(entry).encode())
