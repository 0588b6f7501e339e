"""Kill a real daemon at each durable step and at random, under load: ``python -m tests.crash.main``.

Whatever happens to the daemon, people go on writing, and the platforms repeat what was not acknowledged.
In the end the daemon runs undisturbed until all is at rest, and is judged: nothing acknowledged is lost,
no message runs twice, each is answered or reported, no part is doubled without a mark, the order is
kept, the database is sound, and no log tells a secret. Exit 1 at any breach.

The seed decides where and when it is killed; how the system schedules it, it does not.
"""

import argparse
import asyncio
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bridge.store.contract import STEPS
from tests.crash import broken, offspring
from tests.crash.child import Point
from tests.crash.journal import Journal
from tests.crash.judge import judge
from tests.crash.place import Place, place
from tests.crash.process import STOP_SECONDS, Daemon
from tests.crash.record import Verdict
from tests.crash.traffic import Traffic

KILLED = -9
REACH_SECONDS = 10.0  # for a point to be met; a start alone takes some of it on a busy machine
LIFE_SECONDS = 1.2  # the longest life after it serves, before a random kill
LONG_LIFE_SECONDS, LONG_LIVES = 4.0, 0.2  # and of some: people ask and are answered meanwhile
STUCK_SECONDS = 30.0  # without any progress in the end; a part may wait that long for its next try
BROKEN_STUCK_SECONDS = 2.5
# The owner is told of a full disk, and half a minute after a start at the earliest; and an account that is
# signed out has nothing left that could be counted.
UNUSED = ("Notify", "Forget")
SHOWN_BREACHES = 40
CHILDREN_SECONDS = 10.0  # until a life has processes that a wrong daemon may leave behind
GONE_SECONDS, LOOK_SECONDS = 2.0, 0.03  # by which nothing is left of a daemon that was killed
OCCURRENCES = {  # steps that are taken less often in one life than the others
    "Bind": (1, 2, 4),
    "Recover": (1, 2, 4),
    "SetIdentity": (1, 2),
    "NoteOwner": (1,),
    "Prune": (1,),
    "BindSession": (1, 2),
    "OpenSession": (1, 2),
    "ClearSession": (1, 2),
    "ReserveSeq": (1, 2),
    "Mark": (1, 2),
    "Hold": (1, 2),
    "Recall": (1, 2),
    "Edit": (1, 2),
    "Revive": (1,),
    "Bury": (1,),
    "UnbindSession": (1, 2),
    "Choose": (1, 2),
    "ConfigureSession": (1, 2, 4),
    "CompactSession": (1,),
    "Spend": (1,),
}


@dataclass(frozen=True)
class Plan:
    """What a run does: where it kills, how often at random, how often it stops by SIGTERM."""

    points: tuple[Point, ...]
    kills: int
    stops: int
    variant: tuple[str, ...] = ()
    least_life_seconds: float = 0.0


