"""Who answers in a session: asked for, changed, refused, stored, and told."""

import asyncio
from typing import Any

import pytest

from bridge.agents.contract import AgentError, Choices
from bridge.ids import SessionId
from bridge.sessions.agents import Agents
from bridge.store.contract import ConfigureSession, LoadSession
from tests.sessions.offering import Offering
from tests.sessions.test_opening import attach
from tests.sessions.wire import Cast, Client, Event, ScriptedAgent, Server, agents_of, serving

MODELS = [{"id": "small", "name": "Small one"}, {"id": "big", "name": "Big one"}]


def cast(offering: Offering | None = None) -> Agents:
    return agents_of(ScriptedAgent(), ("coder",), o=offering or Offering(), coder=Offering())


async def configure(client: Client, **changes: Any) -> Event:
    request_id = client.ask("session.configure", **changes)
    event = await client.event()
    assert event["request_id"] == request_id
    return event


async def told_settings(server: Server, client: Client) -> tuple[str, str]:
    stored = await server.store.get(LoadSession(SessionId(client.session_id)))
    assert stored is not None
    return stored.record.cwd, stored.record.settings


async def test_without_a_change_it_tells_what_there_is() -> None:
    async with serving(cast()) as server:
        client = await server.session()
        told = await configure(client)
        assert told == {
            "type": "session.configured", "request_id": told["request_id"], "session_id": client.session_id,
            "seq": 2, "agent": "scripted", "model": "scripted", "mode": "", "cwd": str(server.workspace),
            "agents": ["coder", "o", "scripted"], "models": [{"id": "scripted", "name": "scripted"}],
            "modes": [],
        }  # fmt: skip
        assert not [step for step in server.store.steps if isinstance(step, ConfigureSession)]


async def test_another_agent_answers_the_next_turn_and_sees_what_was_said() -> None:
    offering = Offering()
    async with serving(cast(offering)) as server:
        client = await server.session()
        await client.turn("first")
        told = await configure(client, agent="o")
        assert (told["agent"], told["model"], told["models"]) == ("o", "small", MODELS)
        assert told["modes"] == [{"id": "plan", "name": "Plan first"}]
        assert told["chosen"] == {"agent": "o"}
        answer = (await client.turn("second"))[1]
        assert answer["content"] == "small - work saw: first | re: first | second"


async def test_model_mode_and_folder_are_kept_with_the_session() -> None:
    offering = Offering()
    async with serving(cast(offering)) as server:
        client, inner = await server.session(agent="o"), server.workspace / "inner"
        inner.mkdir()
        told = await configure(client, model="big", mode="plan", cwd=str(inner))
        assert (told["model"], told["mode"], told["cwd"]) == ("big", "plan", str(inner))
        assert offering.left == [client.session_id]
        await client.close()
        client = await attach(server, client.session_id, cwd=str(inner))
        started = await client.event()
        assert started["chosen"] == {"agent": "o", "model": "big", "mode": "plan"}
        assert started["model"] == "big"
        await client.event()
        assert (await client.turn("x"))[1]["content"].startswith("big plan inner")
        told = await configure(client, model="", mode="")
        assert (told["model"], told["mode"], told["chosen"]) == ("small", "", {"agent": "o"})


async def test_another_agent_begins_with_its_own_model_and_the_same_one_keeps_its() -> None:
    async with serving(cast()) as server:
        client = await server.session(agent="o", model="big", mode="plan")
        assert (await configure(client, agent="o"))["model"] == "big"
        assert (await configure(client, agent=""))["model"] == "scripted"
        assert "chosen" not in await configure(client)
        assert (await configure(client, agent="o"))["model"] == "small"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"agent": "nobody"}, "there is no agent called 'nobody'; the agents here: coder, o, scripted"),
        ({"model": "huge"}, "there is no model of that name here: small, big"),
        ({"mode": "huge"}, "there is no mode of that name here: plan"),
        ({"agent": "", "mode": "plan"}, "there is no mode of that name here: none"),
        ({"cwd": "/no/such/folder"}, "the cwd is no directory"),
        ({"cwd": ""}, "the cwd is no directory"),
        ({"cwd": "/\0"}, "the cwd is no directory"),
    ],
)
async def test_what_is_not_there_is_refused_with_what_is(changes: dict[str, Any], text: str) -> None:
    async with serving(cast()) as server:
        client = await server.session(agent="o")
        before = await told_settings(server, client)
        refused = await configure(client, **changes)
        assert (refused["code"], text in refused["message"]) == ("invalid_request", True), refused
        assert await told_settings(server, client) == before
        assert (await configure(client))["agent"] == "o"


