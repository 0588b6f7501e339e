"""Faults at random, one after the other, and the status held against the truth all the while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random

from bridge.channel.transport import http_session
from bridge.health import State
from bridge.relay.contact import PROBE_SECONDS
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from bridge.supervisor import PARKED_SECONDS
from tests.faults.seat import AGAIN_SECONDS, LOOK_SECONDS, Seat, seat
from tests.faults.wire import ASKED_SECONDS, Trouble
from tests.relay.harness import homes
from tests.relay.scripted import scripted
from tests.virtual import VirtualLoop, virtually

CHANNELS = ("feishu", "wechat_mp", "plainline", "webhook")
BACK_SECONDS = (
    60.0 + 30.0 + 5.0
)  # the longest wait, a try that hangs, and a login; after the next probe where
# only a send had failed: docs/operating.md
DRAIN_SECONDS = {"webhook": 86_400.0}  # a callback's tries are hours apart; within a day it is given up
PAUSE_SECONDS = (60.0, 900.0)  # between two messages to an account
SPENT_SECONDS = 300.0  # WeChat's: when no more tokens may be made for today
JUMPS = (-86_400.0, -3600.0, 3600.0, 86_400.0)


@dataclass
class Report:
    seed: int
    faults: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    slowest_back: dict[str, float] = field(default_factory=dict)
    breaches: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        total = sum(self.faults.values())
        return [
            f"seed {self.seed}: {total} faults, {self.messages} messages, {len(self.breaches)} breaches",
            *(f"  {kind}: {count}, back after at most {self.slowest_back.get(kind, 0.0):.0f} s"
              for kind, count in sorted(self.faults.items())),
            *(f"  BREACH {breach}" for breach in self.breaches),
        ]  # fmt: skip


def run(seed: int, faults: int, channels: Sequence[str] = CHANNELS) -> Report:
    """``faults`` faults, shared out among accounts of ``channels``, in virtual time."""
    report = Report(seed)

    async def work(loop: VirtualLoop) -> Report:
        async with AsyncExitStack() as stack:
            home = await stack.enter_async_context(homes())
            store = await stack.enter_async_context(open_store(home.db, workers=InlineWorker))
            await stack.enter_async_context(scripted(socket=home.socket))
            seats = []
            for channel in channels:
                http = await stack.enter_async_context(http_session())
                made = seat(channel, home, store, http, loop, Random(f"{seed}/{channel}"))
                seats.append(await stack.enter_async_context(made))

            def look_up(port: int) -> None:
                for one in seats:
                    one.wire.look_up(port)

            loop.lookup = look_up
            async with asyncio.TaskGroup() as tasks:
                for number, one in enumerate(seats):
                    share = faults // len(seats) + (number < faults % len(seats))
                    tasks.create_task(_suffer(one, share, report), name=f"{one.channel}/faults")
        return report

    return virtually(work)


async def _suffer(one: Seat, faults: int, report: Report) -> None:
    await _back(one, report, "start", BACK_SECONDS)
    async with asyncio.TaskGroup() as tasks:
        over = asyncio.Event()
        tasks.create_task(_talk(one, over), name=f"{one.channel}/talk")
        for _ in range(faults):
            await asyncio.sleep(one.rng.uniform(1, 400))
            await _one_fault(one, report)
        over.set()
    await _drained(one, report)


async def _talk(one: Seat, over: asyncio.Event) -> None:
    """Somebody writes now and then, until it is over and the last message was taken."""
    number = 0
    async with asyncio.TaskGroup() as tasks:
        while not over.is_set():
            await asyncio.sleep(one.rng.uniform(*PAUSE_SECONDS))
            number += 1
            tasks.create_task(one.say(f"message {number} to {one.channel}"))


async def _one_fault(one: Seat, report: Report) -> None:
    trouble, seconds = one.rng.choice(list(Trouble)), one.rng.uniform(5, 1500)
    report.faults[trouble] = report.faults.get(trouble, 0) + 1
    jump = one.rng.choice(JUMPS) if trouble is Trouble.CLOCK else 0.0
    one.clock.jump(jump)
    if trouble is Trouble.DNS:
        one.forget_names()
    began = one.clock.monotonic()
    await one.wire.begin(trouble)
    while one.clock.monotonic() < began + seconds:
        await asyncio.sleep(LOOK_SECONDS)
        lasted = one.clock.monotonic() - began
        if one.is_wrong(trouble, began):
            report.breaches.append(f"{one.channel}: connected {lasted:.0f} s into {trouble}")
            break
    one.clock.jump(-jump)
    await one.wire.end()
    longest = PARKED_SECONDS[-1] if one.state is State.FAILED else 0.0
    asked = ASKED_SECONDS if trouble is Trouble.BUSY else 0.0
    spent = SPENT_SECONDS if trouble is Trouble.UNAUTHORIZED else 0.0
    await _back(one, report, trouble, _next_try(one) + BACK_SECONDS + longest + asked + spent)


def _next_try(one: Seat) -> float:
    """When something is sent to the platform next, at the latest: to a callback the next reply to anybody."""
    return PAUSE_SECONDS[1] + AGAIN_SECONDS if one.channel == "webhook" else PROBE_SECONDS


async def _back(one: Seat, report: Report, after: str, seconds: float) -> None:
    began = one.clock.monotonic()
    while one.state is not State.CONNECTED:
        if one.clock.monotonic() - began > seconds:
            snapshot = one.snapshot
            told = f"{one.channel}: {seconds:.0f} s after {after}: {snapshot.state}, {snapshot.reason}"
            report.breaches.append(told)
            return
        await asyncio.sleep(0.5)
    took = one.clock.monotonic() - began
    report.slowest_back[after] = max(report.slowest_back.get(after, 0.0), took)


async def _drained(one: Seat, report: Report) -> None:
    """Every message is answered, reported or a dead letter, and no answer comes twice without its mark."""
    until = one.clock.monotonic() + DRAIN_SECONDS.get(one.channel, 7200.0)
    while one.unanswered() and one.clock.monotonic() < until:
        await asyncio.sleep(LOOK_SECONDS)
    report.messages += len(one.said)
    if len(one.unanswered()) > await one.given_up() + one.reported():
        report.breaches += [f"{one.channel}: not answered: {text}" for text in one.unanswered()]
    twice = [text for text, count in one.answers().items() if count > 1]
    report.breaches += [f"{one.channel}: answered twice: {text}" for text in twice]
