"""What an agent keeps of a session: at once, over restarts, for itself alone, and gone when it is cleared."""

from typing import Any

import pytest

from bridge.agents.contract import AgentUsage, Gate, Sink, Turn
from bridge.ids import SessionId
from bridge.sessions.turns import MEMORY_BYTES
from bridge.store.contract import ConfigureSession, LoadSession
from tests.sessions.offering import Offering
from tests.sessions.test_opening import attach
from tests.sessions.wire import ENDS, Client, Server, agents_of, serving


class Keeper(Offering):
    """Keeps what the prompt says, and fails, or waits, when told to."""

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        self.turns.append(turn)
        word, _, rest = turn.prompt.partition(" ")
        await sink.keep(rest if word != "much" else "é" * (MEMORY_BYTES // 2) + "x")
        if word == "fail":
            raise ValueError("no")
        await sink.completed(f"knew {turn.memory}")
        return AgentUsage(1)


async def stored(server: Server, client: Client) -> str:
    found = await server.store.get(LoadSession(SessionId(client.session_id)))
    assert found is not None
    return found.record.settings


async def said(client: Client, prompt: str) -> Any:
    events = await client.turn(prompt)
    return events[1].get("content"), events[-1]["type"]


async def test_it_is_kept_however_the_turn_ends_and_for_whoever_attaches() -> None:
    async with serving(Keeper()) as server:
        client = await server.session()
        assert await said(client, "keep one") == ("knew ", "turn.completed")
        assert '"memory": {"scripted": "one"}' in await stored(server, client)
        assert (await client.turn("fail two"))[-1]["type"] == "turn.failed"
        await client.close()
        again = await attach(server, client.session_id)
        await again.until("queue.snapshot")
        await again.until("turn.failed")
        assert await said(again, "keep ") == ("knew two", "turn.completed")
        assert "memory" not in await stored(server, client)


async def test_each_agent_has_its_own_and_clearing_takes_all_of_it() -> None:
    first, second = Keeper(), Keeper()
    async with serving(agents_of(first, o=second)) as server:
        client = await server.session()
        await said(client, "keep one")
        client.ask("session.configure", agent="o")
        await client.event()
        assert await said(client, "keep two") == ("knew ", "turn.completed")
        client.ask("session.configure", agent="")
        await client.event()
        assert await said(client, "keep three") == ("knew one", "turn.completed")
        assert (first.left, second.left) == ([client.session_id], [client.session_id])
        client.ask("session.clear")
        await client.until("queue.snapshot")
        assert "memory" not in await stored(server, client)
        assert first.left == [client.session_id] * 2
        assert await said(client, "keep x") == ("knew ", "turn.completed")


async def test_too_much_is_refused_and_so_is_what_cannot_be_stored() -> None:
    async with serving(Keeper()) as server:
        client = await server.session()
        failed = (await client.turn("much"))[-1]
        assert (failed["code"], "over 4096 bytes" in failed["message"]) == ("internal_error", True)
        server.store.failing.add(ConfigureSession)
        failed = (await client.turn("keep x"))[-1]
        assert (failed["code"], "look at the disk" in failed["message"]) == ("internal_error", True)


async def test_it_is_whole_text_whatever_the_agent_gives() -> None:
    async with serving(Keeper()) as server:
        client = await server.session()
        client.raw(b"")
        await said(client, "keep a\u2028b")
        assert await said(client, "keep ") == ("knew a\u2028b", "turn.completed")


async def test_nothing_is_kept_once_the_turn_is_over() -> None:
    late: list[Any] = []

    class Late(Offering):
        async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
            late.append(sink)
            await sink.completed("done")
            return AgentUsage(1)

    async with serving(Late()) as server:
        client = await server.session()
        await client.turn("x")
        with pytest.raises(Exception, match="the turn is over"):
            await late[0].keep("more")
        assert "memory" not in await stored(server, client)


async def test_the_cost_of_a_turn_is_told_where_it_is_known() -> None:
    async with serving(Offering()) as server:
        client = await server.session()
        assert (await client.turn("x"))[-1]["cost_micros"] == 1200


@pytest.mark.parametrize("hold", ["idle", "in a turn"])
async def test_an_agent_hears_when_the_last_client_has_gone(hold: str) -> None:
    offering = Offering()
    async with serving(offering) as server:
        client = await server.session()
        await client.turn("x")
        if hold == "in a turn":
            client.ask("turn.start", prompt="y")
            await client.until(*ENDS)
        assert offering.left == []
        await client.close()
        again = await attach(server, client.session_id)
        await again.until("queue.snapshot")
        assert offering.left == [client.session_id]
