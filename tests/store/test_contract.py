"""Random steps, one after the other and many at once, against a model in dictionaries."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.errors import StoreError
from bridge.ids import ConversationKey, MessageId, PartId, SessionId, TurnId
from bridge.store.contract import (
    BeginTurn,
    BindSession,
    Claim,
    ClearSession,
    Collect,
    CountsOf,
    Edit,
    EndTurn,
    Hold,
    Later,
    LoadSession,
    Mark,
    MessageState,
    NewMessage,
    OpenSession,
    PartState,
    Post,
    Prune,
    Recall,
    ReserveSeq,
    Sending,
    SessionOf,
    SessionRecord,
    Settle,
    Start,
    Step,
    Store,
    UnbindSession,
)
from tests.store.backends import BACKENDS
from tests.store.model import Model
from tests.store.session_model import SessionModel
from tests.store.values import ACCOUNT, CHAT, SESSION, answer, message, open_ids, open_parts, reply, text

ids = st.sampled_from("abcd").map(MessageId)
part_ids = st.integers(1, 12).map(PartId)
ends = st.sampled_from([PartState.SENT, PartState.UNKNOWN, PartState.REFUSED, PartState.EXPIRED])
replies = st.integers(1, 3).map(lambda count: reply(*map(text, "xyz"[:count])))


@st.composite
def messages(draw: st.DrawFn) -> NewMessage:
    state = draw(st.sampled_from([MessageState.SEEN, MessageState.CLAIMED, MessageState.ANSWERED]))
    answered = draw(replies) if state is MessageState.ANSWERED else None
    redelivery, digest = draw(st.sampled_from(["", "1", "2"])), draw(st.sampled_from(["", "1", "2"]))
    return message(draw(ids), state, redelivery=redelivery, digest=digest, reply=answered)


steps: st.SearchStrategy[Step[object]] = st.one_of(
    st.lists(messages(), min_size=1, max_size=4).map(lambda some: Claim(ACCOUNT, tuple(some), 1000)),
    st.builds(lambda one: Claim(ACCOUNT, (message(one),), 1000), ids),
    st.builds(Start, st.just(ACCOUNT), ids, st.just(SESSION), st.just(1500), st.sampled_from([0, 0, 1])),
    st.builds(Recall, st.just(ACCOUNT), ids, st.sampled_from([CHAT, None]), st.just(1600)),
    st.builds(Edit, st.just(ACCOUNT), ids, st.just(CHAT), st.just("{}"), st.integers(0, 2)),
    st.builds(answer, ids, st.none() | replies),
    st.builds(Post, st.just(ACCOUNT), replies, st.just(2000)),
    st.builds(Sending, part_ids, st.just(3000)),
    st.builds(Later, part_ids, st.just(9000), st.booleans()),
    st.builds(Mark, part_ids, st.just("second"), st.just(4000)),
    st.builds(Settle, part_ids, ends, st.just(4000)),
    st.builds(Hold, part_ids, ends, st.just("lost"), st.just(4000)),
    st.builds(Collect, st.just(ACCOUNT), st.integers(0, 12), st.just(4000)),
)

names = st.sampled_from("xy").map(SessionId)
chats = st.sampled_from("rs").map(ConversationKey)
turns = st.sampled_from("tu").map(TurnId)
times = st.integers(1, 9)
bindings = st.builds(BindSession, st.just(ACCOUNT), chats, names, st.sampled_from(["owner", "none"]), times)
records = st.builds(SessionRecord, names, st.just("/"), st.just("{}"), st.integers(1, 99))
entries = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)
session_steps: st.SearchStrategy[Step[object]] = st.one_of(
    bindings,
    bindings,
    st.builds(UnbindSession, st.just(ACCOUNT), chats),
    st.builds(OpenSession, records, times),
    st.builds(OpenSession, records, times),
    st.builds(BeginTurn, names, turns, ids, st.integers(1, 99), times),
    st.builds(
        EndTurn, names, turns, entries.map(lambda some: tuple(one.encode() for one in some)), entries,
        st.integers(1, 99), times, st.integers(0, 2), st.sampled_from(["", "note"]),
    ),
    st.builds(ClearSession, names, st.integers(1, 99)),
    st.builds(ReserveSeq, names, st.integers(1, 99), st.integers(0, 9)),
    st.builds(answer, ids, st.none(), times),
    st.builds(Prune, times, st.just(0)),
    st.builds(Prune, times, st.just(0)),
)  # fmt: skip


@st.composite
def running(draw: st.DrawFn) -> list[Step[object]]:
    """A message that comes and runs on a session."""
    one, at_ms = draw(ids), draw(times)
    return [Claim(ACCOUNT, (message(one),), at_ms), Start(ACCOUNT, one, draw(names), at_ms)]


async def outcome(store: Store, step: Step[object]) -> object:
    """The step's result; None for a step on a part that does not exist."""
    try:
        return await store.do(step)
    except StoreError as error:
        return None if "no such part" in str(error) else error


async def agree(store: Store, model: Model) -> None:
    assert await open_ids(store) == model.waiting()
    stored = [
        (part.part_id, part.message_id, part.state, part.attempts, part.marked)
        for part in await open_parts(store)
    ]
    assert stored == [(one.part_id, one.message, one.state, one.attempts, one.marked) for one in model.open()]
    counts = await store.get(CountsOf(ACCOUNT))
    assert (counts.waiting, counts.open_parts) == (len(model.waiting()), len(model.open()))
    assert counts.dead == model.dead()


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=60, deadline=None)
@given(taken=st.lists(steps, max_size=25))
async def test_steps_do_what_the_model_says(backend: str, taken: list[Step[object]]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        async with BACKENDS[backend](Path(folder)) as store:
            for step in taken:
                assert await outcome(store, step) == model.take(step)
            await agree(store, model)
        async with BACKENDS[backend](Path(folder)) as store:
            await agree(store, model)


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=60, deadline=None)
@given(taken=st.lists(steps, max_size=40))
async def test_steps_that_wait_together_are_taken_in_their_order(
    backend: str, taken: list[Step[object]]
) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        async with BACKENDS[backend](Path(folder)) as store:
            async with asyncio.TaskGroup() as tasks:
                waiting = [tasks.create_task(outcome(store, step)) for step in taken]
            assert [task.result() for task in waiting] == [model.take(step) for step in taken]
            await agree(store, model)


async def agree_on_sessions(store: Store, model: SessionModel) -> None:
    for name in map(SessionId, "xy"):
        told = model.sessions[name].told() if name in model.sessions else None
        assert await store.get(LoadSession(name)) == told
    for chat in map(ConversationKey, "rs"):
        assert await store.get(SessionOf(ACCOUNT, chat)) == model.bound(chat)


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=100, deadline=None)
@given(drawn=st.lists(session_steps.map(lambda step: [step]) | running(), min_size=10, max_size=40))
async def test_steps_with_sessions_do_what_the_model_says(
    backend: str, drawn: list[list[Step[object]]]
) -> None:
    model, taken = SessionModel(), [step for steps in drawn for step in steps]
    with tempfile.TemporaryDirectory() as folder:
        async with BACKENDS[backend](Path(folder)) as store:
            for step in taken:
                assert isinstance(await outcome(store, step), StoreError) != model.take(step)
            await agree_on_sessions(store, model)
        async with BACKENDS[backend](Path(folder)) as store:
            await agree_on_sessions(store, model)
