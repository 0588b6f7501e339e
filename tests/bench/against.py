"""P3: our Feishu push, durable before its 200, against two libraries that store nothing."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench import feishu, peers
from tests.bench.commands import START_SECONDS, until_listening
from tests.bench.figures import Figure, median_of
from tests.bench.outside import ROOT, NotInstalledError, environment
from tests.bench.webhooks import WARM_REQUESTS, Load, child, line_of

REQUESTS = {"account": 6000, "lark": 4000, "nonebot": 1000, "nonebot-quiet": 1500}
CONNECTIONS = 64
TITLES = {
    "nonebot": "the same against nonebot2 with its Feishu adapter, which stores nothing",
    "nonebot-quiet": "the same with nonebot2's own log switched off",
    "lark": "the same against lark-oapi's dispatcher in aiohttp, which stores nothing",
}
MARKS = {"nonebot": (5.0, 7.0), "nonebot-quiet": (0.0, 0.0), "lark": (1.0, 1.5)}


@contextmanager
def peer(python: Path, name: str) -> Iterator[int]:
    """The port on which the peer serves pushes."""
    process = subprocess.Popen(
        [str(python), "-m", "tests.bench.peers", name],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        port = int(line_of(process))
        until_listening(port, process)
        time.sleep(0.5)  # nonebot adds its route once it knows who the bot is
        yield port
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(START_SECONDS)
        finally:
            process.kill()


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    figures = []
    for name, title in TITLES.items():
        try:
            with environment(*peers.REQUIREMENTS[name]) as python:
                figures.append(_figure(name, title, *_rates(python, name, rounds, say)))
        except NotInstalledError as error:
            say(f"P3 {name} is left out: {error}")
    return figures


def _rates(
    python: Path, name: str, rounds: int, say: Callable[[str], None]
) -> tuple[list[float], list[float]]:
    """Requests a second of ours and theirs, in each round both servers anew."""
    rates: dict[str, list[float]] = {"account": [], name: []}
    with child("tests.bench.load") as process:
        load = Load(process)
        for number in range(rounds):
            with child("tests.bench.servers", "account") as own, peer(python, name) as other:
                at = {"account": (int(line_of(own)), feishu.PATH), name: (other, peers.PATHS[name])}
                for port, path in at.values():
                    load.rate(port, 16, WARM_REQUESTS, path)
                for side in list(at) if number % 2 else list(at)[::-1]:
                    port, path = at[side]
                    rates[side].append(load.rate(port, CONNECTIONS, REQUESTS[side], path))
            say(f"P3 {name} round {number + 1}: {rates['account'][-1]:.0f}/s, {rates[name][-1]:.0f}/s")
    return rates["account"], rates[name]


def _figure(name: str, title: str, ours: list[float], theirs: list[float]) -> Figure:
    must, aim = MARKS[name]
    return Figure(
        name="P3",
        what=title,
        ratios=tuple(own / other for own, other in zip(ours, theirs, strict=True)),
        must=must,
        aim=aim,
        absolute=f"{median_of(ours):.0f}/s, theirs {median_of(theirs):.0f}/s",
    )
