"""A table of markdown, lined up for letters of one width; those of East Asia are two wide. Pure."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.channel.markdown import plain
from bridge.channel.tables import cells_of

MAX_WIDTH = 76
_BETWEEN = " | "


@dataclass(frozen=True, slots=True)
class Table:
    """``cells`` as written, the heads first; ``right``: columns lined up at their end; ``end``: past it."""

    cells: list[list[str]]
    right: frozenset[int]
    end: int

    def aligned(self) -> str:
        """The table in lines of one width, "" where that is over ``MAX_WIDTH``."""
        count = max(len(row) for row in self.cells)
        if len(_BETWEEN) * (count - 1) > MAX_WIDTH:
            return ""
        shown = [[plain(cell) for cell in row] for row in self.cells]
        shown = [row + [""] * (count - len(row)) for row in shown]
        widths = [max(width(row[column]) for row in shown) for column in range(count)]
        if sum(widths) + len(_BETWEEN) * (count - 1) > MAX_WIDTH:
            return ""
        head, *body = [self._line(row, widths) for row in shown]
        return "\n".join([head, "-+-".join("-" * each for each in widths), *body])

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = (_padded(cell, widths[at], right=at in self.right) for at, cell in enumerate(row))
        return _BETWEEN.join(cells).rstrip()


def read_table(lines: Sequence[str], start: int) -> Table:
    """The table whose heads are in line ``start`` and whose separator follows."""
    end = start + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    marks = cells_of(lines[start + 1])
    right = frozenset(at for at, mark in enumerate(marks) if mark.endswith(":") and not mark.startswith(":"))
    return Table([cells_of(line) for line in (lines[start], *lines[start + 2 : end])], right, end)


def width(text: str) -> int:
    """How many columns ``text`` takes: wide letters two, marks and joiners none."""
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _padded(text: str, columns: int, *, right: bool) -> str:
    space = " " * (columns - width(text))
    return space + text if right else text + space
