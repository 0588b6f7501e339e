"""A lane by itself; ``test_delivery`` shows it at work."""

import asyncio
from math import inf

import pytest

from bridge.channel.testing.clock import FakeClock, settle
from bridge.ids import AccountId, ConversationKey, MessageId, PartId
from bridge.relay import lane as lanes
from bridge.relay import outbox
from bridge.relay.lane import Entry, Lane, Waits
from bridge.relay.outbox import Address
from bridge.relay.texts import Language
from bridge.store.contract import OutboxPart


def part(number: int, message_id: str, reply_id: str = "r") -> OutboxPart:
    reply = outbox.notice("hi", Address(ConversationKey("c"), "to", "", Language.EN))
    (stored,) = outbox.stored_parts(
        AccountId("a:b"), MessageId(message_id), reply, (PartId(number),), 0, "busy"
    )
    assert stored.notice == "busy"
    return OutboxPart(**{name: getattr(stored, name) for name in stored.__slots__} | {"reply_id": reply_id})


def lane_of(*parts: OutboxPart) -> Lane:
    lane = Lane("to")
    lane.entries.extend(Entry(one, 0.0, 1.0, 0.0) for one in parts)
    return lane


def ids(lane: Lane) -> list[int]:
    return [entry.part.part_id for entry in lane.entries]


def test_a_reply_leaves_its_lane_whole_and_no_other_part_with_it() -> None:
    lane = lane_of(part(1, "m", "r"), part(2, "m", "r"), part(3, "n", "s"))
    assert [one.part_id for one in lane.rest_of_reply(lane.head.part)] == [1, 2]
    lane.take_off_reply("r")
    assert ids(lane) == [3]
    lane.take_off_reply("s")
    lane.take_off_reply("s")
    assert ids(lane) == []


def test_a_part_is_in_its_lane_or_not() -> None:
    lane = lane_of(part(1, "m"), part(3, "n"))
    assert [lane.holds(part(number, "m").part_id) for number in range(1, 5)] == [True, False, True, False]
    assert not lane_of().holds(part(1, "m").part_id)


def test_the_head_is_taken_off() -> None:
    lane = lane_of(part(1, "m"), part(2, "m"))
    lane.take_off()
    assert ids(lane) == [2]


def test_dropped_parts_leave_but_for_the_head_which_may_be_on_its_way() -> None:
    lane = lane_of(part(1, "m"), part(2, "m"), part(3, "n"), part(4, "m"))
    assert lane.drop(lambda one: one.message_id == "m") is True
    assert ids(lane) == [1, 3]
    assert (lane.head.dropped, lane.entries[1].dropped) == (True, False)
    assert lane.drop(lambda one: one.message_id == "n") is True, "the head still is"
    assert ids(lane) == [1]


def test_dropping_others_says_that_the_head_goes_on() -> None:
    lane = lane_of(part(1, "m"), part(2, "n"))
    assert lane.drop(lambda one: one.message_id == "n") is False
    assert ids(lane) == [1]
    assert lane_of().drop(lambda one: True) is False


async def test_a_pause_ends_when_it_is_over_or_stirred() -> None:
    lane, clock = lane_of(part(1, "m")), FakeClock()
    lane.stir()
    async with asyncio.TaskGroup() as tasks:
        pausing = tasks.create_task(lane.pause(5, clock))
        await settle()
        assert not pausing.done(), "what stirred it before is over"
        lane.stir()
        await settle()
        assert pausing.done()
        again = tasks.create_task(lane.pause(5, clock))
        await settle()
        await clock.advance(5)
        assert again.done()


def test_the_wait_of_a_recipient_is_kept_until_it_is_over_and_of_too_many_the_shortest_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "MOST_WAITS", 2)
    waits = Waits()
    for to, free_at in (("over", 5.0), ("short", 6.0), ("long", 9.0), ("longer", 10.0)):
        waits.keep(Lane(to, free_at), now=5.0)
    found = {to: waits.take(to) for to in ("over", "short", "long", "longer")}
    assert found == {"over": -inf, "short": -inf, "long": 9.0, "longer": 10.0}
    assert waits.take("long") == -inf
