"""What a comparison yields: the ratio of each round, its median, its spread, and whether the must is met."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """``most``: the ratio is a cost, at most ``must``; else it is a share, at least ``must``.

    A ``must`` of 0: the figure is told, and nothing is owed by it.

    ``absolute`` tells the two sides' own medians, which mean something on the machine of the run alone.
    """

    name: str
    what: str
    ratios: tuple[float, ...]
    must: float
    aim: float
    most: bool = False
    absolute: str = ""

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> str:
        return f"{min(self.ratios):.2f} to {max(self.ratios):.2f}"

    @property
    def met(self) -> bool:
        return self._meets(self.must)

    @property
    def verdict(self) -> str:
        if not self.must:
            return "told"
        if not self.met:
            return "MISSED"
        return "aim met" if self._meets(self.aim) else "met"

    @property
    def bound(self) -> str:
        return "at most" if self.most else "at least"

    def _meets(self, mark: float) -> bool:
        """A ratio is judged as it is printed: to two digits."""
        if not mark:
            return True
        return round(self.ratio, 2) <= mark if self.most else round(self.ratio, 2) >= mark


def median_of(values: Sequence[float]) -> float:
    return statistics.median(values)


COLUMNS = ("", "what", "ratio", "spread", "must", "aim", "verdict", "in this run")


def rows(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    return [
        (
            one.name,
            one.what,
            f"{one.ratio:.2f}",
            one.spread,
            f"{one.bound} {one.must:.2f}" if one.must else "-",
            f"{one.aim:.2f}" if one.aim else "-",
            one.verdict,
            one.absolute,
        )
        for one in figures
    ]


def plain_table(figures: Sequence[Figure]) -> str:
    """As text with aligned columns."""
    lines = [COLUMNS, *rows(figures)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def markdown_table(figures: Sequence[Figure]) -> str:
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows(figures)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
