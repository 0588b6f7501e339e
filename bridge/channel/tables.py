"""Tables of markdown, as far as reading and cutting a text needs them. Pure, and linear in time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

_SEPARATOR = re.compile(  # takes nothing back, so that a long run of blanks is read once
    r"[ \t]*+\|?+[ \t]*+:?+-++:?+[ \t]*+(?:\|[ \t]*+:?+-++:?+[ \t]*+)*+\|?+[ \t\r]*+\Z"
)
_CELL_END = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class TableSpan:
    """A table by positions: where its heads start, and each of its rows; the last one runs to ``end``."""

    start: int
    rows: tuple[int, ...]
    end: int


def find_tables(text: str, start: int, end: int) -> Iterator[TableSpan]:
    """The tables with rows in ``text[start:end]``, which is no code."""
    lines = text[start:end].split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=start))
    at = 0
    while at + 2 < len(lines):
        after = at + 1
        if "|" in lines[at] and is_separator(lines[after]):
            while (after := after + 1) < len(lines) and "|" in lines[after]:
                pass
            if rows := tuple(starts[at + 2 : after]):
                yield TableSpan(starts[at], rows, min(starts[after], end))
        at = after


def is_separator(line: str) -> bool:
    """Whether it may stand between a table's heads and its rows."""
    return "|" in line and "-" in line and _SEPARATOR.match(line) is not None


def cells_of(line: str) -> list[str]:
    """The cells of a row as they are written."""
    cells = _CELL_END.split(line.strip().removeprefix("|"))
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [cell.strip() for cell in cells]
