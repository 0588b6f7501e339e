"""A question outlives the account's run, and its connection to the session server: with the real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pytest

from bridge.agents.echo import Echo
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.config import SessionsTable
from bridge.ids import MessageId
from bridge.paths import Home
from bridge.relay.account import Account
from bridge.relay.approvals import short_id
from bridge.relay.judge import Answer
from bridge.relay.payload import conversation_of
from bridge.sessions.contract import Services
from bridge.sessions.server import SessionServer
from bridge.store.contract import Post, Recall
from bridge.store.sqlite import SqliteStore, open_store
from bridge.store.workers import InlineWorker
from bridge.tools.choose import tools_for
from tests.relay.harness import NAME, FakeHealth, PushedChannel, homes, message, request, setup_for
from tests.sessions.wire import agents_of

ASK = {"remote_tools": "owner", "approvals": "ask"}


@dataclass
class Desk:
    """An account that can be started and stopped, on a server that goes on."""

    home: Home
    store: SqliteStore
    clock: FakeClock
    channel: PushedChannel
    account: Account
    running: asyncio.Task[None] | None = None
    count: int = 0

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        self.running = tasks.create_task(self.account.run(FakeHealth()))
        await until(lambda: self.account._run is not None)

    async def stop(self) -> None:
        """As a crash, or the supervisor, ends a run."""
        assert self.running is not None
        self.running.cancel()
        await asyncio.wait([self.running])

    def changed(self, **settings: Any) -> None:
        """The account with other settings is another object."""
        self.account = account_of(self.home, self.store, self.clock, self.channel, **settings)

    async def say(self, text: str) -> None:
        self.count += 1
        self.channel.items[str(self.count)] = (message(f"m{self.count}", text),)
        answer = await self.account.handle(request(str(self.count).encode(), clock=self.clock))
        assert cast(Any, answer).status == 200

    async def heard(self, count: int) -> str:
        """The last of ``count`` texts."""
        await until(lambda: len(self.channel.texts()) >= count)
        await settle()
        assert len(self.channel.texts()) == count, self.channel.texts()
        return self.channel.texts()[-1]

    @property
    def written(self) -> bool:
        return (self.home.root / "a.txt").exists()


def account_of(home: Home, store: Any, clock: FakeClock, channel: Any, **settings: Any) -> Account:
    return Account(setup_for(home, store, clock, channel, settings={**ASK, **settings}, workspace=home.root))


@asynccontextmanager
async def desk(**settings: Any) -> AsyncIterator[tuple[Desk, asyncio.TaskGroup]]:
    clock, channel = FakeClock(), PushedChannel()
    async with homes() as home, open_store(home.db, workers=InlineWorker) as store:
        elsewhere = Home(home.root / "elsewhere")  # so that the workspace is nobody's private folder
        services = Services(
            agents_of(Echo(clock)),
            partial(tools_for, elsewhere, clock),
            store,
            clock,
            cast(Any, None),
            SessionsTable(),
        )
        server = SessionServer(home.socket, services, "1")
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(server.run())
            await server.ready.wait()
            here = Desk(home, store, clock, channel, account_of(home, store, clock, channel, **settings))
            await here.start(tasks)
            yield here, tasks
            await here.stop()
            serving.cancel()


def approval_in(here: Desk) -> str:
    (approval_id,) = here.account._lasting.approvals._open
    return approval_id


async def test_an_answer_counts_after_the_account_was_restarted() -> None:
    async with desk() as (here, tasks):
        await here.say("write a.txt hello")
        await here.heard(1)
        await here.stop()
        await here.clock.advance(60)
        await here.start(tasks)
        await settle()
        assert len(here.channel.texts()) == 1
        await here.say("yes")
        assert await here.heard(3) == "Wrote 6 bytes."
        assert here.written


async def test_an_answer_that_comes_before_the_new_run_has_found_the_turn_counts_too() -> None:
    async with desk() as (here, tasks):
        await here.say("write a.txt hello")
        await here.heard(1)
        asked = approval_in(here)
        await here.stop()
        said = here.account._lasting.approvals.answer(message("m9", f"/approve {short_id(asked)}"))
        assert said is not None
        said.act()
        await here.start(tasks)
        assert await here.heard(2) == "Wrote 6 bytes."


async def test_its_time_goes_on_while_the_account_is_away() -> None:
    async with desk(approval_seconds=90) as (here, tasks):
        await here.say("write a.txt hello")
        await here.heard(1)
        await here.stop()
        await here.clock.advance(80)
        await here.start(tasks)
        await settle()
        await here.clock.advance(10)
        assert "denied" in (await here.heard(3))
        assert "Nobody answered in time" in here.channel.texts()[1]
        assert not here.written


async def test_under_other_settings_the_question_is_asked_again_under_its_id() -> None:
    async with desk() as (here, tasks):
        await here.say("write a.txt hello")
        first = await here.heard(1)
        await here.stop()
        here.changed(language="en")
        await here.start(tasks)
        assert await here.heard(2) == first
        await here.say("/approve")
        assert await here.heard(4) == "Wrote 6 bytes."


@pytest.mark.parametrize(
    ("settings", "written"),
    [({"remote_tools": "none"}, False), ({"owner": "u-other"}, False), ({"approvals": "auto"}, True)],
)
async def test_what_is_due_now_decides(settings: dict[str, Any], written: bool) -> None:
    async with desk() as (here, tasks):
        await here.say("write a.txt hello")
        await here.heard(1)
        await here.stop()
        here.changed(**settings)
        await here.start(tasks)
        said = await here.heard(2)
        assert ("Wrote" in said, here.written) == (written, written)


async def test_a_broken_connection_to_the_session_server_is_made_again() -> None:
    async with desk() as (here, _):
        await here.say("write a.txt hello")
        await here.heard(1)
        assert here.account._run is not None
        (conversation,) = here.account._run.conversations.by_key.values()
        session = conversation._session._session
        assert session is not None
        session._connection._writer.transport.abort()
        await settle()
        await here.say("yes")
        assert await here.heard(3) == "Wrote 6 bytes."
        await here.say("hello")
        assert await here.heard(4) == "You said: hello"


async def test_an_answer_that_meets_a_connection_just_broken_counts() -> None:
    async with desk() as (here, _):
        await here.say("write a.txt hello")
        await here.heard(1)
        assert here.account._run is not None
        (conversation,) = here.account._run.conversations.by_key.values()
        session = conversation._session._session
        assert session is not None
        (question,) = here.account._lasting.approvals._open.values()
        session._connection._writer.transport.abort()
        question.decide(Answer(True))
        assert await here.heard(2) == "Wrote 6 bytes."


async def test_a_stopped_turn_that_asked_is_not_taken_up_by_the_next_message() -> None:
    async with desk() as (here, _):
        await here.say("write a.txt hello")
        await here.heard(1)
        await here.say("/stop")
        await here.heard(2)
        await here.say("hello")
        assert await here.heard(3) == "You said: hello"
        await here.say("/approve")
        assert await here.heard(4) == "Nothing waits for your approval in this chat."
        assert not here.written


async def test_a_run_that_ends_while_a_question_is_being_stored_leaves_it_to_the_next() -> None:
    async with desk() as (here, tasks):
        real, storing = here.store.do, asyncio.Event()

        async def do(step: Any) -> Any:
            if isinstance(step, Post) and not storing.is_set():
                storing.set()
                await asyncio.get_running_loop().create_future()
            return await real(step)

        here.store.do = do  # type: ignore[method-assign]  # it is never stored
        await here.say("write a.txt hello")
        await storing.wait()
        await here.stop()
        assert here.channel.texts() == []
        await here.start(tasks)
        assert "write_file" in await here.heard(1)
        await here.say("yes")
        assert await here.heard(3) == "Wrote 6 bytes."


async def test_a_message_that_ended_while_the_account_was_away_leaves_no_question() -> None:
    async with desk() as (here, tasks):
        await here.say("write a.txt hello")
        await here.heard(1)
        asked = approval_in(here)
        await here.stop()
        await here.store.do(Recall(NAME, MessageId("m1"), conversation_of(message("m1")), 0))
        await here.start(tasks)
        await here.say(f"/approve {short_id(asked)}")
        assert "no longer valid" in await here.heard(2)
        assert not here.written
