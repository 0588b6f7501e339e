"""Turns one after the other: the queue, pause, clear, and the numbers over all of it."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.agents.contract import AgentUsage, Gate, Sink, Turn
from bridge.channel.testing.clock import settle, until
from bridge.config import SessionsTable
from bridge.protocol.limits import PROMPT_BYTES, QUEUE_ITEMS
from tests.sessions.keeping import agent, asking, attach, taken_up, tools, writes
from tests.sessions.wire import ENDS, Client, Event, ScriptedAgent, serving


class Held:
    """An agent's act that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await self.go.wait()
        await sink.completed("done")
        return AgentUsage(steps=1)


async def started(client: Client, prompt: str = "hold") -> str:
    """Start a turn; its id once it runs."""
    client.ask("turn.start", prompt=prompt, request_id="running")
    event = await client.event()
    assert event["type"] == "turn.started", event
    turn_id: str = event["turn_id"]
    return turn_id


def gap_free(client: Client) -> bool:
    return client.numbers() == list(range(1, len(client.numbers()) + 1))


async def test_a_turn_that_starts_while_another_runs_waits_for_its_end() -> None:
    held = Held()
    async with serving(ScriptedAgent(hold=held)) as server:
        client = await server.session()
        first = await started(client)
        for position, prompt in enumerate(("a", "b")):
            asked = client.ask("turn.start", prompt=prompt)
            event = await client.event()
            assert (event["type"], event["request_id"], event["position"]) == (
                "queue.enqueued",
                asked,
                position,
            )
            assert event["entry"] == {
                "queue_id": event["entry"]["queue_id"],
                "revision": 1,
                "prompt": prompt,
                "submitter": asked,
            }
        held.go.set()
        events = [await client.event() for _ in range(2 + 4 + 4)]
        assert [event["type"] for event in events] == [
            *("assistant.completed", "turn.completed"),
            *("queue.dequeued", "turn.started", "assistant.completed", "turn.completed") * 2,
        ]
        assert events[1]["turn_id"] == first
        for index in (2, 6):  # both of an entry's turn carry the new turn's id and the submitter's request id
            ids = {(event["turn_id"], event["request_id"]) for event in events[index : index + 4]}
            assert len(ids) == 1
        assert gap_free(client)


async def test_five_messages_at_once_run_strictly_one_after_the_other_case_94() -> None:
    async with serving() as server:
        client = await server.session()
        for number in range(5):
            client.ask("turn.start", prompt=f"p{number}", request_id=f"q{number}")
        events: list[Event] = []
        while sum(event["type"] in ENDS for event in events) < 5:
            events.append(await client.event())
        open_turn = ""
        order = []
        for event in events:
            if event["type"] == "turn.started":
                assert not open_turn
                open_turn = event["turn_id"]
                order.append(event["request_id"])
            elif event["type"].startswith("assistant."):
                assert event["turn_id"] == open_turn
            elif event["type"] in ENDS:
                assert event["turn_id"] == open_turn
                open_turn = ""
        assert order == [f"q{number}" for number in range(5)]
        assert gap_free(client)


async def test_a_queue_of_64_is_full() -> None:
    held = Held()
    async with serving(ScriptedAgent(hold=held)) as server:
        client = await server.session()
        await started(client)
        for _ in range(QUEUE_ITEMS):
            client.ask("turn.start", prompt="a")
            assert (await client.event())["type"] == "queue.enqueued"
        asked = client.ask("turn.start", prompt="a")
        event = await client.event()
        assert (event["code"], event["request_id"]) == ("queue_limit", asked)


@pytest.mark.parametrize("prompt", ["", " \t\n", "x" * (PROMPT_BYTES + 1)])
async def test_a_bad_prompt_starts_nothing(prompt: str) -> None:
    async with serving() as server:
        client = await server.session()
        client.ask("turn.start", prompt=prompt)
        assert await client.error() == "invalid_request"
        assert (await client.turn("good"))[0]["seq"] == 2


