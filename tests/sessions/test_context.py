from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.agents.contract import Choice
from bridge.channel.testing.clock import FakeClock
from bridge.config import SessionsTable
from bridge.errors import StoreError
from bridge.ids import SessionId
from bridge.protocol import ours
from bridge.sessions.approvals import Approvals
from bridge.sessions.context import Context, SessionSettings
from bridge.sessions.contract import Services
from bridge.sessions.history import History
from bridge.sessions.outbound import Numbered, Outbound
from bridge.store.contract import ConfigureSession, LoadSession, OpenSession, SessionRecord
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from tests.sessions.offering import Offering
from tests.sessions.wire import DaemonControl, FailingStore, ScriptedAgent, agents_of, no_tools

CHAT = ours.Chat(channel="feishu", account="main", conversation="c1")


def test_settings_come_from_the_start_with_its_defaults() -> None:
    assert SessionSettings.of(ours.SessionStart(request_id="r", cwd="/")) == SessionSettings()
    full = ours.SessionStart(
        request_id="r",
        cwd="/",
        no_tools=True,
        channel=" Feishu ",
        auto_approve=True,
        delegation_depth=2,
        chat=CHAT,
    )
    assert SessionSettings.of(full) == SessionSettings(True, "Feishu", True, 2, CHAT)


@pytest.mark.parametrize(
    "settings",
    [
        SessionSettings(),
        SessionSettings(True, "微信", True, 3, CHAT),
        SessionSettings(channel="Feishu", keep_asking_seconds=600),
        SessionSettings(agent="a", model="m", mode="x", memory={"a": "记"}),
    ],
)
def test_settings_are_stored_and_read_back(settings: SessionSettings) -> None:
    assert SessionSettings.decode(settings.encode()) == settings


def test_a_chat_asks_for_every_call_whatever_the_table_says() -> None:
    assert SessionsTable().approval_policy == "on-risk"
    assert SessionSettings(channel="Feishu").policy(SessionsTable(approval_policy="never")) == "always"
    assert SessionSettings().policy(SessionsTable(approval_policy="never")) == "never"


def test_what_was_chosen_is_told_where_anything_was() -> None:
    assert SessionSettings().chosen is None
    assert SessionSettings(mode="plan").chosen == ours.Chosen(mode="plan")


S = SessionId("s")


@asynccontextmanager
async def opened(folder: Path, offering: Offering) -> AsyncIterator[tuple[Context, FailingStore]]:
    async with open_store(folder / "s.db", workers=InlineWorker) as sqlite:
        store, agents = FailingStore(sqlite), agents_of(ScriptedAgent(), o=offering)
        services = Services(agents, no_tools, store, FakeClock(), DaemonControl(), SessionsTable())
        settings = SessionSettings(agent="o", model="big", memory={"scripted": "mine"})
        await store.do(OpenSession(SessionRecord(S, str(folder), settings.encode(), 1), 1))
        events = Numbered(Outbound(), store, S, 0, 1)
        yield Context(services, S, folder, settings, {}, History(), events, Approvals()), store


async def test_an_agent_is_shown_its_own_choice_and_memory(tmp_path: Path) -> None:
    async with opened(tmp_path, Offering()) as (context, _):
        assert context.agent_name == "o"
        turn = context.turn("hello")
        assert (turn.prompt, turn.cwd, turn.choice, turn.memory) == (
            "hello", tmp_path, Choice("big", ""), "",
        )  # fmt: skip
        await context.keep("o", "its own")
        assert context.turn().memory == "its own"
        await context.keep("o", "")
        assert context.settings.memory == {"scripted": "mine"}


async def test_a_change_is_in_force_once_it_is_stored(tmp_path: Path) -> None:
    offering = Offering()
    async with opened(tmp_path, offering) as (context, store):
        store.failing.add(ConfigureSession)
        with pytest.raises(StoreError):
            await context.configure(SessionSettings(), tmp_path / "x")
        assert (context.agent_name, context.cwd) == ("o", tmp_path)
        store.failing.clear()
        await context.services.agents.get("o")
        await context.leave()
        await context.configure(SessionSettings(), tmp_path / "x")
        assert (context.agent_name, context.cwd, offering.left) == ("scripted", tmp_path / "x", [S])
        stored = await store.get(LoadSession(S))
        assert stored is not None
        assert stored.record.cwd == str(tmp_path / "x")


async def test_the_tools_are_those_that_there_are_now(tmp_path: Path) -> None:
    async with opened(tmp_path, Offering()) as (context, _):
        context.take_tools()
        assert context.tools == {}
