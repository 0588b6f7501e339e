"""How a session starts, and how a stored one is taken up again."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.contract import AgentError, AgentUsage, Gate, Role, Sink, Turn
from bridge.channel.testing.clock import settle
from bridge.clock import unix_ms
from bridge.config import SessionsTable
from bridge.ids import SessionId, TurnId
from bridge.protocol import ours
from bridge.protocol.codec import write
from bridge.protocol.events import AssistantCompleted, TurnCompleted
from bridge.protocol.shared import Usage
from bridge.sessions.context import SessionSettings
from bridge.sessions.contract import Deadlines, Services
from bridge.sessions.errors import FrameTooLargeError
from bridge.sessions.live import LiveSessions
from bridge.sessions.opening import Opener
from bridge.sessions.outbound import Outbound
from bridge.store.contract import (
    BeginTurn,
    EndTurn,
    LoadSession,
    OpenSession,
    Prune,
    ReserveSeq,
    SessionRecord,
)
from tests.sessions.keeping import agent, asking, taken_up, tools
from tests.sessions.wire import (
    Client,
    DaemonControl,
    Event,
    ScriptedAgent,
    Server,
    agents_of,
    no_tools,
    serving,
)

FOREIGN = "00000000-0000-4000-8000-000000000000"


async def attach(server: Server, session_id: str, **fields: Any) -> Client:
    """A client that has asked for the session; nothing is read yet."""
    client = await server.client()
    client.session_id = session_id
    fields.setdefault("cwd", str(server.workspace))
    client.say(type="session.attach", session_id=session_id, request_id="attach", **fields)
    return client


async def attached(client: Client) -> list[Event]:
    """All that an attach is answered with: up to the refusal of a second one."""
    client.say(type="session.attach", session_id=client.session_id, cwd="/", request_id="mark")
    events = await client.until("error")
    assert events[-1]["request_id"] == "mark"
    return events[:-1]


async def test_a_session_starts_with_the_figures_of_the_settings_and_an_empty_queue() -> None:
    table = SessionsTable(context_max_tokens=20_000, max_transcript_bytes=2, max_transcript_items=3)
    async with serving(table=table) as server:
        link = server.home / "link"
        link.symlink_to(server.workspace)
        client = await server.client()
        client.say(type="session.start", cwd=str(link), request_id="s", future="ignored")
        started, snapshot = await client.event(), await client.event()
        session_id = started.pop("session_id")
        assert started == {
            "type": "session.started",
            "request_id": "s",
            "cwd": str(server.workspace),
            "model": "echo",
            "context_max_tokens": 20_000,
            "max_server_frame_bytes": 8_388_608,
            "max_transcript_bytes": 2,
            "max_transcript_items": 3,
            "max_prompt_history_bytes": 1_048_576,
            "max_prompt_history_items": 200,
        }
        assert snapshot == {
            "type": "queue.snapshot",
            "request_id": None,
            "session_id": session_id,
            "seq": 1,
            "entries": [],
            "paused": False,
        }


@pytest.mark.parametrize(
    "fields",
    [
        {"channel": ""},
        {"channel": "  "},
        {"channel": "x" * 33},
        {"channel": "é" * 17},
        {"channel": "We\x00Chat"},
        {"channel": "WeChat\n"},
        {"provider": "other"},
        {"base_url": "https://example.com"},
        {"model": "larger"},
        {"cwd": ""},
        {"cwd": "/no/such/folder"},
        {"cwd": "/etc/hostname"},
        {"cwd": "/a\0b"},
    ],
)
async def test_a_start_with_bad_values_is_refused_and_may_be_repeated(fields: dict[str, Any]) -> None:
    async with serving() as server:
        client = await server.client()
        client.say(type="session.start", **{"cwd": str(server.workspace), **fields})
        assert await client.error() == "invalid_request"
        assert not [step for step in server.store.steps if isinstance(step, OpenSession)]
        await client.start(channel="x" * 32, model="echo")


async def test_links_in_a_circle_are_no_cwd() -> None:
    async with serving() as server:
        (server.home / "circle").symlink_to(server.home / "circle")
        client = await server.client()
        client.say(type="session.start", cwd=str(server.home / "circle"))
        assert await client.error() == "invalid_request"


async def test_a_cwd_whose_name_is_no_text_is_refused() -> None:
    async with serving() as server:
        odd = Path(os.fsdecode(os.fsencode(server.home) + b"/\xff"))
        odd.mkdir()
        (server.home / "link").symlink_to(odd)
        client = await server.client()
        client.say(type="session.start", cwd=str(server.home / "link"))
        assert await client.error() == "invalid_request"


async def test_the_session_is_stored_as_it_was_started() -> None:
    chat = {"channel": "feishu", "account": "main", "conversation": "c"}
    async with serving() as server:
        client = await server.session(no_tools=True, channel="Feishu", auto_approve=False, chat=chat)
        stored = await server.store.get(LoadSession(SessionId(client.session_id)))
        assert stored is not None
        assert stored.record.cwd == str(server.workspace)
        assert '"no_tools": true' in stored.record.settings
        assert '"conversation": "c"' in stored.record.settings


async def test_an_attach_tells_how_the_last_turn_ended_under_its_own_ids() -> None:
    async with serving() as server:
        client = await server.session()
        await client.turn("first")
        turn = await client.turn("second", request_id="own")
        await client.close()
        again = await attach(server, client.session_id)
        started, snapshot, said, ended = await attached(again)
        assert (started["type"], started["request_id"]) == ("session.started", "attach")
        assert started["session_id"] == client.session_id
        assert (snapshot["type"], snapshot["request_id"], snapshot["entries"]) == ("queue.snapshot", None, [])
        assert (said["type"], said["content"]) == ("assistant.completed", "You said: second")
        assert ended["type"] == "turn.completed"
        assert {(event["request_id"], event["turn_id"]) for event in (said, ended)} == {
            ("own", turn[-1]["turn_id"])
        }
        assert [snapshot["seq"], said["seq"], ended["seq"]] == list(range(client.numbers()[-1] + 1, 99))[:3]


async def test_an_attached_session_goes_on_with_its_history_and_rights() -> None:
    agent = ScriptedAgent()
    async with serving(agent) as server:
        client = await server.session(channel="Feishu", no_tools=True)
        await client.turn("remember this")
        await client.close()
        again = await attach(server, client.session_id)
        await attached(again)
        await again.turn("and now")
        turn = agent.turns[-1]
        assert [(entry.role, entry.text) for entry in agent.seen[-1][:-1]] == [
            (Role.USER, "remember this"),
            (Role.ASSISTANT, "re: remember this"),
        ]
        assert (turn.channel, turn.session_id, dict(turn.tools)) == ("Feishu", client.session_id, {})


async def test_numbers_never_repeat_over_attaches() -> None:
    async with serving() as server:
        client = await server.session()
        last = client.numbers()[-1]
        for _ in range(4):
            for paused in (True, False):
                client.ask("session.pause", paused=paused)
                await client.event()
            await client.close()
            assert client.numbers() == list(range(client.numbers()[0], client.numbers()[-1] + 1))
            last = client.numbers()[-1]
            client = await attach(server, client.session_id)
            await attached(client)
            assert client.numbers()[0] > last


async def test_an_attach_needs_the_session_and_its_cwd() -> None:
    async with serving() as server:
        client = await server.session()
        await client.close()
        other = server.home / "other"
        other.mkdir()
        for session_id, cwd in (
            (FOREIGN, server.workspace),
            (client.session_id, other),
            (client.session_id, "/none"),
            ("", server.workspace),
        ):
            again = await attach(server, session_id, cwd=str(cwd))
            assert await again.error() == "session_not_found"
            await again.close()
        again = await server.client()
        again.say(type="session.attach", session_id=client.session_id, cwd=str(server.workspace))
        assert (await again.event())["type"] == "session.started"  # the refused ones hold nothing


async def test_a_session_that_is_attached_elsewhere_is_refused() -> None:
    async with serving() as server:
        client = await server.session()
        again = await attach(server, client.session_id)
        assert await again.error() == "invalid_request"
        await client.close()
        again.say(type="session.attach", session_id=client.session_id, cwd=str(server.workspace))
        assert (await again.event())["type"] == "session.started"
        third = await attach(server, client.session_id)
        assert await third.error() == "invalid_request"


async def test_an_attach_waits_for_the_end_of_the_connection_before() -> None:
    may_stop = asyncio.Event()

    async def slow_to_stop(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.completed("on it")
        try:
            await asyncio.Event().wait()
        finally:
            await may_stop.wait()
        raise AssertionError

    async with serving(ScriptedAgent(go=slow_to_stop), deadlines=Deadlines()) as server:
        client = await server.session()
        client.ask("turn.start", prompt="go", request_id="own")
        await client.until("assistant.completed")
        client.writer.close()
        again = await attach(server, client.session_id)
        await settle()
        may_stop.set()
        events = await attached(again)
        assert [event["type"] for event in events[2:]] == ["assistant.completed", "turn.cancelled"]
        assert {event["request_id"] for event in events[2:]} == {"own"}


async def test_turns_that_a_crash_cut_off_end_as_failed() -> None:
    async with serving() as server:
        client = await server.session()
        await client.turn("first", request_id="one")
        await client.close()
        session_id = SessionId(client.session_id)
        for name in ("two", "three"):  # as a server that died leaves them
            await server.store.do(BeginTurn(session_id, TurnId(f"t-{name}"), name, 5000, 0))
        again = await attach(server, client.session_id)
        events = (await attached(again))[2:]
        assert [(event["type"], event["request_id"]) for event in events] == [
            ("assistant.completed", "one"),
            ("turn.completed", "one"),
            ("turn.failed", "two"),
            ("turn.failed", "three"),
        ]
        assert {event.get("code") for event in events[2:]} == {"internal_error"}
        assert events[0]["seq"] > 5000
        await again.close()
        last = await attach(server, client.session_id)
        events = (await attached(last))[2:]
        assert [(event["type"], event["turn_id"]) for event in events] == [("turn.failed", "t-three")]
        assert last.numbers()[0] > again.numbers()[-1]


async def test_a_session_that_is_only_taken_up_is_not_forgotten_as_unused() -> None:
    async with serving() as server:
        client = await server.session()
        await client.close()
        first_ms = unix_ms(server.clock.now())
        server.clock.jump(3600)
        again = await attach(server, client.session_id)
        await attached(again)
        await again.close()
        await server.store.do(Prune(first_ms + 1, 0))
        assert await server.store.get(LoadSession(SessionId(client.session_id))) is not None
        await server.store.do(Prune(unix_ms(server.clock.now()) + 1, 0))
        lost = await attach(server, client.session_id)
        assert await lost.error() == "session_not_found"


async def test_an_attach_that_cannot_record_is_refused_and_may_be_repeated() -> None:
    async with serving() as server:
        client = await server.session()
        await client.close()
        await server.store.do(BeginTurn(SessionId(client.session_id), TurnId("t"), "own", 5000, 0))
        server.store.failing = {EndTurn}
        again = await attach(server, client.session_id)
        assert await again.error() == "internal_error"
        server.store.failing = {ReserveSeq}  # this one is not needed
        again.say(type="session.attach", session_id=client.session_id, cwd=str(server.workspace))
        assert (await again.until("turn.failed"))[-1]["turn_id"] == "t"


async def test_a_failed_turn_is_told_without_its_history() -> None:
    async def broken(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await sink.completed("half")
        raise AgentError("provider_error", "no")

    agent = ScriptedAgent(go=broken)
    async with serving(agent) as server:
        client = await server.session()
        await client.turn("go")
        await client.close()
        again = await attach(server, client.session_id)
        events = (await attached(again))[2:]
        assert [event["type"] for event in events] == ["assistant.completed", "turn.failed"]
        await again.turn("next")
        assert agent.seen[-1][:-1] == ()


async def test_a_start_that_cannot_be_answered_leaves_nothing_behind() -> None:
    live = LiveSessions()
    async with serving() as server:
        services = Services(
            agents_of(ScriptedAgent()), no_tools, server.store, server.clock, DaemonControl(), SessionsTable()
        )
        opener = Opener(services, live, Outbound())
        start = ours.SessionStart(request_id="x" * 9_000_000, cwd=str(server.workspace))
        with pytest.raises(FrameTooLargeError):
            await opener.start(start)
    assert live._held == {}


@pytest.mark.parametrize(
    ("settings", "frame", "entry"),
    [
        ("{}", b"{}", "{}"),
        (SessionSettings().encode(), b'{"type":"no"', '{"role":"user","text":"a"}'),
        (SessionSettings().encode(), b'{"type":"turn.cancelled"}', '{"role":"user","text":"a"}'),
        (SessionSettings().encode()[:-1] + ',"later":1}', b"", '{"role":"user","text":"a"}'),
        (SessionSettings().encode(), b"", '{"role":"someone"}'),
    ],
)
async def test_a_session_that_cannot_be_read_is_as_good_as_gone(
    settings: str, frame: bytes, entry: str
) -> None:
    async with serving() as server:
        record = SessionRecord(SessionId(FOREIGN), str(server.workspace), settings, 64)
        await server.store.do(OpenSession(record, 1))
        frames = (frame,) if frame else ()
        await server.store.do(EndTurn(record.session_id, TurnId("t"), frames, (entry,), 64, 2))
        client = await attach(server, FOREIGN)
        assert await client.error() == "session_not_found"
        await client.start()  # the connection goes on


async def test_an_end_of_a_turn_that_does_not_fit_any_more_is_not_told_in_part() -> None:
    async with serving(table=SessionsTable(max_server_frame_bytes=65_536)) as server:
        record = SessionRecord(SessionId(FOREIGN), str(server.workspace), SessionSettings().encode(), 64)
        await server.store.do(OpenSession(record, 1))
        ids: dict[str, Any] = {"request_id": "r", "session_id": FOREIGN, "turn_id": "t", "seq": 7}
        said = AssistantCompleted(**ids, content="x" * 70_000)
        end = TurnCompleted(**ids, steps=1, usage=Usage())
        frames = (write(said), write(end))
        await server.store.do(EndTurn(record.session_id, TurnId("t"), frames, (), 64, 2))
        client = await attach(server, FOREIGN)
        assert [event["type"] for event in await attached(client)] == ["session.started", "queue.snapshot"]


async def test_a_session_in_a_turn_that_waits_for_an_approval_is_taken_up_with_it() -> None:
    async with serving(agent(), tools) as server:
        first, asked = await asking(server)
        await first.close()
        _, told = await taken_up(server, first.session_id)
        assert [one["type"] for one in told[:3]] == ["session.started", "queue.snapshot", "turn.started"]
        assert told[-1]["approval_id"] == asked["approval_id"]
