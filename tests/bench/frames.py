"""P7 as figures: `codec` measures in an environment that has msgspec."""

import json
from collections.abc import Callable

from tests.bench.figures import Figure, median_of
from tests.bench.outside import NotInstalledError, environment, printed, with_ours

OWED = {  # must and aim
    ("small frames", "msgspec"): (0.15, 0.20),
    ("small frames", "dataclasses"): (2.3, 3.0),
    ("64 KiB of prose", "msgspec"): (0.7, 0.8),
}
SMALL = "small frames"


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    try:
        with environment("msgspec") as python:
            told = printed(python, "tests.bench.codec", str(rounds), variables=with_ours())
    except NotInstalledError as error:
        say(f"P7 is left out: {error}")
        return []
    found: dict[str, dict[str, list[float]]] = json.loads(told)
    figures = [_figure(row, sides, "msgspec") for row, sides in found.items()]
    figures.insert(1, _figure(SMALL, found[SMALL], "dataclasses"))
    for one in figures:
        say(f"P7 {one.what}: {one.ratio:.2f}")
    return figures


def _figure(row: str, sides: dict[str, list[float]], peer: str) -> Figure:
    must, aim = OWED.get((row, peer), (0.0, 0.0))
    title = "json with dataclasses" if peer == "dataclasses" else peer
    ours, theirs = median_of(sides["ours"]) * 1e6, median_of(sides[peer]) * 1e6
    return Figure(
        name="P7",
        what=f"frames read and written, with every refusal: {row}, against {title}",
        ratios=tuple(other / own for own, other in zip(sides["ours"], sides[peer], strict=True)),
        must=must,
        aim=aim,
        absolute=f"{ours:.1f} µs, theirs {theirs:.1f} µs",
    )