@dataclass
class Run:
    """One run on one home."""

    plan: Plan
    place: Place
    rng: random.Random
    journal: Journal = field(default_factory=Journal)
    reached: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)
    random_kills: int = 0
    starting_kills: int = 0
    orphans: Counter[str] = field(default_factory=Counter)  # by their kind, as their daemon was found dead
    slowest_end: float = 0.0  # of these, in seconds

    def __post_init__(self) -> None:
        self.daemon = Daemon(self.place.home.root, self.place.log, self.plan.variant)
        self.traffic = Traffic(self.place, self.journal, self.rng)

    async def go(self) -> Verdict:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self.traffic.watch())
            writing = tasks.create_task(self.traffic.write())
            await self._points()
            await self._kills()
            await self._stops()
            await self._drain(writing)
            watching.cancel()
        self.traffic.look()
        verdict = judge(self.place, self.journal)
        verdict.breaches[:0] = self.breaches
        verdict.counts.update({f"processes whose daemon died: {kind}": n for kind, n in self.orphans.items()})
        return verdict

    # --- killing --------------------------------------------------------------------------------

    async def _points(self) -> None:
        points = list(self.plan.points)
        self.rng.shuffle(points)
        for number, point in enumerate(points, 1):
            self._rename()
            await self.daemon.start(point)
            code = await self.daemon.ended(REACH_SECONDS)
            if code == KILLED:
                self.reached[f"{point.step} {point.when}"] += 1
            elif code is None:
                self.missed.append(str(point))
                await self.daemon.kill()
            else:
                self.breaches.append(f"the daemon ended by itself with {code} on its way to {point}")
            await self._leaves_nothing()
            self._say(f"point {number}/{len(points)} {point}")

    async def _kills(self) -> None:
        for number in range(1, self.plan.kills + 1):
            await self.daemon.start()
            if self.rng.random() < 0.2 and not self.plan.least_life_seconds:  # while it starts
                await asyncio.sleep(self.rng.random() * 0.8)
                self.starting_kills += 1
            else:
                await self._serving()
                long = self.rng.random() < LONG_LIVES
                life = self.rng.random() * (LONG_LIFE_SECONDS if long else LIFE_SECONDS)
                await asyncio.sleep(self.plan.least_life_seconds + life)
            if self.plan.least_life_seconds:
                await self._has_children()
            await self._kill()
            self.random_kills += 1
            self._say(f"kill {number}/{self.plan.kills}")

    async def _has_children(self) -> None:
        """Wait for what a wrong daemon could leave behind, not for ever: its turns may be few."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CHILDREN_SECONDS):
                while not any(map(offspring.is_spawned, await self.daemon.left())):
                    await asyncio.sleep(LOOK_SECONDS)

    async def _kill(self) -> None:
        code = await self.daemon.kill()
        if code != KILLED:
            self.breaches.append(f"the daemon ended by itself with {code}")
        await self._leaves_nothing()

    async def _leaves_nothing(self) -> None:
        """Nothing that the daemon has started goes on for long without it; what does is ended here."""
        began, left = time.monotonic(), await self.daemon.left()
        self.orphans.update(offspring.kind(offspring.shown(pid)) for pid in left)
        while left and time.monotonic() < began + GONE_SECONDS:
            await asyncio.sleep(LOOK_SECONDS)
            if not (left := await self.daemon.left()):
                self.slowest_end = max(self.slowest_end, time.monotonic() - began)
        if left:
            told = ", ".join(map(offspring.shown, left))
            self.breaches.append(f"processes outlived their daemon: {len(left)}: {told}")
            offspring.end(left)

    async def _stops(self) -> None:
        """R18: SIGTERM under load. R19: a second daemon on the home is refused, and the first goes on."""
        for number in range(1, self.plan.stops + 1):
            await self.daemon.start()
            await self._serving()
            refusal, seconds = await self.daemon.second()
            if refusal in (0, -1, KILLED):
                self.breaches.append(f"a second daemon was not refused: {refusal} after {seconds:.1f} s")
            await asyncio.sleep(self.rng.random() * LIFE_SECONDS)
            acknowledged = self._acknowledged()
            code, seconds = await self.daemon.stop()
            if code != 0:
                self.breaches.append(f"SIGTERM ended with {code} after {seconds:.1f} s")
            await self._leaves_nothing()
            lost = acknowledged - self._stored()
            if lost:
                self.breaches.append(f"acknowledged before a SIGTERM and not stored: {len(lost)}")
            self._say(f"stop {number}/{self.plan.stops}: {seconds:.1f} s of {STOP_SECONDS:.0f}")

    async def _serving(self) -> None:
        if not await self.daemon.ready():
            code = await self.daemon.kill()
            self.breaches.append(f"the daemon did not start: {code}")

    def _rename(self) -> None:
        """The bot is called anew, so that the daemon has its identity to store again."""
        for fake in self.place.apps.values():
            fake.interface._name = f"Turnbridge {self.rng.randrange(10**6)}"

    # --- the end --------------------------------------------------------------------------------

    async def _drain(self, writing: asyncio.Task[None]) -> None:
        """No more faults: all must come to rest."""
        self.traffic.quiet.set()
        for fake in self.place.apps.values():
            fake._faults.clear()
        self.place.service._faults.clear()
        await self.daemon.start()
        await self._serving()
        await self._at_rest(writing)
        if not writing.done():
            self.breaches.append("the platforms could not deliver everything")
            writing.cancel()
        self.traffic.look()
        code, seconds = await self.daemon.stop()
        if code != 0:
            self.breaches.append(f"the last SIGTERM ended with {code} after {seconds:.1f} s")
        await self._leaves_nothing()

    async def _at_rest(self, writing: asyncio.Task[None]) -> None:
        """Until nothing is open, or nothing has moved for so long that nothing will."""
        patience = BROKEN_STUCK_SECONDS if self.plan.variant else STUCK_SECONDS
        last: object = None
        moved = time.monotonic()
        while (
            not (writing.done() and not self._open() and not self.traffic.answering)
            and time.monotonic() < moved + patience
        ):
            now = (self._open(), writing.done(), self.journal.progress())
            self._say(f"draining: {now[0]} open")
            if now != last:
                last, moved = now, time.monotonic()
            await asyncio.sleep(0.2)

    def _open(self) -> int:
        query = """SELECT (SELECT count(*) FROM messages WHERE state NOT IN ('done', 'seen'))
                        + (SELECT count(*) FROM parts WHERE state IN ('pending', 'sending'))"""
        return int(self._read(query)[0][0])

    def _stored(self) -> set[tuple[str, str]]:
        return {(row[0], row[1]) for row in self._read("SELECT account, message_id FROM messages")}

    def _acknowledged(self) -> set[tuple[str, str]]:
        return {(one.account, one.message_id) for one in self.journal.messages.values() if one.acknowledged}

    def _read(self, query: str) -> list[tuple[str, ...]]:
        db = sqlite3.connect(f"file:{self.place.home.db}?mode=ro", uri=True)
        try:
            return db.execute(query).fetchall()
        finally:
            db.close()

    def _say(self, text: str) -> None:
        told = f"{text}; {len(self.journal.messages)} messages"
        if sys.stderr.isatty():
            print(f"\r{told:<78}", end="", file=sys.stderr, flush=True)
        elif not text.startswith("draining"):
            print(told, file=sys.stderr, flush=True)


def points(only: str, *, once: bool) -> tuple[Point, ...]:
    """Before and after every step, at several of its occurrences in one life, or at the first alone.

    ``only`` names the steps, "" all that there are.
    """
    names = [step.__name__ for step in STEPS if step.__name__ not in UNUSED]
    names = [name for name in names if not only or name in only.split("+")]
    counts = {name: (1,) if once else OCCURRENCES.get(name, (1, 2, 5)) for name in names}
    return tuple(Point(name, when, n) for name in names for when in ("before", "after") for n in counts[name])


SHORT = tuple(map(Point.read, ("Claim:after:2", "Start:after:1", "Answer:after:2", "Sending:after:2")))


def plan_of(args: argparse.Namespace) -> Plan:
    if args.variant:
        return Plan((), args.kills if args.kills is not None else 8, 0, args.variant, args.life)
    if args.short:
        return Plan(SHORT, 2, 1)
    kills = args.kills if args.kills is not None else (20 if args.quick else 200)
    if args.points_only:
        kills = 0
    return Plan(() if args.kills_only else points(args.steps, once=args.quick), kills, 1 if args.quick else 3)


def report(run: Run, verdict: Verdict, seconds: float) -> None:
    print(f"\nkills at steps: {sum(run.reached.values())}, at random: {run.random_kills}", end="")
    print(f" ({run.starting_kills} of them while starting), SIGTERM: {run.plan.stops}, {seconds:.0f} s")
    for name in sorted(run.reached):
        print(f"  {name:<24} {run.reached[name]}")
    if run.missed:
        print(f"points that the load did not reach in {REACH_SECONDS:.0f} s: {', '.join(sorted(run.missed))}")
    if run.plan.points:
        print(f"steps that no run comes to: {', '.join(UNUSED)}")
    for name, count in sorted(verdict.counts.items()):
        print(f"{name}: {count}")
    print(f"the slowest end of what a daemon left behind: {run.slowest_end:.2f} s")
    print(f"breaches: {len(verdict.breaches)}")
    for kind, count in Counter(breach.partition(":")[0] for breach in verdict.breaches).items():
        print(f"  {count} times: {kind}")
    for breach in verdict.breaches[:SHOWN_BREACHES]:
        print(f"  {breach}")


async def crash(args: argparse.Namespace, folder: Path) -> int:
    begin = time.monotonic()
    async with place(folder) as here:
        run = Run(plan_of(args), here, random.Random(args.seed))
        try:
            verdict = await run.go()
        finally:
            await run.daemon.kill()
            offspring.end(await run.daemon.left())
    report(run, verdict, time.monotonic() - begin)
    return 1 if verdict.breaches else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.main", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, help="at random; 200 by default")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--quick", action="store_true", help="each point once and 20 kills: two minutes")
    parser.add_argument("--short", action="store_true", help="a handful, for make test")
    parser.add_argument("--points-only", action="store_true")
    parser.add_argument("--kills-only", action="store_true")
    parser.add_argument("--steps", default="", help="kill at these alone; several with +")
    parser.add_argument(
        "--variant", type=broken.read, default=(), help="a daemon that is wrong on purpose; several with +"
    )
    parser.add_argument(
        "--life", type=float, default=0.0, help="least seconds to each kill of a wrong daemon"
    )
    parser.add_argument("--keep", action="store_true", help="keep the home and the log, and say where")
    args = parser.parse_args()
    wrong = f", wrong: {', '.join(args.variant)}" if args.variant else ""
    print(f"seed {args.seed}{wrong}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="tb-crash-"))
    code = 1
    try:
        code = asyncio.run(crash(args, folder))
    finally:
        if args.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
