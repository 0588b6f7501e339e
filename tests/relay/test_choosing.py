"""An owner chooses in the chat who answers: a running account, the real session server, two agents."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from bridge.agents.contract import AgentError
from bridge.agents.echo import Echo
from bridge.channel import OutboundPart
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.config import SessionsTable
from bridge.paths import Home
from bridge.relay.account import Account
from bridge.relay.choosing import pick
from bridge.relay.texts import Language, Text, say
from bridge.sessions.agents import Agents
from bridge.sessions.contract import Services
from bridge.sessions.server import SessionServer
from bridge.store.contract import Chosen, ChosenIn, OpenMessages
from bridge.store.sqlite import SqliteStore, open_store
from bridge.store.workers import InlineWorker
from bridge.tools.choose import tools_for
from tests.relay.harness import NAME, OWNER, FakeHealth, PushedChannel, homes, message, request, setup_for
from tests.relay.test_conversation import key_of
from tests.sessions.offering import Offering
from tests.sessions.wire import Cast, DaemonControl, Lacking

en: Callable[..., str] = partial(say, language=Language.EN)
TOOLS = {"remote_tools": "owner"}


@dataclass
class Room:
    """An account that runs, with what belongs to it."""

    home: Home
    store: SqliteStore
    clock: FakeClock
    channel: PushedChannel
    second: Offering
    tasks: asyncio.TaskGroup
    agents: Agents
    account: Any = None
    running: list[asyncio.Task[None]] = field(default_factory=list)
    count: int = 0

    async def start(self, **settings: Any) -> None:
        made = setup_for(
            self.home, self.store, self.clock, self.channel, settings=TOOLS | settings,
            workspace=self.home.root / "work",
        )  # fmt: skip
        tools = partial(tools_for, Home(self.home.root / "elsewhere"), self.clock)
        services = Services(self.agents, tools, self.store, self.clock, DaemonControl(), SessionsTable())
        server = SessionServer(self.home.socket, services, "1")
        self.running = [self.tasks.create_task(server.run()), self.tasks.create_task(self.agents.run())]
        await server.ready.wait()
        self.account = Account(made)
        self.running.append(self.tasks.create_task(self.account.run(FakeHealth())))
        await settle()

    async def stop(self) -> None:
        for task in reversed(self.running):
            task.cancel()
            await asyncio.wait([task])

    async def say(self, text: str, sender: str = OWNER, **changes: Any) -> None:
        self.count += 1
        key = str(self.count)
        self.channel.items[key] = (message(f"m{self.count}", text, sender, **changes),)
        await self.account.handle(request(key.encode(), clock=self.clock))

    async def asks(self, text: str, sender: str = OWNER, **changes: Any) -> str:
        """Say it, and return what is answered."""
        await self.say(text, sender, **changes)
        name = f"m{self.count}"
        await until(lambda: name in self.told())
        await settle()
        return self.told()[name]

    def told(self) -> dict[str, str]:
        return {one.reply_to: one.text for one in self.channel.sent if isinstance(one, OutboundPart)}


@asynccontextmanager
async def room(**settings: Any) -> AsyncIterator[Room]:
    async with homes() as home, open_store(home.db, workers=InlineWorker) as store:
        for folder in ("work", "work/inner", "outside"):
            home.private_dir(home.root / folder)
        clock, second = FakeClock(), Offering()
        cast = Cast({"echo": Echo(clock), "second": second})
        async with asyncio.TaskGroup() as tasks:
            here = Room(home, store, clock, PushedChannel(), second, tasks, Agents(cast, home, clock))
            await here.start(**settings)
            yield here
            await here.stop()


async def test_another_agent_goes_on_with_what_was_said_also_over_a_restart() -> None:
    async with room() as here:
        assert "hello" in await here.asks("hello there")
        assert await here.asks("/agent second") == en(Text.AGENT_CHOSEN, agent="second", model="small")
        assert "saw: hello there" in await here.asks("and now")
        await here.stop()
        await here.start()
        assert "saw: hello there | " in await here.asks("again")
        assert len({turn.session_id for turn in here.second.turns}) == 1
        assert [turn.memory for turn in here.second.turns] == ["", "+"]
        await here.asks("/agent default")
        assert "hello there" in await here.asks("history")


async def test_what_there_is_is_listed_with_the_current_one_marked() -> None:
    async with room() as here:
        assert await here.asks("/agent") == f"{en(Text.AGENTS, current='echo')}\n1. echo ←\n2. second"
        assert (await here.asks("/model")).endswith("1. echo ←")
        assert await here.asks("/mode") == en(Text.CHOICE_NONE, agent="echo")
        await here.asks("/agent 2")
        head = say(Text.MODELS, Language.ZH, agent="second", current="small")
        assert await here.asks("/模型") == f"{head}\n1. small (Small one) ←\n2. big (Big one)"
        assert "1. plan (Plan first)" in await here.asks("/mode")


async def test_model_and_mode_are_chosen_by_name_or_number_and_taken_back() -> None:
    async with room(agent="second") as here:
        assert await here.asks("/model big one") != ""  # an ordinary message: more than one word
        assert await here.asks("/model BIG") == en(Text.MODEL_CHOSEN, agent="second", model="big")
        assert await here.asks("/mode 1") == en(Text.MODE_CHOSEN, agent="second", mode="plan")
        assert (await here.asks("x")).startswith("big plan")
        assert await here.store.get(ChosenIn(NAME, key_of())) == Chosen("second", "big", "plan")
        await here.asks("/model default")
        await here.asks("/mode 默认")
        assert (await here.asks("x")).startswith("small -")
        unknown = await here.asks("/model huge")
        assert unknown.startswith(en(Text.CHOICE_UNKNOWN))
        assert "2. big" in unknown


async def test_what_was_chosen_outlives_new_and_another_setting_and_ends_with_default() -> None:
    async with room() as here:
        await here.asks("/agent second")
        await here.asks("one")
        await here.asks("/new")
        assert (await here.asks("two")).endswith("saw: two")
        await here.stop()
        await here.start(agent="echo")
        assert "saw: two" in await here.asks("three")
        await here.asks("/agent default")
        assert "saw" not in await here.asks("four")


async def test_another_setting_reconfigures_the_session_and_keeps_its_history() -> None:
    async with room() as here:
        await here.asks("one")
        await here.stop()
        await here.start(agent="second")
        assert "saw: one" in await here.asks("two")
        assert (await here.store.get(ChosenIn(NAME, key_of()))) == Chosen()


async def test_everybody_else_is_answered_by_the_guests_agent_and_told_nothing() -> None:
    async with room(agent="second", guest_agent="echo") as here:
        assert "saw" in await here.asks("mine")
        assert "/model" in await here.asks("/model", sender="stranger")
        assert "/agent second" in await here.asks("/agent second", group=True)
        assert en(Text.HELP_TOOLS) not in await here.asks("/help", sender="stranger")
        assert en(Text.HELP_TOOLS) in await here.asks("/help")
        assert all(turn.tools for turn in here.second.turns)


async def test_a_folder_is_chosen_inside_the_workspace_and_nowhere_else() -> None:
    async with room(agent="second") as here:
        work = (here.home.root / "work").resolve()
        listed = await here.asks("/dir")
        assert listed == f"{en(Text.FOLDERS, current=work)}\n1. {work} ←\n2. {work / 'inner'}"
        assert await here.asks("/dir inner") == en(Text.FOLDER_CHOSEN, folder=work / "inner")
        assert " inner saw" in await here.asks("a")
        for bad in ("../../outside", str(here.home.root / "outside"), "nowhere", "/", "\0"):
            assert (await here.asks(f"/dir {bad}")).startswith(en(Text.FOLDER_UNKNOWN))
        assert await here.asks("/dir ..") == en(Text.FOLDER_CHOSEN, folder=work)
        await here.asks("/dir 2")
        await here.stop()
        await here.start(agent="second")
        assert " inner saw: a" in await here.asks("b")
        await here.asks("/dir default")
        assert " work saw: a" in await here.asks("c")


async def test_a_history_is_summed_up_where_the_agent_can() -> None:
    async with room() as here:
        await here.asks("hello")
        assert await here.asks("/compact") == en(Text.COMPACT_CANNOT)
        await here.asks("/agent second")
        here.second.summary = "s"
        await here.asks("word " * 300)
        assert (await here.asks("/压缩")).startswith("已压缩")
        assert (await here.asks("next")).endswith("saw: next")
        here.second.summary = AgentError("provider_error", "the model is away")
        assert await here.asks("/compact") == en(Text.CHOICE_REFUSED, problem="the model is away")
        here.second.summary = "long " * 1000
        assert await here.asks("/compact") == en(Text.COMPACT_NOTHING)


async def test_what_cannot_be_told_is_said_plainly() -> None:
    async with room() as here:
        here.second.offered = AgentError("provider_error", "not signed in: run second login")
        chosen = await here.asks("/agent second")
        assert chosen.endswith(en(Text.CHOICE_PROBLEM, problem="not signed in: run second login"))
        assert (await here.asks("/model")).endswith(chosen.splitlines()[-1])
        assert (await here.asks("/agent echo")) == en(Text.AGENT_CHOSEN, agent="echo", model="echo")


async def test_what_was_chosen_and_is_gone_is_told_once_and_chosen_no_more() -> None:
    async with room() as here:
        await here.asks("/agent second")
        await here.asks("/model big")
        await here.stop()
        here.agents = Agents(Cast({"echo": Echo(here.clock)}), here.home, here.clock)
        await here.start()
        assert await here.asks("hello") == en(Text.CHOICE_GONE)
        assert "hello" in await here.asks("hello")
        assert (await here.asks("/agent")).endswith("1. echo ←")


async def test_a_choice_that_is_gone_keeps_nobody_from_choosing_anew() -> None:
    async with room() as here:
        await here.asks("/agent second")
        await here.stop()
        third = Offering()
        here.agents = Agents(Cast({"echo": Echo(here.clock), "third": third}), here.home, here.clock)
        await here.start()
        assert await here.asks("/agent third") == en(Text.AGENT_CHOSEN, agent="third", model="small")


@pytest.mark.parametrize("again", [True, False])
async def test_a_chosen_agent_that_lacks_something_for_a_moment_stays_chosen_and_its_lack_is_told(
    again: bool,
) -> None:
    async with room() as here:
        await here.asks("/agent second")
        await here.asks("/model big")
        if not again:
            await here.asks("/new")
        await here.stop()
        cast = Lacking({"echo": Echo(here.clock), "second": here.second}, lacking="second")
        here.agents = Agents(cast, here.home, here.clock)
        await here.start()
        cure = "second is not installed: install it"
        for _ in range(2):
            assert await here.asks("hello") == en(Text.SETUP, cure=cure)
        assert await here.asks("/agent second") == en(Text.CHOICE_REFUSED, problem=cure)
        assert (await here.asks("/agent")).endswith("1. echo ←\n2. second")
        cast.lacking = ""
        assert "hello" in await here.asks("hello")
        assert (await here.asks("/model")).endswith("2. big (Big one) ←")


async def test_who_chose_what_lacks_something_may_choose_anew() -> None:
    async with room() as here:
        await here.asks("/agent second")
        await here.stop()
        cast = Lacking({"echo": Echo(here.clock), "second": here.second}, lacking="second")
        here.agents = Agents(cast, here.home, here.clock)
        await here.start()
        assert await here.asks("/agent echo") == en(Text.AGENT_CHOSEN, agent="echo", model="echo")
        assert "hello" in await here.asks("hello")


async def test_a_command_waits_for_its_turn_and_ends_none() -> None:
    async with room(when_busy="interrupt") as here:
        await here.say("slow 3000")
        await settle(50)
        await here.say("/agent second")
        await settle(50)
        assert "m2" not in here.told()
        assert await here.asks("/stop") == en(Text.STOPPED_ALL, count=1)
        assert await here.store.get(OpenMessages(NAME)) == ()


def test_a_name_is_picked_as_it_is_meant() -> None:
    names = {"gpt": "GPT", "gpt-mini": "Mini", "3": "Three", "a": "Same", "b": "same"}
    assert [pick(text, names) for text in ("gpt", "MINI", "3", "2", "same", "9", "x")] == [
        "gpt", "gpt-mini", "3", "gpt-mini", None, None, None,
    ]  # fmt: skip