async def test_a_long_list_is_cut_in_a_refusal() -> None:
    offering = Offering()
    offering.offered = Choices({f"m{number:02}": "" for number in range(50)})
    async with serving(cast(offering)) as server:
        client = await server.session(agent="o")
        assert (await configure(client, model="x"))["message"].endswith("m19, …")


async def test_an_agent_with_tools_of_its_own_answers_no_session_without_tools() -> None:
    async with serving(cast()) as server:
        client = await server.client()
        client.say(type="session.start", cwd=str(server.workspace), no_tools=True, agent="coder")
        assert await client.error() == "invalid_request"
        await client.start(no_tools=True)
        assert (await configure(client, agent="coder"))["code"] == "invalid_request"
        other = await server.session(agent="coder")
        assert (await other.turn("x"))[-1]["type"] == "turn.completed"


async def test_while_a_turn_runs_nothing_is_changed_but_asking_is_answered() -> None:
    go = asyncio.Event()

    async def wait(*_: Any) -> None:
        await go.wait()

    agents = agents_of(ScriptedAgent(wait=wait), o=Offering())
    async with serving(agents) as server:
        client = await server.session()
        client.ask("turn.start", prompt="wait")
        await client.until("turn.started")
        assert (await configure(client, agent="o"))["code"] == "turn_active"
        assert (await configure(client))["agent"] == "scripted"
        go.set()
        await client.until("turn.completed")


class Slow(Offering):
    def __init__(self) -> None:
        super().__init__()
        self.go, self.entered, self.cancelled = asyncio.Event(), asyncio.Event(), False

    async def choices(self, turn: Any) -> Choices:
        self.entered.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return await super().choices(turn)


async def test_a_turn_that_comes_meanwhile_waits_for_the_change_and_others_are_refused() -> None:
    slow = Slow()
    async with serving(cast(slow)) as server:
        client = await server.session()
        client.ask("session.configure", agent="o")
        client.ask("turn.start", prompt="x")
        assert (await client.event())["type"] == "queue.enqueued"
        client.ask("session.clear")
        assert await client.error() == "turn_active"
        assert (await configure(client))["code"] == "turn_active"
        slow.go.set()
        events = await client.until("turn.completed")
        kinds = [event["type"] for event in events]
        assert kinds.index("session.configured") < kinds.index("turn.started")
        assert "small - work saw: x" in [event.get("content") for event in events]


async def test_a_client_that_hangs_up_meanwhile_is_waited_for_by_nobody() -> None:
    slow = Slow()
    async with serving(cast(slow)) as server:
        client = await server.session()
        client.ask("session.configure", agent="o")
        await slow.entered.wait()
        await client.close()
        again = await attach(server, client.session_id)
        assert (await again.event())["type"] == "session.started"
        assert slow.cancelled
        assert "chosen" not in again.seen[-1]


async def test_models_that_cannot_be_told_are_a_problem_and_no_refusal_unless_one_is_chosen() -> None:
    offering = Offering()
    offering.offered = AgentError("provider_error", "not signed in")
    async with serving(cast(offering)) as server:
        client = await server.session()
        told = await configure(client, agent="o")
        assert (told["problem"], told["models"], told["model"]) == ("not signed in", [], "small")
        refused = await configure(client, model="big")
        assert (refused["code"], refused["message"]) == ("provider_error", "not signed in")
        assert (await configure(client, model="small"))["type"] == "session.configured"
        other = await server.session(agent="o", model="big")
        assert (await configure(other))["model"] == "big"


async def test_a_change_that_cannot_be_stored_is_none() -> None:
    async with serving(cast()) as server:
        client = await server.session()
        server.store.failing.add(ConfigureSession)
        assert (await configure(client, agent="o"))["code"] == "internal_error"
        assert (await configure(client))["agent"] == "scripted"


async def test_an_agent_that_has_gone_is_not_held_against_the_session() -> None:
    agents = cast()
    async with serving(agents) as server:
        client = await server.session(agent="o", model="big")
        await client.close()
        agents._profiles, agents._made = Cast({"scripted": ScriptedAgent()}), {}
        again = await attach(server, client.session_id)
        started = await again.event()
        assert (started["model"], "chosen" in started) == ("scripted", False)
        await again.event()
        assert (await again.turn("x"))[1]["content"] == "re: x"


async def test_a_session_that_not_even_the_default_may_answer_says_so_in_its_turns() -> None:
    agents = cast()
    async with serving(agents) as server:
        client = await server.session(no_tools=True)
        await client.close()
        agents._profiles, agents._made = Cast({"scripted": ScriptedAgent()}, ("scripted",)), {}
        again = await attach(server, client.session_id)
        await again.until("queue.snapshot")
        failed = (await again.turn("x"))[-1]
        assert (failed["code"], "tools of its own" in failed["message"]) == ("provider_error", True)
