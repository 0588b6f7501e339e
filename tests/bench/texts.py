"""Texts that are hard to read cost in proportion to their length: 64 KiB against four times 16 KiB.

Each is read as an answer is: its markdown made plain, its tables found, and cut into messages. What is told
of each round is the text that grew most.
"""

import time
from collections.abc import Callable

from bridge.channel.markdown import plain
from bridge.channel.split import split_text
from bridge.channel.tables import find_tables
from bridge.channel.units import Limit
from tests.bench.figures import Figure, median_of

SMALL_BYTES, TIMES = 16_384, 4
TRIES = 3
HARD = (
    "word and word. ", "x", "中", "[", "`", "*", "|", "a b ", "```\n", "http://", "\n", "[a](b", "![](", "~~",
    "``a`b`` ", "> ", "- ", "# ", "a|b\n-|-\n1|2\n\n", "|\n", " \t", "👨‍👩‍👧‍👦", "e\u0301",
)  # fmt: skip


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    growths, larges = [], []
    for number in range(rounds):
        found = {unit: _growth(unit) for unit in HARD}
        worst = max(found, key=lambda unit: found[unit][0])
        growth, seconds = found[worst]
        growths.append(growth)
        larges.append(seconds)
        say(f"texts round {number + 1}: {growth:.2f} ({worst!r})")
    figure = Figure(
        name="texts",
        what="64 KiB of the hardest text, read and cut, against four times 16 KiB of it",
        ratios=tuple(growths),
        must=2.0,
        aim=1.3,
        most=True,
        absolute=f"{median_of(larges) * 1000:.0f} ms",
    )
    return [figure]


def _growth(unit: str) -> tuple[float, float]:
    """How much more a byte of the large text takes, and the seconds that the large one takes."""
    small = (unit * SMALL_BYTES)[: SMALL_BYTES // max(1, len(unit.encode()) // len(unit))]
    large = small * TIMES
    seconds = min(_seconds(large) for _ in range(TRIES))
    return seconds / (TIMES * min(_seconds(small) for _ in range(TRIES))), seconds


def _seconds(text: str) -> float:
    begun = time.process_time()
    list(find_tables(text, 0, len(text)))
    split_text(text, Limit(2000), plain)
    return time.process_time() - begun
