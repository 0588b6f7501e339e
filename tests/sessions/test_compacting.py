"""Summing up: one note for all that was said, in memory and in the store."""

from typing import Any

import pytest

from bridge.agents.contract import AgentError
from bridge.ids import SessionId
from bridge.sessions.compacting import SUMMARY_BYTES
from bridge.store.contract import CompactSession, LoadSession
from tests.sessions.offering import Offering
from tests.sessions.wire import Client, Event, ScriptedAgent, Server, agents_of, serving

LONG = "word " * 500


async def compact(client: Client) -> Event:
    client.ask("session.compact")
    return await client.event()


async def history(server: Server, client: Client) -> tuple[str, ...]:
    stored = await server.store.get(LoadSession(SessionId(client.session_id)))
    assert stored is not None
    return stored.history


async def test_a_summary_takes_the_place_of_the_history() -> None:
    offering = Offering()
    async with serving(offering) as server:
        client = await server.session()
        await client.turn(LONG)
        await client.turn("more")
        told = await compact(client)
        assert told["type"] == "session.compacted"
        assert told["before_tokens"] > 300 > told["after_tokens"] > 0
        (note,) = await history(server, client)
        assert "4 earlier messages, summed up:\\nall of it" in note
        again = await compact(client)
        assert again["before_tokens"] == again["after_tokens"] == told["after_tokens"]
        answer = (await client.turn("next"))[1]["content"]
        assert answer.endswith("saw: next")
        assert len(await history(server, client)) == 3


async def test_where_nothing_was_said_nothing_is_asked() -> None:
    offering = Offering()
    offering.summary = AgentError("provider_error", "never asked")
    async with serving(offering) as server:
        client = await server.session()
        told = await compact(client)
        assert (told["before_tokens"], told["after_tokens"]) == (0, 0)


async def test_an_agent_that_cannot_is_said_to_be_one() -> None:
    async with serving(agents_of(ScriptedAgent())) as server:
        client = await server.session()
        refused = await compact(client)
        assert (refused["code"], refused["message"]) == (
            "unsupported",
            "the agent scripted cannot sum up what was said",
        )


@pytest.mark.parametrize(
    ("summary", "code"),
    [(AgentError("provider_error", "away"), "provider_error"), (" \n", "provider_error")],
)
async def test_what_fails_changes_nothing(summary: Any, code: str) -> None:
    offering = Offering()
    offering.summary = summary
    async with serving(offering) as server:
        client = await server.session()
        await client.turn(LONG)
        before = await history(server, client)
        assert (await compact(client))["code"] == code
        assert await history(server, client) == before


async def test_what_cannot_be_stored_changes_nothing() -> None:
    offering = Offering()
    async with serving(offering) as server:
        client = await server.session()
        await client.turn(LONG)
        server.store.failing.add(CompactSession)
        assert (await compact(client))["code"] == "internal_error"
        assert "word word" in (await client.turn("x"))[1]["content"]


async def test_a_summary_has_its_limit() -> None:
    offering = Offering()
    offering.summary = "s" * (2 * SUMMARY_BYTES)
    async with serving(offering) as server:
        client = await server.session()
        await client.turn("w" * 250_000)
        assert (await compact(client))["after_tokens"] < SUMMARY_BYTES
