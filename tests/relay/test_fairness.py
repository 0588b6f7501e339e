"""A thousand recipients at once: one with much to be sent, one that stalls, one that is throttled."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from bridge.channel import Delivered, OutboundPart, SendOutcome, UnknownOutcome, UnreachableError
from bridge.channel.testing.clock import FakeClock, settle
from bridge.clock import unix_ms
from bridge.ids import ConversationKey, MessageId, PartId
from bridge.logs import get_logger
from bridge.relay import outbox
from bridge.relay.delivery import Delivery, Terms
from bridge.store.contract import NewPart, PartKind, Reply, Sending, Settle, Settled, Step, Store
from tests.relay.test_delivery import ACCOUNT, SPEC, FakeContact

AT_ONCE, LONG, ASKED_SECONDS = 64, 500, 37.0
OTHERS = [f"person{n}" for n in range(997)]


class Rounds:
    """A platform on which every send takes until the end of a round."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.under_way: Counter[str] = Counter()
        self.most = 0
        self.shown: list[tuple[str, str]] = []
        self.throttles = {"throttled": 2}
        self.throttled: list[float] = []

    async def send(self, part: OutboundPart) -> SendOutcome:
        self.under_way[part.to] += 1
        self.most = max(self.most, self.under_way.total())
        try:
            if part.to == "stalled":
                await asyncio.get_running_loop().create_future()
            await asyncio.shield(self._gate)
            if part.to in self.throttles and self.throttles[part.to] > 0:
                self.throttles[part.to] -= 1
                self.throttled.append(self._clock.monotonic())
                raise UnreachableError("too many requests", ASKED_SECONDS)
        finally:
            self.under_way[part.to] -= 1
        self.shown.append((part.to, part.text))
        return Delivered("p")

    async def end_round(self) -> None:
        gate, self._gate = self._gate, asyncio.get_running_loop().create_future()
        gate.set_result(None)
        await settle(20)

    def texts(self, to: str) -> list[str]:
        return [text for recipient, text in self.shown if recipient == to]


@dataclass
class Steps:
    """A store that takes every step at once: what is looked at here is who waits for whom."""

    taken: list[Step[Any]] = field(default_factory=list)

    async def do(self, step: Step[Any]) -> object:
        self.taken.append(step)
        match step:
            case Sending():
                return True
            case Settle():
                return Settled(True)
        return None


@dataclass
class Desk:
    clock: FakeClock
    platform: Rounds
    store: Steps
    delivery: Delivery
    count: int = 0

    def add(self, to: str, texts: Sequence[str]) -> None:
        """A reply of so many parts, numbered as the store would."""
        made = tuple(NewPart(PartKind.TEXT, text, outbox.new_client_id()) for text in texts)
        reply = Reply(f"reply to {to}", ConversationKey(to), to, "", made)
        ids = tuple(PartId(self.count + n) for n in range(1, len(made) + 1))
        self.count += len(made)
        now_ms = unix_ms(self.clock.now())
        self.delivery.add(outbox.stored_parts(ACCOUNT, MessageId(""), reply, ids, now_ms, ""))


@asynccontextmanager
async def desk(**lanes: Sequence[str]) -> AsyncIterator[Desk]:
    clock = FakeClock()
    platform, store = Rounds(clock), Steps()
    terms = Terms(SPEC, UnknownOutcome.RESEND, 86_400, AT_ONCE)
    delivery = Delivery(terms, cast(Store, store), clock, Random(7), get_logger("test"), lambda _: None)
    here = Desk(clock, platform, store, delivery)
    for to, texts in lanes.items():
        here.add(to, texts)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(delivery.run(platform, FakeContact()))
        await settle()
        yield here
        running.cancel()


def thousand() -> AbstractAsyncContextManager[Desk]:
    waiting = {"long": [f"{n}" for n in range(LONG)], "stalled": ["first", "second"]}
    return desk(**waiting, throttled=["first", "second"], **{to: [f"to {to}"] for to in OTHERS})


async def test_all_others_are_served_in_as_many_rounds_as_there_are_places_for_them() -> None:
    async with thousand() as here:
        platform, rounds = here.platform, 0
        while len({to for to, _ in platform.shown} & set(OTHERS)) < len(OTHERS):
            await platform.end_round()
            rounds += 1
        assert rounds <= 1 + (len(OTHERS) + 2) // (AT_ONCE - 1)  # one place is the stalled one's for ever
        assert platform.most <= AT_ONCE
        assert len(platform.texts("long")) <= rounds
        assert all(platform.texts(to) == [f"to {to}"] for to in OTHERS)


async def test_each_recipient_gets_its_own_in_order_and_a_stalled_one_holds_up_itself_alone() -> None:
    async with thousand() as here:
        for _ in range(LONG + 20):
            await here.platform.end_round()
        assert here.platform.texts("long") == [f"{n}" for n in range(LONG)]
        assert here.platform.texts("stalled") == []
        assert here.platform.under_way["stalled"] == 1  # the first alone


async def test_case_46_a_throttled_one_waits_as_long_as_asked_without_a_place_and_nothing_polls() -> None:
    async with thousand() as here:
        platform, clock = here.platform, here.clock
        for _ in range(LONG + 20):
            await platform.end_round()
        assert +platform.under_way == Counter(stalled=1)
        for tries in (1, 2):
            asleep, steps = clock.waits(), len(here.store.taken)
            assert len(asleep) == 1  # the throttled one: nobody else waits for a time
            assert asleep[0] >= ASKED_SECONDS
            await clock.advance(ASKED_SECONDS - 1)
            assert len(platform.throttled) == tries
            assert len(here.store.taken) == steps
            await clock.advance(asleep[0])
            for _ in range(2):
                await platform.end_round()
        first, second = platform.throttled
        assert second - first >= ASKED_SECONDS
        assert platform.texts("throttled") == ["first", "second"]
        assert clock.waits() == []


async def test_more_throttled_ones_than_there_are_places_keep_none_from_the_next() -> None:
    throttled = {f"throttled{n}": ["first"] for n in range(2 * AT_ONCE)}
    async with desk(**throttled) as here:
        here.platform.throttles = dict.fromkeys(throttled, 1)
        for _ in range(3):
            await here.platform.end_round()
        assert len(here.clock.waits()) == len(throttled)
        here.add("other", ["now"])
        for _ in range(2):
            await here.platform.end_round()
        assert here.platform.shown == [("other", "now")]
        await here.clock.advance(ASKED_SECONDS * 3)
        for _ in range(3):
            await here.platform.end_round()
        assert len(here.platform.shown) == len(throttled) + 1


async def test_a_thousand_lanes_take_little_time() -> None:
    started = time.process_time()
    async with thousand() as here:
        for _ in range(20):
            await here.platform.end_round()
    assert time.process_time() - started < 5
