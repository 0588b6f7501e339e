import asyncio
from pathlib import Path

import pytest

from bridge.agents.contract import AgentError, HistoryEntry, Role, ToolCall
from bridge.agents.estimate import entry_tokens
from bridge.channel.testing.clock import FakeClock, settle
from bridge.config import SessionsTable
from bridge.ids import SessionId, TurnId
from bridge.protocol.events import AssistantCompleted
from bridge.sessions import scope as scope_module
from bridge.sessions.approvals import Approvals
from bridge.sessions.context import Context, SessionSettings
from bridge.sessions.contract import Services
from bridge.sessions.history import History, encode
from bridge.sessions.outbound import Numbered, Outbound
from bridge.sessions.scope import TurnScope, Work, whole
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from tests.sessions.wire import DaemonControl, ScriptedAgent, agents_of, no_tools


async def test_a_turn_sends_under_its_own_ids_until_it_is_closed(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db", workers=InlineWorker) as store:
        outbound = Outbound()
        events = Numbered(outbound, store, SessionId("s"), last=4, reserved=100)
        services = Services(
            agents_of(ScriptedAgent()), no_tools, store, FakeClock(), DaemonControl(), SessionsTable()
        )
        context = Context(
            services, SessionId("s"), tmp_path, SessionSettings(), {}, History(), events, Approvals()
        )
        scope = TurnScope(context, Work(TurnId("t"), "r", "prompt", ()))
        sent = await scope.send(AssistantCompleted, content="x")
        assert (sent.request_id, sent.session_id, sent.turn_id, sent.seq) == ("r", "s", "t", 5)
        with pytest.raises(AgentError) as error:
            await scope.send(AssistantCompleted, content="x" * 9_000_000)
        assert error.value.code == "response_limit"
        scope.check()
        scope.stop()
        with pytest.raises(AgentError):
            scope.check()
        await scope.send(AssistantCompleted, content="last words")
        scope.close()
        with pytest.raises(AgentError):
            await scope.send(AssistantCompleted, content="late")
        assert events.last == 6


async def test_what_waits_for_room_when_the_turn_ends_is_not_sent_behind_its_end(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db", workers=InlineWorker) as store:
        outbound = Outbound()
        events = Numbered(outbound, store, SessionId("s"), last=0, reserved=10_000)
        services = Services(
            agents_of(ScriptedAgent()), no_tools, store, FakeClock(), DaemonControl(), SessionsTable()
        )
        context = Context(
            services, SessionId("s"), tmp_path, SessionSettings(), {}, History(), events, Approvals()
        )
        scope = TurnScope(context, Work(TurnId("t"), "r", "prompt", ()))
        while outbound.has_room(1000):
            await scope.send(AssistantCompleted, content="x")
        last = events.last
        async with asyncio.TaskGroup() as tasks:
            late = tasks.create_task(refused(scope))
            await settle()
            assert not late.done()
            scope.close()
            outbound.mute()  # there is room again
        assert late.result()
        assert events.last == last


async def refused(scope: TurnScope) -> bool:
    with pytest.raises(AgentError):
        await scope.send(AssistantCompleted, content="late")
    return True


async def test_more_than_can_be_stored_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(tmp_path / "s.db", workers=InlineWorker) as store:
        events = Numbered(Outbound(), store, SessionId("s"), last=0, reserved=10_000)
        services = Services(
            agents_of(ScriptedAgent()), no_tools, store, FakeClock(), DaemonControl(), SessionsTable()
        )
        context = Context(
            services, SessionId("s"), tmp_path, SessionSettings(), {}, History(), events, Approvals()
        )
        turn = TurnScope(context, Work(TurnId("t"), "r", "prompt", ()))
        entry = HistoryEntry(role=Role.ASSISTANT, text="é" * 5)
        monkeypatch.setattr(scope_module, "MOST_BYTES", 2 * len(encode(entry).encode()))
        monkeypatch.setattr(scope_module, "MOST_ENTRIES", 2)
        turn.add(entry)
        turn.add(entry)
        for more in (entry, HistoryEntry(role=Role.ASSISTANT, text="")):
            with pytest.raises(AgentError) as error:
                turn.add(more)
            assert error.value.code == "history_limit"
        assert turn.entries == [entry, entry]
        assert turn.tokens == [entry_tokens(entry)] * 2


async def test_what_calls_were_made_with_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a turn of a thousand calls holds hundreds of megabytes, only to be refused at its end."""
    async with open_store(tmp_path / "s.db", workers=InlineWorker) as store:
        events = Numbered(Outbound(), store, SessionId("s"), last=0, reserved=10_000)
        services = Services(
            agents_of(ScriptedAgent()), no_tools, store, FakeClock(), DaemonControl(), SessionsTable()
        )
        context = Context(
            services, SessionId("s"), tmp_path, SessionSettings(), {}, History(), events, Approvals()
        )
        turn = TurnScope(context, Work(TurnId("t"), "r", "prompt", ()))
        monkeypatch.setattr(scope_module, "MOST_BYTES", 3000)
        entry = HistoryEntry(role=Role.ASSISTANT, text="", calls=(ToolCall(name="x", arguments="a" * 1000),))
        turn.add(entry)
        turn.add(entry)
        with pytest.raises(AgentError) as error:
            turn.add(entry)
        assert error.value.code == "history_limit"


async def test_each_event_lets_others_have_their_turn_also_when_nobody_reads_any_more(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db", workers=InlineWorker) as store:
        outbound = Outbound()
        events = Numbered(outbound, store, SessionId("s"), last=0, reserved=10_000)
        services = Services(
            agents_of(ScriptedAgent()), no_tools, store, FakeClock(), DaemonControl(), SessionsTable()
        )
        context = Context(
            services, SessionId("s"), tmp_path, SessionSettings(), {}, History(), events, Approvals()
        )
        scope = TurnScope(context, Work(TurnId("t"), "r", "prompt", ()))
        outbound.mute()
        async with asyncio.TaskGroup() as tasks:
            talking = tasks.create_task(endless(scope))
            await settle()
            talking.cancel()
        assert talking.cancelled()


async def endless(scope: TurnScope) -> None:
    for _ in range(1000):  # an agent that never waits by itself
        await scope.send(AssistantCompleted, content="x")


def test_lone_surrogates_are_replaced() -> None:
    assert whole("a\ud800é") == "a?é"
