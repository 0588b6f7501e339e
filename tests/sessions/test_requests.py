"""Which message is answered with what, and which error code."""

from typing import Any

import pytest

from bridge.store.contract import ClearSession, OpenSession
from tests.sessions.offering import Offering
from tests.sessions.wire import serving

FOREIGN = "00000000-0000-4000-8000-000000000000"
OF_SESSION: list[tuple[str, dict[str, Any]]] = [
    ("turn.start", {"prompt": "x"}),
    ("queue.update", {"queue_id": "q", "revision": 1, "prompt": "x"}),
    ("queue.move", {"queue_id": "q", "revision": 1, "before_queue_id": None}),
    ("queue.remove", {"queue_id": "q", "revision": 1}),
    ("session.pause", {"paused": True}),
    ("approval.resolve", {"approval_id": "a", "approved": True}),
    ("session.clear", {}),
    ("turn.steer", {"turn_id": "t", "prompt": "x"}),
    ("session.configure", {}),
    ("session.compact", {}),
]


async def test_initialize_comes_first() -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        client.say(type="session.start", cwd="/", request_id="early")
        event = await client.event()
        assert (event["code"], event["request_id"], event["fatal"]) == ("not_initialized", "early", False)
        client.say(type="daemon.control", command={"action": "status"})
        assert await client.error() == "not_initialized"
        client.say(
            type="initialize", protocol_version=3, client={"name": "t", "version": "0"}, request_id="i"
        )
        assert await client.event() == {
            "type": "initialized",
            "request_id": "i",
            "protocol_version": 3,
            "server": {"name": "turnbridge", "version": "1.2.3"},
        }


@pytest.mark.parametrize("version", [0, 2, 4, 2**32 - 1])
async def test_another_version_is_fatal_and_the_server_hangs_up(version: int) -> None:
    async with serving() as server:
        client = await server.client(initialize=False)
        client.say(type="initialize", protocol_version=version, client={"name": "t", "version": "0"})
        client.say(type="initialize", protocol_version=3, client={"name": "t", "version": "0"})
        event = await client.event()
        assert (event["code"], event["fatal"]) == ("version_mismatch", True)
        assert "3" in event["message"]
        assert await client.at_end()


async def test_a_second_initialize_is_refused_whatever_its_version() -> None:
    async with serving() as server:
        client = await server.client()
        for version in (3, 2):
            client.say(type="initialize", protocol_version=version, client={"name": "t", "version": "0"})
            assert await client.error() == "invalid_request"
        await client.start()


async def test_the_daemon_is_controlled_without_a_session() -> None:
    async with serving() as server:
        client = await server.client()
        client.say(type="daemon.control", command={"action": "status"}, request_id="s")
        event = await client.event()
        assert (event["type"], event["request_id"], event["status"]["components"]) == (
            "daemon.status",
            "s",
            [],
        )
        for action, code in (("reload", "component_error"), ("restart_when_idle", "restart_error")):
            client.say(type="daemon.control", command={"action": action}, request_id=action)
            event = await client.event()
            assert (event["code"], event["request_id"], event["message"]) == (code, action, "not now")
        client.say(type="daemon.control", command={"action": "dance"})
        assert await client.error() == "invalid_json"


@pytest.mark.parametrize(("kind", "fields"), OF_SESSION)
async def test_a_message_needs_the_session_of_its_connection(kind: str, fields: dict[str, Any]) -> None:
    async with serving() as server:
        client = await server.client()
        client.ask(kind, session_id=FOREIGN, **fields)
        assert await client.error() == "session_not_found"
        await client.start()
        client.ask(kind, session_id=FOREIGN, **fields)
        assert await client.error() == "session_not_found"


async def test_a_cancel_of_what_does_not_run_is_turn_not_found() -> None:
    async with serving() as server:
        client = await server.client()
        client.ask("turn.cancel", session_id=FOREIGN, turn_id="t")
        assert await client.error() == "turn_not_found"
        await client.start()
        for session_id in (client.session_id, FOREIGN):
            client.ask("turn.cancel", session_id=session_id, turn_id="t")
            assert await client.error() == "turn_not_found"
        ended = (await client.turn("hello"))[-1]
        client.ask("turn.cancel", turn_id=ended["turn_id"])
        assert await client.error() == "turn_not_found"


