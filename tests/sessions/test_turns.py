"""What an agent says, as events."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bridge.agents.contract import AgentUsage, Gate, HistoryEntry, Role, Sink, ToolCall, Turn
from bridge.agents.echo_files import make
from bridge.channel.testing.clock import FakeClock
from bridge.config import SessionsTable
from bridge.ids import SessionId
from bridge.sessions.turns import MEMORY_BYTES, STEP_TEXT_BYTES
from bridge.store.contract import ConfigureSession, LoadSession
from bridge.tools.contract import Arguments, CallPlace, Risk, Tool, ToolResult
from bridge.tools.wait import Wait
from tests.sessions.offering import Offering
from tests.sessions.test_opening import attach
from tests.sessions.wire import Cast, Client, Event, ScriptedAgent, Server, agents_of, serving

LIMIT = "context_limit"


def told(events: list[Event]) -> list[tuple[str, str]]:
    return [(str(event["type"]), str(event.get("content", event.get("code", "")))) for event in events]


async def silent(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    return AgentUsage(steps=1)


async def unfinished(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.delta("one ")
    await sink.delta("")
    await sink.delta("two")
    return AgentUsage(steps=1)


async def two_steps(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.delta("a preview")
    await sink.completed("first")
    await sink.completed("")
    return AgentUsage(steps=2)


async def odd(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.delta("\ud800")
    await sink.completed("\ud800x")
    return AgentUsage(steps=1)


async def long_delta(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    for _ in range(3):
        await sink.delta("é" * (STEP_TEXT_BYTES // 4))
    return AgentUsage(steps=1)


async def long_step(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
    await sink.completed("x" * STEP_TEXT_BYTES)
    await sink.completed("x" * (STEP_TEXT_BYTES + 1))
    return AgentUsage(steps=1)


async def test_every_step_ends_with_its_whole_text() -> None:
    async with serving(ScriptedAgent(silent=silent, unfinished=unfinished, two=two_steps)) as server:
        client = await server.session()
        assert told(await client.turn("silent"))[1:] == [("assistant.completed", ""), ("turn.completed", "")]
        assert told(await client.turn("unfinished"))[1:] == [
            ("assistant.delta", "one "),
            ("assistant.delta", "two"),
            ("assistant.completed", "one two"),
            ("turn.completed", ""),
        ]
        assert told(await client.turn("two"))[1:] == [
            ("assistant.delta", "a preview"),
            ("assistant.completed", "first"),
            ("assistant.completed", ""),
            ("turn.completed", ""),
        ]


async def test_what_utf8_cannot_hold_is_replaced() -> None:
    async with serving(ScriptedAgent(odd=odd)) as server:
        client = await server.session()
        assert told(await client.turn("odd"))[1:3] == [
            ("assistant.delta", "?"),
            ("assistant.completed", "?x"),
        ]


async def test_a_step_of_over_a_mebibyte_fails_the_turn() -> None:
    async with serving(ScriptedAgent(delta=long_delta, step=long_step)) as server:
        client = await server.session()
        events = told(await client.turn("delta"))
        assert [kind for kind, _ in events] == ["turn.started", *["assistant.delta"] * 2, "turn.failed"]
        assert events[-1][1] == "response_limit"
        events = told(await client.turn("step"))
        assert (len(events[1][1]), events[-1]) == (STEP_TEXT_BYTES, ("turn.failed", "response_limit"))


async def test_a_frame_over_the_limit_fails_the_turn_before_it_is_sent() -> None:
    async def wide(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.completed("x" * 70_000)
        return AgentUsage(steps=1)

    async with serving(
        ScriptedAgent(wide=wide), table=SessionsTable(max_server_frame_bytes=65_536)
    ) as server:
        client = await server.session()
        events = await client.turn("wide")
        assert told(events)[1:] == [("turn.failed", "response_limit")]
        assert [event["seq"] for event in events] == [2, 3]


async def test_the_agent_sees_the_turn_as_the_session_allows_it() -> None:
    agent = ScriptedAgent()
    async with serving(agent) as server:
        path = server.workspace / "a.png"
        path.write_bytes(make("a.png", "3x2"))
        given = {"kind": "image", "path": str(path), "name": "a.png", "size": path.stat().st_size}
        for no_tools in (False, True):
            client = await server.session(no_tools=no_tools)
            await client.turn("look", attachments=[given])
            await client.turn("again")
        open_turn, _, closed_turn, _ = agent.turns
        _, open_next, _, closed_next = agent.seen
        assert (open_turn.files[0].path, open_turn.files[0].pixels) == (path, (3, 2))
        assert (closed_turn.files[0].path, closed_turn.files[0].pixels) == (None, (3, 2))
        assert open_next[0].files == open_turn.files
        assert closed_next[0].files == closed_turn.files
        assert open_turn.cwd == server.workspace
        assert [entry.role for entry in open_next] == [Role.USER, Role.ASSISTANT, Role.USER]


def compactions(events: list[Event]) -> list[Event]:
    return [event for event in events if event["type"] == "context.compacted"]


SMALL = SessionsTable(context_max_tokens=16_384)  # of which 6144 are left for messages


async def test_what_does_not_fit_is_left_out_and_told_before_the_step() -> None:
    agent = ScriptedAgent()
    async with serving(agent, table=SMALL) as server:
        client = await server.session()
        for prompt in ("a" * 6000, "b" * 1500):
            assert compactions(await client.turn(prompt)) == []
        events = await client.turn("c" * 4500)
        assert [event["type"] for event in events][:3] == [
            "turn.started", "context.compacted", "assistant.completed",
        ]  # fmt: skip
        compacted = events[1]
        assert (compacted["removed_messages"], compacted["turn_id"]) == (1, events[0]["turn_id"])
        assert compacted["before_tokens"] > 6144 >= compacted["after_tokens"]
        seen = agent.seen[-1]
        assert [entry.text[:5] for entry in seen[1:]] == ["re: a", "bbbbb", "re: b", "ccccc"]
        assert seen[0].text.splitlines()[1].startswith("user: aaa")
        assert len(compactions(await client.turn("d"))) == 1  # each selection is told


async def test_each_step_is_chosen_for_with_the_results_of_this_turn() -> None:
    seen = []

    async def long_steps(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        for number in range(5):
            seen.append(await sink.begin("a system prompt"))
            await sink.completed(f"{number} " + "x" * 6000)
        return AgentUsage(steps=5)

    async with serving(ScriptedAgent(go=long_steps), table=SMALL) as server:
        client = await server.session()
        events = await client.turn("go")
        assert [event["type"] for event in events][1:-1] == [
            *["assistant.completed"] * 4,
            *["context.compacted", "assistant.completed"],
        ]
        assert [entry.text[:2] for entry in seen[-1]][1:] == ["go", "2 ", "3 "]


async def test_an_agent_whose_model_takes_less_is_shown_less() -> None:
    seen = []

    async def small(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        seen.append(await sink.begin(room_tokens=2048))
        await sink.completed("said")
        return AgentUsage(steps=1)

    async with serving(ScriptedAgent(go=small)) as server:
        client = await server.session()
        await client.turn("go " + "a" * 6000)
        assert len(compactions(await client.turn("go"))) == 1
        assert sum(len(entry.text) for entry in seen[-1]) < 6000


class Page:
    """A tool whose result is longer than what is asked for."""

    name, description, risk, arguments = "page", "Read a page.", Risk.READ_ONLY, Arguments

    def summary(self, arguments: Any) -> str:
        return "page"

    async def run(self, arguments: Any, place: CallPlace) -> ToolResult:
        return ToolResult(True, "page " * 10_000)


@pytest.mark.parametrize(
    ("room_tokens", "pages", "ends"),
    [(3000, 1, ("turn.completed", "")), (3000, 8, ("turn.completed", "")), (200, 1, ("turn.failed", LIMIT))],
)
async def test_an_agent_sees_that_it_called_though_the_result_is_longer_than_its_room(
    room_tokens: int, pages: int, ends: tuple[str, str]
) -> None:
    """A model that calls until it sees a result is not asked again and again."""
    rooms = 0

    async def reads(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        nonlocal rooms
        seen: Sequence[HistoryEntry] = ()
        while not any("[Cut here: " in one.text for one in seen):
            rooms += 1
            seen = await sink.begin(room_tokens=room_tokens)
            calls = [ToolCall(name="page", arguments={}) for _ in range(pages)]
            await sink.completed("", calls)
            for call in calls:
                await gate.call(call)
        return AgentUsage(steps=rooms)

    async with serving(ScriptedAgent(go=reads), tools=lambda _, __: {"page": Page()}) as server:
        client = await server.session()
        assert told(await client.turn("go"))[-1] == ends
        assert rooms == 2


async def test_a_message_that_alone_does_not_fit_fails_its_turn() -> None:
    async with serving(ScriptedAgent(), table=SMALL) as server:
        client = await server.session()
        await client.turn("first")
        events = await client.turn("x" * 18_430)
        assert told(events)[1:] == [("turn.failed", "context_limit")]
        assert (await client.turn("x" * 18_420))[-1]["type"] == "turn.completed"


async def test_a_turn_has_so_many_steps_and_no_more() -> None:
    async def endless(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        while True:
            await sink.completed("on and on")
            await sink.begin()

    async with serving(ScriptedAgent(go=endless), table=SessionsTable(max_steps=3)) as server:
        client = await server.session()
        events = told(await client.turn("go"))
        assert [kind for kind, _ in events].count("assistant.completed") == 3
        assert events[-1] == ("turn.failed", "step_limit")


async def test_a_text_that_came_while_a_turn_ran_stands_before_its_next_step() -> None:
    came = asyncio.Event()

    async def two(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.completed("first")
        await came.wait()
        seen = await sink.begin()
        await sink.completed(" | ".join(entry.text for entry in seen))
        return AgentUsage(steps=2)

    async with serving(ScriptedAgent(go=two)) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go")
        turn_id = (await client.until("assistant.completed"))[-1]["turn_id"]
        client.ask("turn.steer", turn_id=turn_id, prompt="and this")
        client.ask("session.pause", paused=False)
        await client.until("session.paused")  # so that the text is there
        came.set()
        assert told(await client.until("turn.completed")) == [
            ("turn.steered", ""),
            ("assistant.completed", "go | first | and this"),
            ("turn.completed", ""),
        ]


async def test_a_turn_has_the_tools_that_there_are_when_it_begins() -> None:
    """A server of tools comes and goes while a session lives."""
    known: dict[str, Tool] = {}

    async def act(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        known.pop("wait", None)  # gone since: the turn still has it
        await sink.completed(" ".join(turn.tools), [call := ToolCall(name="wait", arguments={})])
        await sink.completed((await gate.call(call)).output)
        return AgentUsage(steps=1)

    async with serving(ScriptedAgent(go=act), tools=lambda no_tools, channel: dict(known)) as server:
        client = await server.session()
        said = [
            event["content"] for event in await client.turn("go") if event["type"] == "assistant.completed"
        ]
        assert said == ["", "There is no such tool here."]
        known["wait"] = Wait(FakeClock())
        said = [
            event["content"] for event in await client.turn("go") if event["type"] == "assistant.completed"
        ]
        assert said == ["wait", "The arguments were refused: seconds: Field required"]


# --- what an agent keeps ----------------------------------------------------------------------


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


async def test_an_agent_that_may_not_answer_here_any_more_fails_the_turn() -> None:
    agents = agents_of(ScriptedAgent())
    async with serving(agents) as server:
        client = await server.session()
        agents._profiles, agents._made = Cast({"other": ScriptedAgent()}), {}
        agents._profiles.default = "scripted"
        failed = (await client.turn("x"))[-1]
        assert (failed["code"], "the agents here: other" in failed["message"]) == ("provider_error", True)
