"""Agents by name: made once, started once, started again when they broke, and told when they are left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.contract import AgentError, AgentUsage, Gate, Sink, Turn
from bridge.channel.testing.clock import settle
from bridge.credentials import save_texts
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.sessions import agents as module
from bridge.sessions.agents import Agents, asked
from bridge.sessions.errors import RequestError
from tests.sessions.offering import Offering
from tests.sessions.wire import Cast, Lacking, ScriptedAgent, agents_of


@asynccontextmanager
async def running(agents: Agents) -> AsyncIterator[asyncio.Task[None]]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(agents.run())
        yield task
        task.cancel()


async def test_an_agent_is_made_once_and_the_default_answers_to_no_name() -> None:
    scripted = ScriptedAgent()
    agents = agents_of(scripted, other=Offering())
    assert await agents.get("") is scripted
    assert await agents.get("scripted") is scripted
    assert (agents.default, agents.names()) == ("scripted", ["other", "scripted"])
    assert await agents.get("other") is await agents.get("other")


async def test_two_who_need_it_at_once_get_the_same() -> None:
    cast = Cast({"a": ScriptedAgent()})
    agents = agents_of(ScriptedAgent())
    agents._profiles = cast
    async with asyncio.TaskGroup() as tasks:
        got = [tasks.create_task(agents.get("a")) for _ in range(2)]
    assert got[0].result() is got[1].result()
    assert cast.read_names == ["a", "a"]


async def test_one_whose_secrets_changed_since_it_was_made_is_outdated(tmp_path: Path) -> None:
    home = Home(tmp_path)
    agents = agents_of(ScriptedAgent(), other=Offering())
    agents._home = home
    save_texts(home, "agents", "other", {"api_key": "sk-1"})
    await agents.get("")
    assert agents.outdated() == []  # the other is not made yet
    await agents.get("other")
    save_texts(home, "agents", "scripted", {"api_key": "sk-1"})
    save_texts(home, "agents", "other", {"api_key": "sk-22"})
    assert agents.outdated() == ["scripted", "other"]


async def test_one_that_is_none_or_not_for_this_session_is_refused() -> None:
    agents = agents_of(ScriptedAgent(), ("coder",), coder=Offering())
    with pytest.raises(RequestError, match="the agents here: coder, scripted") as refused:
        await agents.get("nobody")
    assert refused.value.code == "invalid_request"
    with pytest.raises(RequestError, match="coder has tools of its own"):
        await agents.get("coder", no_tools=True)
    assert isinstance(await agents.get("coder"), Offering)
    with pytest.raises(ConfigError):
        await agents.make("nobody")


async def test_one_that_lacks_something_for_now_is_told_from_one_that_is_none() -> None:
    agents = agents_of(ScriptedAgent())
    agents._profiles = Lacking({"scripted": ScriptedAgent(), "coder": Offering()}, lacking="coder")
    with pytest.raises(RequestError, match="coder is not installed") as refused:
        await agents.get("coder")
    assert refused.value.code == "setup_required"


async def test_what_it_runs_is_started_at_the_first_need_once_and_ended_at_the_end() -> None:
    offering = Offering()
    agents = agents_of(ScriptedAgent(), o=offering)
    async with running(agents):
        await agents.started("scripted")
        assert offering.starts == 0
        for _ in range(2):
            assert await agents.started("o") is offering
        assert (offering.starts, offering.ends) == (1, 0)
    assert (offering.starts, offering.ends) == (1, 1)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (AgentError("provider_error", "not signed in"), "the agent o: not signed in"),
        (ValueError("secret"), "the agent o: it did not start: see the daemon's log"),
    ],
)
async def test_one_that_does_not_start_is_told_and_tried_again(error: Exception, text: str) -> None:
    offering = Offering()
    offering.start_error = error
    agents = agents_of(ScriptedAgent(), o=offering)
    async with running(agents):
        with pytest.raises(AgentError) as failed:
            await agents.started("o")
        assert (str(failed.value), failed.value.code) == (text, "provider_error")
        offering.start_error = None
        assert await agents.started("o") is offering


async def test_one_that_broke_is_started_again_when_it_is_needed() -> None:
    class Breaking(Offering):
        broken = asyncio.Event()

        @asynccontextmanager
        async def running(self) -> AsyncIterator[None]:
            self.starts += 1
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.breaks())
                yield

        async def breaks(self) -> None:
            await self.broken.wait()
            self.broken.clear()
            raise OSError("gone")

    breaking = Breaking()
    agents = agents_of(ScriptedAgent(), o=breaking)
    async with running(agents):
        await agents.started("o")
        breaking.broken.set()
        await settle()
        await agents.started("o")
        assert breaking.starts == 2


async def test_who_waits_for_the_start_hears_of_the_end_of_all() -> None:
    class Slow(Offering):
        @asynccontextmanager
        async def running(self) -> AsyncIterator[None]:
            await asyncio.Event().wait()
            yield

    agents = agents_of(ScriptedAgent(), o=Slow())
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(agents.run())
        waiting = tasks.create_task(asyncio.wait([tasks.create_task(_error_of(agents))]))
        await settle()
        run.cancel()
        done, _ = await waiting
    assert "did not start" in done.pop().result()


async def _error_of(agents: Agents) -> str:
    with pytest.raises(AgentError) as failed:
        await agents.started("o")
    return str(failed.value)


async def test_it_is_told_of_the_session_that_is_left_if_it_was_ever_made() -> None:
    offering, agents = Offering(), agents_of(ScriptedAgent(), o=Offering())
    agents._profiles = Cast({"scripted": ScriptedAgent(), "o": offering})
    await agents.leave("o", "s1")
    await agents.get("o")
    await agents.get("")
    await agents.leave("o", "s2")
    await agents.leave("", "s3")
    assert offering.left == ["s2"]


@pytest.mark.parametrize("trouble", ["raises", "hangs"])
async def test_one_that_does_not_leave_holds_up_nobody(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clinging(Offering):
        async def leave(self, session_id: str) -> None:
            if trouble == "raises":
                raise ValueError("no")
            await asyncio.Event().wait()

    monkeypatch.setattr(module, "LEAVE_SECONDS", 0.01)
    agents = agents_of(ScriptedAgent(), o=Clinging())
    await agents.get("o")
    await agents.leave("o", "s")


async def test_what_an_agent_is_asked_comes_back_or_says_why_not() -> None:
    async def says(what: Any) -> Any:
        if isinstance(what, BaseException):
            raise what
        return what

    assert await asked(says(3), "a", 1) == 3
    for error, code in (
        (AgentError("step_limit", "no"), "step_limit"),
        (ValueError("no"), "internal_error"),
        (asyncio.CancelledError(), "internal_error"),
    ):
        with pytest.raises(AgentError) as failed:
            await asked(says(error), "a", 1)
        assert failed.value.code == code
    with pytest.raises(AgentError, match="in time"):
        await asked(asyncio.Event().wait(), "a", 0.01)


async def test_an_agent_that_runs_nothing_needs_no_start() -> None:
    class Plain:
        model = "plain"

        async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
            raise AssertionError

    agents = agents_of(Plain())
    made = await agents.make("scripted")
    await agents._run(made)
    assert made.running is None