async def test_bad_attachments_start_nothing_and_good_ones_reach_the_agent() -> None:
    agent = ScriptedAgent()
    async with serving(agent) as server:
        client = await server.session()
        path = server.workspace / "a.txt"
        path.write_text("abc")
        given = {"kind": "file", "path": str(path), "name": "a.txt", "mime": "text/plain", "size": 3}
        client.ask("turn.start", prompt="x", attachments=[{**given, "size": 4}])
        assert await client.error() == "invalid_request"
        client.ask("turn.start", prompt="x", attachments=[given] * 17)
        assert await client.error() == "invalid_request"
        assert (await client.turn("", attachments=[given]))[-1]["type"] == "turn.completed"
        assert [file.path for file in agent.turns[0].files] == [path]


async def test_an_attachment_waits_with_its_turn() -> None:
    held, agent = Held(), ScriptedAgent()
    agent.acts["hold"] = held
    async with serving(agent) as server:
        client = await server.session(no_tools=True)
        path = server.workspace / "a.txt"
        path.write_text("abc")
        await started(client)
        given = {"kind": "file", "path": str(path), "size": 3}
        client.ask("turn.start", prompt="", attachments=[given])
        assert (await client.event())["entry"]["attachments"] == [given]
        held.go.set()
        await client.until("turn.completed")
        await client.until("turn.completed")
        assert [(file.size, file.path) for file in agent.turns[1].files] == [(3, None)]


async def test_cancelling_ends_the_turn_under_its_own_request_and_the_next_one_starts() -> None:
    async with serving(ScriptedAgent(hold=Held())) as server:
        client = await server.session()
        turn_id = await started(client)
        client.ask("turn.start", prompt="next", request_id="next")
        await client.event()
        client.ask("turn.cancel", turn_id="another")
        assert await client.error() == "turn_not_found"
        client.ask("turn.cancel", turn_id=turn_id)
        client.ask("turn.cancel", turn_id=turn_id)  # again, before the end: nothing
        event = await client.event()
        assert (event["type"], event["turn_id"], event["request_id"]) == (
            "turn.cancelled",
            turn_id,
            "running",
        )
        assert (await client.until("turn.completed"))[-1]["request_id"] == "next"
        assert gap_free(client)


async def test_an_entry_that_waits_cannot_be_cancelled_but_removed() -> None:
    held = Held()
    async with serving(ScriptedAgent(hold=held)) as server:
        client = await server.session()
        await started(client)
        client.ask("turn.start", prompt="next")
        entry = (await client.event())["entry"]
        client.ask("turn.cancel", turn_id=entry["queue_id"])
        assert await client.error() == "turn_not_found"
        client.ask("queue.remove", queue_id=entry["queue_id"], revision=1)
        assert (await client.event())["type"] == "queue.removed"
        held.go.set()
        await client.until("turn.completed")
        assert (await client.turn("last"))[0]["type"] == "turn.started"


async def test_while_paused_turns_wait_and_the_end_of_the_pause_starts_them() -> None:
    async with serving() as server:
        client = await server.session()
        client.ask("session.pause", paused=True, request_id="p")
        event = await client.event()
        assert (event["type"], event["paused"], event["request_id"]) == ("session.paused", True, "p")
        client.ask("turn.start", prompt="a")
        assert (await client.event())["type"] == "queue.enqueued"
        client.ask("session.pause", paused=False)
        types = [event["type"] for event in await client.until("turn.completed")]
        assert types[:3] == ["session.paused", "queue.dequeued", "turn.started"]


async def test_a_pause_leaves_the_running_turn_alone() -> None:
    held = Held()
    async with serving(ScriptedAgent(hold=held)) as server:
        client = await server.session()
        await started(client)
        client.ask("session.pause", paused=True)
        client.ask("turn.start", prompt="next")
        held.go.set()
        await client.until("turn.completed")
        client.ask("session.clear")  # the session is idle, although its queue is not empty
        cleared, snapshot = await client.event(), await client.event()
        assert cleared["type"] == "session.cleared"
        assert (snapshot["type"], snapshot["entries"], snapshot["paused"]) == ("queue.snapshot", [], True)
        assert gap_free(client)


