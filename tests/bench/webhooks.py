"""P1, P2, P4: encrypted Feishu pushes at 64, 16 and 1 connections, the daemon's way against a bare handler.

Each round starts both servers anew, so that neither carries anything along, warms them up, and measures one
after the other; the order changes from round to round. P4 is the processor time of the 64 connections'
requests, all threads counted, as Linux tells it: a machine that is busy otherwise spoils it less.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench import feishu
from tests.bench.figures import Figure, median_of

ROOT = Path(__file__).parents[2]
WARM_REQUESTS = 400
REQUESTS = {64: 6000, 16: 4000, 1: 1000}
SIDES = ("bare-enc", "account")
START_SECONDS = 30.0


class ChildError(Exception):
    """A child process did not do what it was asked."""


@contextmanager
def child(*args: str) -> Iterator[subprocess.Popen[str]]:
    """A module of ours in a process of its own; it ends when its stdin closes."""
    process = subprocess.Popen(
        [sys.executable, "-m", *args], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ChildError(f"{process.args!r} ended before it answered")
    return line


class Load:
    """The process that sends. Every order gets message ids of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._orders = 0

    def rate(self, port: int, connections: int, requests: int, path: str = feishu.PATH) -> float:
        """Requests answered a second; all of them must be answered 200."""
        self._orders += 1
        order = {
            "port": port,
            "path": path,
            "connections": connections,
            "requests": requests,
            "prefix": f"{self._orders:x}",
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(line_of(self._process))
        if answer["ok"] != requests:
            raise ChildError(f"{answer['other']} of {requests} requests were not answered 200")
        return requests / float(answer["seconds"])


def measure(
    rounds: int,
    say: Callable[[str], None],
    connections: tuple[int, ...] = (64, 16, 1),
    database: Path | None = None,
) -> list[Figure]:
    """``database``: what the account begins with; else it begins empty."""
    rates: dict[tuple[str, int], list[float]] = {(side, n): [] for side in SIDES for n in connections}
    costs: dict[str, list[float]] = {side: [] for side in SIDES}
    with child("tests.bench.load") as process:
        load = Load(process)
        for number in range(rounds):
            order = SIDES if number % 2 else SIDES[::-1]
            _round(load, order, connections, rates, costs, database)
            say(f"P1/P2 round {number + 1}: {_told(rates, connections)}")
    figures = [_figure(n, rates["account", n], rates["bare-enc", n]) for n in connections]
    return [*figures, *_cost(costs["account"], costs["bare-enc"])]


def _round(
    load: Load,
    order: tuple[str, ...],
    connections: tuple[int, ...],
    rates: dict[tuple[str, int], list[float]],
    costs: dict[str, list[float]],
    database: Path | None,
) -> None:
    given = [str(database)] if database else []
    with (
        child("tests.bench.servers", order[0], *given) as first,
        child("tests.bench.servers", order[1], *given) as second,
    ):
        ports = {order[0]: int(line_of(first)), order[1]: int(line_of(second))}
        pids = {order[0]: first.pid, order[1]: second.pid}
        for side in order:
            load.rate(ports[side], 16, WARM_REQUESTS)
        for n in connections:
            for side in order:
                before = processor_seconds(pids[side])
                rates[side, n].append(load.rate(ports[side], n, REQUESTS[n]))
                if n == max(connections) and before is not None:
                    costs[side].append(((processor_seconds(pids[side]) or 0.0) - before) / REQUESTS[n])


def processor_seconds(pid: int) -> float | None:
    """What all threads of a process have used, or None where the system does not tell.

    By the clock that ``clock_getcpuclockid`` names on Linux: /proc tells whole ticks of 10 ms only.
    """
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return None


def _cost(ours: list[float], bare: list[float]) -> list[Figure]:
    if not ours:
        return []
    figure = Figure(
        name="P4",
        what="processor time of such a message against the bare handler's request",
        ratios=tuple(own / other for own, other in zip(ours, bare, strict=True)),
        must=1.7,
        aim=1.3,
        most=True,
        absolute=f"{median_of(ours) * 1e6:.0f} µs, bare {median_of(bare) * 1e6:.0f} µs",
    )
    return [figure]


def _told(rates: dict[tuple[str, int], list[float]], connections: tuple[int, ...]) -> str:
    return ", ".join(f"{n}: {rates['account', n][-1] / rates['bare-enc', n][-1]:.2f}" for n in connections)


def _figure(connections: int, ours: list[float], bare: list[float]) -> Figure:
    must, aim = {64: (0.60, 0.75), 16: (0.42, 0.55), 1: (0.20, 0.27)}[connections]
    plural = "s" if connections > 1 else ""
    return Figure(
        name="P1" if connections == 64 else "P2",
        what=f"encrypted Feishu push, claimed on disk before the 200, {connections} connection{plural}",
        ratios=tuple(own / other for own, other in zip(ours, bare, strict=True)),
        must=must,
        aim=aim,
        absolute=f"{median_of(ours):.0f}/s, bare {median_of(bare):.0f}/s",
    )
