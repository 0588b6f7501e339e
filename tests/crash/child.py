"""The real daemon in a process of its own, which may kill itself at a durable step.

``python -m tests.crash.child HOME [--die STEP:before|after:N] [--variant NAME+NAME]`` prints ``ready`` once
it serves. Before the N-th step of a kind is handed to the store, or after its result came back and
before anybody has acted on it, the process ends by SIGKILL.
"""

import argparse
import asyncio
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from bridge.cli.run import loop_factory
from bridge.clock import SystemClock
from bridge.config import load
from bridge.daemon import run_daemon
from bridge.errors import BridgeError
from bridge.logs import configure
from bridge.paths import Home
from bridge.store.contract import STEPS, Step, Store
from tests.crash.broken import NO_UNIQUE_KEY, broken, drop_unique_keys, read
from tests.crash.trace import TURNS, note_calls
from tests.store.around import Around

R = TypeVar("R")


@dataclass(frozen=True)
class Point:
    """Where to die."""

    step: str
    when: str
    count: int

    @classmethod
    def read(cls, text: str) -> Self:
        step, when, count = text.split(":")
        if step not in {one.__name__ for one in STEPS} or when not in ("before", "after"):
            raise argparse.ArgumentTypeError(f"no such point: {text}")
        return cls(step, when, int(count))

    def __str__(self) -> str:
        return f"{self.step}:{self.when}:{self.count}"


class Dying(Around):
    """A store around which the process dies at ``point``."""

    def __init__(self, store: Store, point: Point, die: Callable[[], None]) -> None:
        super().__init__(store)
        self._point, self._die = point, die
        self._count: Counter[str] = Counter()

    async def do(self, step: Step[R]) -> R:
        name = type(step).__name__
        self._count[name] += 1
        here = name == self._point.step and self._count[name] == self._point.count
        if here and self._point.when == "before":
            self._die()
        result = await self._store.do(step)
        if here:
            self._die()
        return result


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_with_the_run() -> None:
    """Whoever started this process may itself be killed."""
    os.read(0, 1)  # not sys.stdin, whose lock the end of the interpreter wants
    kill_self()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--die", type=Point.read)
    parser.add_argument("--variant", type=read, default=())
    args = parser.parse_args()
    home = Home(args.home)
    config = load(home.config)
    configure(config.log.level, as_json=True)
    threading.Thread(target=die_with_the_run, daemon=True).start()
    note_calls(home.root.parent / TURNS)
    if NO_UNIQUE_KEY in args.variant:
        drop_unique_keys(home.db)

    def wrap(store: Store) -> Store:
        store = broken(store, args.variant)
        return Dying(store, args.die, kill_self) if args.die else store

    def ready(_: object) -> None:
        print("ready", flush=True)

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(run_daemon(home, config, clock=SystemClock(), store_wrap=wrap, ready=ready))
    except BridgeError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