async def test_clearing_forgets_the_history_and_goes_on_counting() -> None:
    agent = ScriptedAgent()
    async with serving(agent) as server:
        client = await server.session()
        await client.turn("first")
        client.ask("session.clear", request_id="c")
        cleared, snapshot = await client.event(), await client.event()
        assert (cleared["type"], cleared["request_id"]) == ("session.cleared", "c")
        assert (snapshot["type"], snapshot["request_id"], snapshot["entries"]) == ("queue.snapshot", None, [])
        await client.turn("second")
        assert agent.seen[1][:-1] == ()
        assert gap_free(client)
        await client.close()
        again = await server.client()
        again.say(type="session.attach", session_id=client.session_id, cwd=str(server.workspace))
        await again.until("turn.completed")
        again.session_id = client.session_id
        await again.turn("third")
        assert [entry.text for entry in agent.seen[2][:-1]] == ["second", "re: second"]


async def test_a_running_turn_cannot_be_cleared_away() -> None:
    held = Held()
    async with serving(ScriptedAgent(hold=held)) as server:
        client = await server.session()
        await started(client)
        client.ask("session.clear")
        assert await client.error() == "turn_active"
        held.go.set()
        ended = (await client.until("turn.completed"))[-1]
        client.ask("session.clear")
        cleared = await client.event()
        assert (cleared["type"], cleared["seq"]) == ("session.cleared", ended["seq"] + 1)


async def test_a_snapshot_that_fits_no_frame_is_left_out_after_a_conflict() -> None:
    async with serving(table=SessionsTable(max_server_frame_bytes=65_536)) as server:
        client = await server.session()
        client.ask("session.pause", paused=True)
        await client.event()
        for _ in range(2):
            client.ask("turn.start", prompt="x" * 40_000)
        entry = [await client.event() for _ in range(2)][-1]["entry"]
        client.ask("queue.remove", queue_id=entry["queue_id"], revision=9)
        assert await client.error() == "queue_conflict"
        client.ask("queue.remove", queue_id=entry["queue_id"], revision=1)
        assert (await client.event())["type"] == "queue.removed"
        client.ask("queue.update", queue_id=entry["queue_id"], revision=1, prompt="x")
        assert await client.error() == "queue_not_found"


async def test_an_entry_is_moved_and_updated_before_it_runs() -> None:
    agent = ScriptedAgent()
    async with serving(agent) as server:
        client = await server.session()
        client.ask("session.pause", paused=True)
        await client.event()
        entries = []
        for prompt in "abc":
            client.ask("turn.start", prompt=prompt)
            entries.append((await client.event())["entry"]["queue_id"])
        client.ask("queue.move", queue_id=entries[2], revision=1, before_queue_id=entries[0])
        client.ask("queue.update", queue_id=entries[1], revision=1, prompt="B")
        client.ask("session.pause", paused=False)
        for _ in range(3):
            await client.until("turn.completed")
        assert [turn.prompt for turn in agent.turns] == ["c", "a", "B"]


class Stream:
    """Checks a session's stream as it comes: numbers without gaps, and one turn at a time."""

    def __init__(self) -> None:
        self.running = ""
        self.begun: set[str] = set()
        self.ended: set[str] = set()
        self.waiting: dict[str, int] = {}
        self.last = 1

    def see(self, event: Event) -> None:
        kind = event["type"]
        if "seq" in event:
            assert event["seq"] == self.last + 1
            self.last = event["seq"]
        if kind == "queue.enqueued":
            self.waiting[event["entry"]["queue_id"]] = event["entry"]["revision"]
        elif kind in ("queue.dequeued", "queue.removed"):
            del self.waiting[event["queue_id"]]
        elif kind in ("queue.moved", "queue.updated"):
            entry = event.get("entry", event)
            self.waiting[entry["queue_id"]] = entry["revision"]
        elif kind == "session.cleared":
            assert not self.running
            self.waiting.clear()
        elif kind == "turn.started":
            assert not self.running
            self.running = event["turn_id"]
            self.begun.add(self.running)
        elif kind in ENDS:
            assert event["turn_id"] == self.running
            self.ended.add(self.running)
            self.running = ""
        elif "turn_id" in event and kind != "queue.dequeued":
            assert event["turn_id"] == self.running


