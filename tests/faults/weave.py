"""One account under interleavings that a seed draws: who runs first, what fails, when it is started anew.

People write, edit and take back, a platform repeats what it has no answer for, the store refuses, the session
server hangs up, sends fail or leave their outcome open, and the account is replaced while all of it goes on;
then nothing fails any more, and everything must drain.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bridge.channel import (
    Answer,
    Delivered,
    Edited,
    Item,
    OutboundPart,
    OutcomeUnknownError,
    Recalled,
    SendOutcome,
    UnreachableError,
)
from bridge.errors import StoreError
from bridge.health import Snapshot, State
from bridge.plans import Served
from bridge.relay.account import Account
from bridge.store.contract import OpenMessages, OpenParts, Step, Store
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from bridge.supervisor import Plan, Supervisor
from tests.faults.seat import AGAIN_SECONDS
from tests.relay.harness import NAME, OWNER, PushedChannel, homes, message, request, setup_for
from tests.relay.scripted import Frame, HangupError, Peer, ScriptedServer, answer, scripted
from tests.store.around import Around
from tests.virtual import LoopClock, VirtualLoop, virtually

PEOPLE, MESSAGES = 3, 4
CHAOS_SECONDS, DRAIN_SECONDS = 40.0, 3600.0
CHANGES, CHANGE_SECONDS = 0.4, 6.0  # the share of messages that are edited or recalled, and how soon
EDITED = " edited"
FAULTS = 0.15  # the share of steps, turns and sends that fail while there is chaos

Wrap = Callable[[Store], Store]


@dataclass
class Weave:
    """What a seed brought: the order of tasks, and what was wrong at the end."""

    seed: int
    steps: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)
    restarts: int = 0
    faults: int = 0


class Chaos:
    """Says what fails; nothing does once it is over."""

    def __init__(self, rng: Random, weave: Weave) -> None:
        self.rng, self.weave, self.over = rng, weave, False

    def strikes(self) -> bool:
        struck = not self.over and self.rng.random() < FAULTS
        self.weave.faults += struck
        return struck


class Shown(PushedChannel):
    """A platform that shows a part once per client id, and takes its time."""

    def __init__(self, chaos: Chaos) -> None:
        super().__init__()
        self._chaos = chaos
        self.shown: dict[str, OutboundPart] = {}

    async def send(self, part: OutboundPart) -> SendOutcome:
        await asyncio.sleep(self._chaos.rng.uniform(0, 2))
        if self._chaos.strikes():
            raise UnreachableError("busy")
        self.shown.setdefault(part.client_id, part)
        if self._chaos.strikes():
            raise OutcomeUnknownError("no answer")
        return Delivered(part.client_id)


class Refusing(Around):
    """A store whose steps fail by chance, before they do anything."""

    def __init__(self, store: Store, chaos: Chaos) -> None:
        super().__init__(store)
        self._chaos = chaos

    async def do(self, step: Step[Any]) -> Any:
        if self._chaos.strikes():
            raise StoreError("the disk is full")
        return await self._store.do(step)


def weave(seed: int, wrap: Wrap = lambda store: store) -> Weave:
    """Run ``seed``; ``wrap`` may break the store, to see whether that is noticed."""
    result = Weave(seed)

    async def work(loop: VirtualLoop) -> Weave:
        chaos = Chaos(Random(f"{seed}/chaos"), result)
        async with (
            homes() as home,
            open_store(home.db, workers=InlineWorker) as store,
            scripted(socket=home.socket, turn=_turns(chaos)) as server,
        ):
            world = _World(LoopClock(loop), chaos, server, store, Shown(chaos))
            refusing: Any = Refusing(wrap(store), chaos)
            setup = setup_for(home, refusing, world.clock, world.channel)  # type: ignore[arg-type]  # any clock
            await world.live(lambda: Served(Account(setup), setup), result)
            result.breaches += await world.judged()
        result.steps = list(loop.steps)
        return result

    return virtually(work, Random(seed))


def _turns(chaos: Chaos) -> Callable[[Peer, Frame], Any]:
    async def turn(peer: Peer, start: Frame) -> None:
        await asyncio.sleep(chaos.rng.uniform(0, 5))
        if chaos.strikes():
            raise HangupError
        await answer(peer, start)

    return turn


@dataclass
class _World:
    clock: LoopClock
    chaos: Chaos
    server: ScriptedServer
    store: Store
    channel: Shown
    served: Served | None = None
    accepted: list[str] = field(default_factory=list)
    recalled: set[str] = field(default_factory=set)

    async def live(self, build: Callable[[], Served], result: Weave) -> None:
        supervisor = Supervisor(self.clock, self.chaos.rng)
        async with supervisor.running():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._replace(supervisor, build, result), name="replace")
                for person in range(PEOPLE):
                    tasks.create_task(self._write(f"u{person}" if person else OWNER), name=f"writer {person}")
            self.chaos.over = True
            until = self.clock.monotonic() + DRAIN_SECONDS
            while self.clock.monotonic() < until and not await self._is_drained():
                await asyncio.sleep(1)

    async def _replace(self, supervisor: Supervisor, build: Callable[[], Served], result: Weave) -> None:
        for key in range(self.chaos.rng.randint(1, 4)):
            self.served = build()
            served, first = self.served, Snapshot(NAME, "test", "a", State.STARTING, self.clock.now())
            await supervisor.reconcile([Plan(first, key, lambda served=served: served)])  # type: ignore[misc]  # bound now
            result.restarts = key
            await asyncio.sleep(self.chaos.rng.uniform(1, CHAOS_SECONDS / 3))

    async def _write(self, person: str) -> None:
        """One message after the other, each pushed until it is taken, and sometimes twice at once."""
        for number in range(MESSAGES):
            await asyncio.sleep(self.chaos.rng.uniform(0, CHAOS_SECONDS / MESSAGES))
            id_ = f"{person}-{number}"
            self.channel.items[id_] = (message(id_, id_, person),)
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self.chaos.rng.choice((1, 1, 2))):
                    tasks.create_task(self._push(id_), name=f"push {id_}")
                if self.chaos.rng.random() < CHANGES:
                    tasks.create_task(self._change(id_, person), name=f"change {id_}")
            self.accepted.append(id_)

    async def _change(self, id_: str, person: str) -> None:
        """The platform tells of an edit or a recall, about when the message comes or its turn begins."""
        await asyncio.sleep(self.chaos.rng.uniform(0, CHANGE_SECONDS))
        if self.chaos.rng.random() < 0.5:
            self.recalled.add(id_)
            change: Item = Recalled(id_, person)
        else:
            change = Edited(message(id_, id_ + EDITED, person), 1)
        self.channel.items[f"{id_} changed"] = (change,)
        await self._push(f"{id_} changed")

    async def _push(self, id_: str) -> None:
        while True:
            with suppress(StoreError):
                body = request(id_.encode(), clock=self.clock)  # type: ignore[arg-type]  # any clock
                found = await self.served.handle(body) if self.served is not None else None
                if isinstance(found, Answer) and found.status == 200:
                    return
            await asyncio.sleep(AGAIN_SECONDS / 10)

    async def _is_drained(self) -> bool:
        messages = await self.store.get(OpenMessages(NAME))
        parts = await self.store.get(OpenParts(NAME))
        return not messages and not parts

    async def judged(self) -> list[str]:
        turns = Counter(frame["prompt"].removesuffix(EDITED) for frame in self.server.frames("turn.start"))
        shown = list(self.channel.shown.values())
        replies = Counter(part.reply_to for part in shown)
        wrong = [f"{id_}: {count} turns" for id_, count in turns.items() if count > 1]
        wrong += [
            f"{id_}: {replies[id_]} replies"
            for id_ in self.accepted
            if replies[id_] != 1 and not (id_ in self.recalled and not replies[id_])
        ]
        if not await self._is_drained():
            wrong.append("something is still open")
        for person in {id_.rpartition("-")[0] for id_ in self.accepted}:
            echoes = [part.text for part in shown if part.text.startswith(f"echo: {person}-")]
            if echoes != sorted(echoes):
                wrong.append(f"{person}: out of order: {echoes}")
        return wrong
