"""How work on a message ends early; ``test_changes`` shows what for."""

import asyncio
from typing import Any, cast

import pytest

from bridge.channel.testing.clock import settle
from bridge.errors import SessionError
from bridge.ids import MessageId, SessionId
from bridge.relay import working
from bridge.relay.session import Session
from bridge.relay.work import Message
from bridge.relay.working import Working
from bridge.store.contract import MessageState
from tests.relay.harness import message


class FakeSession:
    """Notes cancels; ``error`` is what they end with."""

    def __init__(self, error: Exception | None = None) -> None:
        self.cancelled, self.error = 0, error

    async def cancel(self) -> None:
        self.cancelled += 1
        if self.error is not None:
            raise self.error


def work() -> Working:
    return Working(Message(MessageId("m1"), message("m1"), MessageState.CLAIMED, SessionId(""), 0))


async def waits(one: Working, gate: asyncio.Event, done: list[str]) -> None:
    async with one.going_on():
        await gate.wait()
        done.append("done")


async def test_work_that_nobody_stops_gets_done() -> None:
    one, gate, done = work(), asyncio.Event(), list[str]()
    gate.set()
    await waits(one, gate, done)
    assert done == ["done"]
    assert not one.left_a_turn
    assert one.stop() is False, "it is too late"


async def test_work_is_cut_before_its_turn_and_no_turn_begins_then() -> None:
    one, done = work(), list[str]()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(waits(one, asyncio.Event(), done))
        await settle()
        assert one.stop() is False
        assert one.stop() is False, "once more harms nothing"
        await settle()
        assert running.done()
    assert done == []
    assert one.begin_turn(cast(Session, FakeSession())) is False
    assert not one.left_a_turn


async def test_work_that_is_stopped_before_it_goes_on_is_cut_at_once() -> None:
    one, done = work(), list[str]()
    one.stop()
    await waits(one, asyncio.Event(), done)
    assert done == []


async def test_a_turn_is_ended_by_its_session() -> None:
    one, gate, done, session = work(), asyncio.Event(), list[str](), FakeSession()
    assert one.begin_turn(cast(Session, session)) is True
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waits(one, gate, done))
        await settle()
        assert one.stop() is True
        cancelling = tasks.create_task(one.cancel_turn())
        await settle()
        assert (session.cancelled, cancelling.done()) == (1, False)
        gate.set()
    assert done == ["done"]
    assert not one.left_a_turn


@pytest.mark.parametrize("error", [None, SessionError("gone")])
async def test_a_turn_that_does_not_end_is_left(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "CANCEL_SECONDS", 0.01)
    one, done = work(), list[str]()
    one.begin_turn(cast(Session, FakeSession(error)))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waits(one, asyncio.Event(), done))
        await settle()
        one.stop()
        await one.cancel_turn()
    assert done == []
    assert one.left_a_turn


async def test_a_cancel_without_a_turn_waits_for_the_end() -> None:
    one, gate, done = work(), asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waits(one, gate, done))
        await settle()
        tasks.create_task(one.cancel_turn())
        await settle()
        gate.set()
    assert done == ["done"]


async def test_a_time_limit_of_the_work_s_own_is_its_own() -> None:
    async def limited() -> None:
        async with work().going_on():
            raise TimeoutError

    with pytest.raises(TimeoutError):
        await limited()


def named(message_id: str) -> Message:
    return Message(MessageId(message_id), message(message_id), MessageState.CLAIMED, SessionId(""), 0)


def several(*message_ids: str) -> tuple[Working, list[Message]]:
    messages = [named(one) for one in message_ids]
    one = Working(messages[0])
    one.take(messages)
    return one, messages


async def test_several_messages_are_worked_on_as_one_and_one_that_changes_begins_it_anew_uncut() -> None:
    one, (first, _) = several("m1", "m2")
    assert one.message.inbound.text == "hello\n\nhello"
    assert one.has(first)
    assert not one.has(named("m1"))
    gate, done = asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waits(one, gate, done))
        await settle()
        one.redo()
        await settle()
        assert done == []
        gate.set()
    assert done == ["done"], "it is not cut"
    assert one.again
    assert one.begin_turn(cast(Session, FakeSession())) is False


async def test_a_message_alone_that_changes_is_cut_and_begun_anew() -> None:
    one, done = work(), list[str]()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waits(one, asyncio.Event(), done))
        await settle()
        one.redo()
    assert (done, one.again) == ([], True)


async def test_who_is_left_out_before_the_turn_begins_it_anew_and_later_does_not() -> None:
    one, (first, second, third) = several("m1", "m2", "m3")
    session = cast(Session, FakeSession())
    assert one.begin_turn(session) is True
    assert one.session is session
    one.leave_out(second)
    assert (one.members, one.again) == ([first, third], False)
    before, (other, _) = several("m1", "m2")
    before.leave_out(other)
    assert before.again is True
    assert before.begin_turn(session) is False


async def test_nothing_is_given_to_a_turn_that_is_over_or_ending_and_its_end_is_not_cut() -> None:
    one, gate, done = work(), asyncio.Event(), list[str]()
    one.begin_turn(cast(Session, FakeSession()))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(waits(one, gate, done))
        await settle()
        one.end_turn()
        assert one.session is None
        assert one.stop() is False
        await settle()
        gate.set()
    assert done == ["done"]
    stopping = work()
    stopping.begin_turn(cast(Session, FakeSession()))
    stopping.stop()
    assert stopping.session is None


async def test_cancelling_is_not_swallowed() -> None:
    one, done = work(), list[str]()
    async with asyncio.TaskGroup() as tasks:
        running: asyncio.Task[Any] = tasks.create_task(waits(one, asyncio.Event(), done))
        await settle()
        running.cancel()
    assert running.cancelled()


async def test_what_is_put_down_as_ended_is_not_cut_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(working, "CANCEL_SECONDS", 0.01)
    one, done = work(), list[str]()
    one.begin_turn(cast(Session, FakeSession()))
    async with one.going_on(), asyncio.TaskGroup() as tasks:
        assert one.stop()
        cancelling = tasks.create_task(one.cancel_turn())
        await settle()
        one.end_turn()
        await cancelling
        await settle()
        done.append("done")
    assert done == ["done"]
    assert not one.left_a_turn