ACTS = ("start", "start", "hold", "cancel", "pause", "resume", "clear", "remove", "move", "update", "read")
MORE: dict[str, dict[str, Any]] = {"move": {"before_queue_id": None}, "update": {"prompt": "start"}}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 9)), max_size=25))
async def test_whatever_a_client_asks_the_stream_stays_well_formed(acts: list[tuple[str, int]]) -> None:
    held = Held()
    async with serving(ScriptedAgent(hold=held)) as server:
        client, stream = await server.session(), Stream()
        for act, number in acts:
            waiting = list(stream.waiting.items())
            entry = (
                dict(zip(("queue_id", "revision"), waiting[number % len(waiting)], strict=True))
                if waiting
                else {}
            )
            match act:
                case "start" | "hold":
                    client.ask("turn.start", prompt=act)
                case "cancel":
                    client.ask("turn.cancel", turn_id=stream.running)
                case "pause" | "resume":
                    client.ask("session.pause", paused=act == "pause")
                case "clear":
                    client.ask("session.clear")
                case "remove" | "move" | "update" if entry:
                    client.ask(f"queue.{act}", **entry, **MORE.get(act, {}))
            mark = client.say(type="daemon.control", command={"action": "status"})
            while (event := await client.event()).get("request_id") != mark:
                stream.see(event)
        held.go.set()
        client.ask("session.pause", paused=False, request_id="last")
        resumed = False
        while not resumed or stream.running or stream.waiting:
            event = await client.event()
            stream.see(event)
            resumed = resumed or event.get("request_id") == "last"
        assert stream.begun == stream.ended


async def test_an_entry_that_fits_no_frame_is_refused_and_changes_nothing() -> None:
    table = SessionsTable(max_server_frame_bytes=65_536)
    async with serving(ScriptedAgent(hold=Held()), table=table) as server:
        client = await server.session()
        await started(client)
        client.ask("turn.start", prompt="x" * 70_000)
        assert await client.error() == "queue_limit"
        client.ask("turn.start", prompt="fits")
        entry = (await client.event())["entry"]
        client.ask("queue.update", queue_id=entry["queue_id"], revision=1, prompt="x" * 70_000)
        assert await client.error() == "queue_limit"
        client.ask("queue.update", queue_id=entry["queue_id"], revision=1, prompt="changed")
        assert (await client.event())["entry"] == {**entry, "revision": 2, "prompt": "changed"}
        assert gap_free(client)


async def test_a_session_changes_hands_in_its_turn_and_loses_its_queue_and_pause() -> None:
    async with serving(agent(), tools) as server:
        client, asked = await asking(server)
        client.ask("session.pause", paused=True)
        client.ask("turn.start", prompt="lost", request_id="m2")
        await client.until("queue.enqueued")
        for _ in range(2):
            await client.close()
            client, told = await taken_up(server, client.session_id)
            assert (told[1]["entries"], told[1]["paused"]) == ([], False)
        client.ask("turn.start", prompt="next", request_id="m3")
        client.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        assert (await client.until("turn.completed"))[-1]["request_id"] == "m1"
        assert (await client.until("turn.completed"))[-1]["request_id"] == "m3"


async def test_a_client_that_took_a_turn_over_and_does_not_read_loses_it_and_the_session_goes_on() -> None:
    said: list[int] = []

    async def asks_and_talks(turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        await writes(turn, sink, gate)
        while True:
            await sink.completed("x" * 10_000)
            said.append(1)

    async with serving(ScriptedAgent(write=asks_and_talks), tools) as server:
        first, asked = await asking(server)
        await first.close()
        second, _ = await taken_up(server, first.session_id)
        second.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
        second.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
        await until(lambda: bool(said))
        seen = 0
        while len(said) > seen:  # until there is no room for more
            seen = len(said)
            await settle()
        second.ask("turn.cancel", turn_id=asked["turn_id"])
        third = await attach(server, first.session_id)
        while (await third.event())["type"] == "error":  # the second one's time is not up
            await asyncio.sleep(0.001)
            third.say(type="session.attach", session_id=first.session_id, cwd=str(server.workspace))
        await third.until("turn.cancelled")
        assert (await third.turn("next"))[-1]["type"] == "turn.completed"