async def test_an_unknown_approval_is_not_found() -> None:
    async with serving() as server:
        client = await server.session()
        client.ask("approval.resolve", approval_id="a", approved=True)
        assert await client.error() == "approval_not_found"


async def test_a_steer_of_what_does_not_run_is_turn_not_found() -> None:
    async with serving() as server:
        client = await server.session()
        client.ask("turn.steer", turn_id="t", prompt="more")
        assert await client.error() == "turn_not_found"
        ended = (await client.turn("hello"))[-1]
        client.ask("turn.steer", turn_id=ended["turn_id"], prompt="more")
        assert await client.error() == "turn_not_found"


async def test_a_session_tells_who_answers_in_it_and_refuses_whom_nobody_knows() -> None:
    async with serving() as server:
        client = await server.session()
        asked = client.ask("session.configure")
        told = await client.event()
        assert (told["type"], told["request_id"], told["agent"]) == ("session.configured", asked, "scripted")
        client.ask("session.configure", agent="nobody")
        assert await client.error() == "invalid_request"
        assert (await client.turn("still here"))[-1]["type"] == "turn.completed"


async def test_a_session_is_summed_up_by_an_agent_that_can() -> None:
    async with serving(Offering()) as server:
        client = await server.session()
        await client.turn("word " * 500)
        asked = client.ask("session.compact")
        told = await client.event()
        assert (told["type"], told["request_id"]) == ("session.compacted", asked)
        assert told["before_tokens"] > told["after_tokens"] > 0


async def test_a_connection_has_one_session() -> None:
    async with serving() as server:
        client = await server.session()
        client.say(type="session.start", cwd=str(server.workspace))
        assert await client.error() == "invalid_request"
        client.say(type="session.attach", session_id=client.session_id, cwd=str(server.workspace))
        assert await client.error() == "invalid_request"
        assert (await client.turn("still here"))[-1]["type"] == "turn.completed"


async def test_a_failed_start_may_be_tried_again() -> None:
    async with serving() as server:
        client = await server.client()
        server.store.failing = {OpenSession}
        client.say(type="session.start", cwd=str(server.workspace))
        assert await client.error() == "internal_error"
        client.say(type="session.attach", session_id=FOREIGN, cwd=str(server.workspace))
        assert await client.error() == "session_not_found"
        server.store.failing.clear()
        await client.start()


async def test_what_cannot_be_stored_is_an_internal_error() -> None:
    async with serving() as server:
        client = await server.session()
        server.store.failing = {ClearSession}
        client.ask("session.clear")
        assert await client.error() == "internal_error"


async def test_the_queue_is_changed_and_a_conflict_shows_what_it_is_now() -> None:
    async with serving() as server:
        client = await server.session()
        client.ask("session.pause", paused=True)
        assert (await client.event())["type"] == "session.paused"
        client.ask("turn.start", prompt="a")
        entry = (await client.event())["entry"]
        client.ask("queue.update", queue_id=entry["queue_id"], revision=1, prompt="b")
        assert (await client.event())["entry"] == {**entry, "prompt": "b", "revision": 2}
        client.ask("queue.move", queue_id=entry["queue_id"], revision=2, before_queue_id=None)
        moved = await client.event()
        assert (moved["type"], moved["position"], moved["revision"]) == ("queue.moved", 0, 3)
        asked = client.ask("queue.remove", queue_id=entry["queue_id"], revision=1)
        assert await client.error() == "queue_conflict"
        snapshot = await client.event()
        assert (snapshot["type"], snapshot["request_id"], snapshot["paused"]) == (
            "queue.snapshot",
            asked,
            True,
        )
        assert [one["revision"] for one in snapshot["entries"]] == [3]
        client.ask("queue.remove", queue_id=entry["queue_id"], revision=3)
        removed = await client.event()
        assert (removed["type"], removed["revision"]) == ("queue.removed", 3)
        client.ask("queue.remove", queue_id=entry["queue_id"], revision=3)
        assert await client.error() == "queue_not_found"
