"""How much of what a program says waits until it can be worked off."""

from typing import Any

MOST_WAITING = 10_000
MOST_CHARACTERS = 16 * 1_048_576
"""More than any single message has. A character takes four bytes at the most."""


class Room:
    """For news that wait, by their number and by their size."""

    def __init__(self) -> None:
        self.count = self.characters = 0

    def take(self, characters: int) -> bool:
        """Whether there is room for one more, which has it then."""
        if self.count >= MOST_WAITING or self.characters + characters > MOST_CHARACTERS:
            return False
        self.count += 1
        self.characters += characters
        return True

    def leave(self, characters: int) -> None:
        """One of them waits no more."""
        self.count -= 1
        self.characters -= characters


def size(news: Any) -> int:
    """In characters, as it is written out: some more than it came with."""
    return len(repr(news))
