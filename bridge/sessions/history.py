"""A session's messages, oldest first, as the agent sees them and as the store keeps them."""

from collections.abc import Iterable

from bridge.agents.contract import HistoryEntry, Role

MOST_BYTES = 16 * 1_048_576  # of the entries as they are stored
MOST_ENTRIES = 10_000


class History:
    """Whole turns only: a turn is added when it has completed, and the oldest are dropped over a limit."""

    def __init__(self, stored: Iterable[str] = ()) -> None:
        self._entries = [HistoryEntry.model_validate_json(entry) for entry in stored]
        self._sizes = [_size(encode(entry)) for entry in self._entries]

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        return tuple(self._entries)

    def size_bytes(self, dropped: int, turn: list[HistoryEntry]) -> int:
        """As stored, without the ``dropped`` oldest entries and with ``turn``."""
        return sum(self._sizes[dropped:]) + sum(_size(encode(entry)) for entry in turn)

    def surplus(self, turn: list[HistoryEntry]) -> int:
        """How many of the oldest entries must go, in whole turns, so that ``turn`` fits."""
        size = self.size_bytes(0, turn)
        count = len(self._entries) + len(turn)
        dropped = 0
        while dropped < len(self._entries) and (
            size > MOST_BYTES or count - dropped > MOST_ENTRIES or not self._starts_turn(dropped)
        ):
            size -= self._sizes[dropped]
            dropped += 1
        return dropped

    def _starts_turn(self, at: int) -> bool:
        return self._entries[at].role is Role.USER

    def add(self, turn: list[HistoryEntry], dropped: int) -> None:
        """Drop the ``dropped`` oldest entries and add a completed turn."""
        del self._entries[:dropped], self._sizes[:dropped]
        self._entries += turn
        self._sizes += [_size(encode(entry)) for entry in turn]

    def clear(self) -> None:
        self._entries.clear()
        self._sizes.clear()


def encode(entry: HistoryEntry) -> str:
    return entry.model_dump_json(exclude_defaults=True)


def is_too_large(turn: list[HistoryEntry]) -> bool:
    """Whether ``turn`` alone is over a limit."""
    return len(turn) > MOST_ENTRIES or sum(_size(encode(entry)) for entry in turn) > MOST_BYTES


def _size(text: str) -> int:
    return len(text.encode())
