"""Agents that do what strangers tell them get no tool: each check behind that is tried without the others."""

from collections.abc import Callable
from typing import Any

import pytest

from bridge.agents.acp.agent import Acp
from bridge.profiles import Profiles
from bridge.sessions.agents import Agents
from tests.security.agents import Kind, settings_of
from tests.security.cells import Cell, Grant, Outcome, Senders, Where, Who, every_cell
from tests.security.test_table import approved_for_all, offered_to_all, wrong

OPEN = [Grant(Senders.ANYONE, "owner", "auto")]
FAILED = Outcome(answered=True, ran=True)  # the text of a turn that failed, where refusals were expected
Break = Callable[[pytest.MonkeyPatch], None]


async def found_with(kind: Kind, more: str = "") -> dict[Cell, Outcome]:
    async with settings_of(kind) as settings:
        return await every_cell(OPEN, settings, more)


@pytest.mark.parametrize("broken", [offered_to_all, approved_for_all])
async def test_either_check_alone_keeps_a_model_s_forged_calls_from_everybody_else(
    broken: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    found = await found_with(Kind.LLM)
    assert wrong(found) == []
    assert found[OPEN[0], Who.OWNER, Where.DIRECT].words == "an answer, files, tools"


async def test_without_both_checks_a_model_s_forged_calls_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    offered_to_all(monkeypatch)
    approved_for_all(monkeypatch)
    assert (OPEN[0], Who.STRANGER, Where.DIRECT) in wrong(await found_with(Kind.LLM))


def settings_unchecked(patch: pytest.MonkeyPatch) -> None:
    """An agent with tools of its own may be named for anybody."""
    patch.setattr(Profiles, "_misplaced", lambda *_: [])


def sessions_unchecked(patch: pytest.MonkeyPatch) -> None:
    """The session server begins sessions without tools with it."""
    get = Agents.get

    async def anyway(self: Agents, name: str, no_tools: bool = False) -> Any:
        return await get(self, name)

    patch.setattr(Agents, "get", anyway)


def turns_unchecked(patch: pytest.MonkeyPatch) -> None:
    """The agent answers turns without tools."""
    run = Acp._run

    async def running(self: Acp, turn: Any, sink: Any, gate: Any) -> Any:
        return await run(self, turn, sink, gate)

    patch.setattr(Acp, "run", running)


@pytest.mark.parametrize("also", [sessions_unchecked, turns_unchecked, approved_for_all])
async def test_a_coding_agent_reaches_nothing_for_others_though_two_checks_are_broken(
    also: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_unchecked(monkeypatch)
    also(monkeypatch)
    found = await found_with(Kind.ACP, 'guest_agent = "coder"\n')
    assert [found[cell] for cell in wrong(found)] == [FAILED] * 10
    assert found[OPEN[0], Who.OWNER, Where.DIRECT].words == "an answer, files, tools"


async def test_without_all_checks_a_coding_agent_is_seen_to_work_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for broken in (settings_unchecked, sessions_unchecked, turns_unchecked, approved_for_all):
        broken(monkeypatch)
    assert (OPEN[0], Who.STRANGER, Where.DIRECT) in wrong(
        await found_with(Kind.ACP, 'guest_agent = "coder"\n')
    )
