"""What anybody can see from outside of a running account, each rule as one test."""

import asyncio
import json
from contextlib import closing
from sqlite3 import connect

import pytest

from bridge import logs
from bridge.channel import Batch, FileKind, Refused, RemoteFile, UnreachableError
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.errors import ConfigError
from bridge.health import Health, Snapshot, State
from bridge.paths import Home
from bridge.relay.account import Account
from bridge.store.contract import CountsOf
from tests.relay.harness import (
    NAME,
    OWNER,
    STRANGER,
    FakeHealth,
    PollingChannel,
    desk,
    homes,
    message,
    setup_for,
)
from tests.relay.scripted import Frame, Peer


async def endless(peer: Peer, start: Frame) -> None:
    await peer.turn("turn.started", start["request_id"])


def rows(home: Home) -> list[str]:
    """All that is stored, as SQL."""
    with closing(connect(f"file:{home.db}?mode=ro", uri=True)) as db:
        return list(db.iterdump())


async def test_of_a_stranger_who_is_not_answered_one_line_is_logged_and_nothing_else_is_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("debug", as_json=True)
    async with desk(settings={"senders": "owner"}) as here:
        capsys.readouterr()
        files = (RemoteFile("k", FileKind.IMAGE, name="wedding.png"),)
        await here.say("the stranger's words", STRANGER, files=files)
        await settle()
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        assert [line["event"] for line in lines] == ["intake.ignored"]
        told = json.dumps(lines)
        assert all(private not in told for private in (STRANGER, "words", "wedding", "m1"))
        assert (here.channel.sent, here.channel.fetched, here.server.peers) == ([], [], [])
        assert list(here.home.root.rglob("*wedding*")) == []
        assert "the stranger's words" not in "".join(rows(here.home))


async def test_the_33rd_conversation_closes_the_session_that_was_used_longest_ago() -> None:
    async with desk(limits={"owner_sessions": 0}) as here:
        for n in range(32):
            await here.say("x", f"s{n}")
            await here.answered(n + 1)
            await here.clock.advance(1)
        await here.say("x", "s0")  # the first one is used again
        await here.answered(33)
        assert here.server.closed == 0
        await here.say("x", "new")
        await here.answered(34)
        await until(lambda: here.server.closed == 1)
        assert [peer.session_id for peer in here.server.peers if peer.writer.is_closing()] == ["s2"]


async def test_the_ends_of_receiving_are_the_states_and_the_last_success_stays() -> None:
    channel, clock = PollingChannel(), FakeClock()
    channel.batches = [Batch([], "1"), UnreachableError("it is down"), Batch([], "2")]
    async with desk(channel, clock=clock, run=False) as here:
        health = Health(Snapshot(NAME, "test", "a", State.STARTING, clock.now()), clock)
        seen: list[tuple[State, bool]] = []

        async def receive(checkpoint: str) -> Batch:
            seen.append((health.snapshot.state, health.snapshot.last_success is not None))
            return await PollingChannel.receive(channel, checkpoint)

        channel.receive = receive  # type: ignore[method-assign]  # looks at the state before each poll
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(health))
            while len(seen) < 4:
                await settle()
                await clock.advance(30)
            assert seen[:2] == [(State.STARTING, False), (State.CONNECTED, True)]
            assert seen[2:] == [(State.DISCONNECTED, True), (State.CONNECTED, True)]
            running.cancel()


async def test_other_credentials_change_nothing_of_what_is_stored_and_contact_nobody() -> None:
    async with homes() as home:
        clock, channel = FakeClock(), PollingChannel()
        async with desk(home=home, clock=clock, script={"turn": endless}) as before:
            await before.say("hi")
        async with desk(home=home, clock=clock, run=False) as after:
            stored = rows(home)
            spec = {"identity": lambda settings, credentials: ("another",)}
            with pytest.raises(ConfigError):
                await Account(setup_for(home, after.store, clock, channel, spec=spec)).run(FakeHealth())
            assert (rows(home), channel.polled, after.server.peers) == (stored, [], [])


async def test_a_stop_hangs_up_on_every_session_and_keeps_every_claim() -> None:
    async with desk(script={"turn": endless}, run=False) as here:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(here.account.run(here.health))
            await settle()
            for sender in (OWNER, STRANGER, "another"):
                await here.say("one", sender)
                await here.say("two", sender)
            await until(lambda: len(here.server.frames("turn.start")) == 3)
            running.cancel()
        await until(lambda: here.server.closed == 3)
        assert (await here.store.get(CountsOf(NAME))).waiting == 6
        assert here.channel.sent == []


async def test_five_senders_have_four_sessions_and_the_fifth_after_one_turn_has_ended() -> None:
    finish = asyncio.Event()

    async def first_ends(peer: Peer, start: Frame) -> None:
        await peer.turn("turn.started", start["request_id"])
        if start["prompt"] == "from p0":
            await finish.wait()
            await peer.turn("turn.failed", start["request_id"], code="internal_error", message="no")

    async with desk(script={"turn": first_ends}, limits={"owner_turns": 0}) as here:
        for n in range(5):
            await here.push(message(f"m{n}", f"from p{n}", f"p{n}"))
            await settle()
        await until(lambda: len(here.server.frames("turn.start")) == 4)
        await settle()
        assert len(here.server.peers) == 4
        finish.set()
        await until(lambda: len(here.server.frames("turn.start")) == 5)
        assert len(here.server.peers) == 5


@pytest.mark.parametrize("text", ["/stop", "/new", "/approve abcde", "/帮助"])
async def test_what_an_agent_says_is_sent_as_it_is_and_is_never_a_command(text: str) -> None:
    async def says(peer: Peer, start: Frame) -> None:
        await peer.turn("turn.started", start["request_id"])
        await peer.turn("assistant.completed", start["request_id"], content=text)
        await peer.turn("turn.completed", start["request_id"], steps=1, usage={})

    async with desk(script={"turn": says}) as here:
        for _ in range(2):
            await here.say("go on")
        assert await here.answered(2) == [text, text]
        assert (here.server.opened, len(here.server.peers)) == (1, 1)
        assert here.server.frames("turn.cancel") == []


async def test_a_busy_notice_that_is_refused_is_not_held() -> None:
    async with desk(script={"turn": endless}) as here:
        here.channel.outcomes = [Refused("it is too much", code="1")]
        for n in range(9):
            await here.say(f"t{n}")
        await until(lambda: here.channel.outcomes == [])
        await settle()
        counts = await here.store.get(CountsOf(NAME))
        assert (counts.waiting, counts.dead, counts.open_parts) == (8, 0, 0)
