import asyncio

import pytest

from bridge.channel import Inbound
from bridge.channel.testing.clock import FakeClock, settle
from bridge.config import LimitsTable
from bridge.ids import ConversationKey
from bridge.relay.limits import Excess, Limit, SenderLimits
from bridge.relay.payload import conversation_of
from bridge.relay.room import NOTICES_KEPT, ClaimRoom, Slots

A, B = ConversationKey("a"), ConversationKey("b")


def room(**limits: int) -> tuple[ClaimRoom, FakeClock]:
    clock = FakeClock()
    return ClaimRoom(LimitsTable.model_validate(limits), clock), clock


def test_a_conversation_holds_its_own_limit() -> None:
    full, _ = room(conversation_claims=2)
    full.take(A)
    full.take(A)
    assert not full.admits(A, owner=True)
    assert full.admits(B, owner=False)
    full.give_back(A)
    assert full.admits(A, owner=False)


def test_strangers_cannot_take_the_owner_s_share_of_claims() -> None:
    full, _ = room(account_claims=3, owner_claims=1)
    full.take(A)
    full.take(B)
    assert not full.admits(A, owner=False)
    assert full.admits(A, owner=True)


def test_strangers_cannot_take_the_owner_s_conversation() -> None:
    full, _ = room(sessions=2, owner_sessions=1)
    full.take(A)
    assert full.admits(A, owner=False)
    assert not full.admits(B, owner=False)
    assert full.admits(B, owner=True)


def test_one_notice_a_conversation_and_minute() -> None:
    full, clock = room()
    assert full.notice_due(A)
    full.noticed(A)
    assert not full.notice_due(A)
    assert full.notice_due(B)
    asyncio.run(clock.advance(60))
    assert full.notice_due(A)


def test_notices_of_a_flood_of_conversations_do_not_grow_for_ever() -> None:
    full, _ = room()
    for n in range(NOTICES_KEPT + 5):
        full.noticed(ConversationKey(str(n)))
    assert full.notice_due(ConversationKey("0"))
    assert not full.notice_due(ConversationKey(str(NOTICES_KEPT)))


class Queue:
    """Tasks that hold a slot until told otherwise."""

    def __init__(self, slots: Slots, tasks: asyncio.TaskGroup) -> None:
        self._slots, self._tasks = slots, tasks
        self.running: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def enter(self, name: str, *, owner: bool = False) -> None:
        self.gates[name] = asyncio.Event()
        self.tasks[name] = self._tasks.create_task(self._hold(name, owner))
        await settle()

    async def leave(self, name: str) -> None:
        self.gates[name].set()
        await settle()

    async def _hold(self, name: str, owner: bool) -> None:
        async with self._slots.take(owner):
            self.running.append(name)
            await self.gates[name].wait()


async def test_the_last_slot_waits_for_the_owner() -> None:
    async with asyncio.TaskGroup() as tasks:
        queue = Queue(Slots(2, 1), tasks)
        await queue.enter("s1")
        await queue.enter("s2")
        assert queue.running == ["s1"]
        await queue.enter("owner", owner=True)
        assert queue.running == ["s1", "owner"]
        for name in ("s1", "owner", "s2"):
            await queue.leave(name)
        assert queue.running == ["s1", "owner", "s2"]


async def test_the_owner_is_first_in_line() -> None:
    async with asyncio.TaskGroup() as tasks:
        queue = Queue(Slots(1, 0), tasks)
        for name in ("s1", "s2"):
            await queue.enter(name)
        await queue.enter("owner", owner=True)
        await queue.leave("s1")
        assert queue.running == ["s1", "owner"]
        for name in ("owner", "s2"):
            await queue.leave(name)


@pytest.mark.parametrize("who", ["s1", "s2", "s3"])
async def test_cancelling_a_holder_or_a_waiter_loses_no_slot(who: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        queue = Queue(Slots(2, 0), tasks)
        for name in ("s1", "s2", "s3"):
            await queue.enter(name)
        queue.tasks[who].cancel()
        await settle()
        for name in ("s1", "s2", "s3"):
            await queue.leave(name)
        await queue.enter("s4")
        await queue.enter("s5")
        assert queue.running[-2:] == ["s4", "s5"]
        await queue.leave("s4")
        await queue.leave("s5")


def test_a_conversation_with_several_claims_keeps_its_place_until_the_last_is_over() -> None:
    full, _ = room(sessions=1, owner_sessions=0)
    full.take(A)
    full.take(A)
    full.give_back(A)
    assert not full.admits(B, owner=False)
    full.give_back(A)
    assert full.admits(B, owner=False)


async def test_an_error_inside_gives_the_slot_back() -> None:
    slots = Slots(1, 1)
    for _ in range(3):
        with pytest.raises(ValueError, match="inside"):
            async with slots.take(owner=False):
                raise ValueError("inside")


def test_a_notice_that_did_not_come_about_is_due_again() -> None:
    full, _ = room()
    full.noticed(A)
    assert not full.notice_due(A)
    full.not_noticed(A)
    full.not_noticed(B)
    assert full.notice_due(A)


def test_a_room_knows_what_its_senders_have_used_up() -> None:
    clock = FakeClock()
    key = conversation_of(Inbound("m1", "u1", "c1", "to"))
    full = ClaimRoom(LimitsTable(), clock, SenderLimits(0, 1, "", clock))
    assert full.over(key) is None
    full.senders.take(key, turn=True)
    assert full.over(key) == Excess(Limit.DAY, tell=True)
    assert ClaimRoom(LimitsTable(), clock).over(key) is None
