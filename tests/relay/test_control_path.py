"""Control messages never wait behind a turn: an account, the store, the session server and the echo agent.

Time stands still: what is answered here took no time on any clock of ours.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bridge.agents.echo import Echo
from bridge.channel import OutboundPart
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.config import SessionsTable
from bridge.protocol import ours
from bridge.relay.account import Account
from bridge.relay.texts import Language, Text, say
from bridge.sessions.contract import Services
from bridge.sessions.server import SessionServer
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from bridge.tools.choose import tools_for
from tests.relay.harness import OWNER, FakeHealth, PushedChannel, homes, message, request, setup_for
from tests.sessions.wire import agents_of

HANGING = {"turns": 3, "owner_turns": 1}


class Uncontrolled:
    """Nobody controls the daemon here."""

    async def handle(self, command: ours.Command) -> ours.DaemonStatus:
        raise AssertionError(command)


class Chats:
    """The channel's people: what they say, and what they are told by the message that it answers."""

    def __init__(self, account: Account, channel: PushedChannel, clock: FakeClock, workspace: Path) -> None:
        self._account, self.channel, self.clock, self.workspace = account, channel, clock, workspace
        self.count = 0

    async def say(self, text: str, sender: str = OWNER) -> str:
        self.count += 1
        key = f"m{self.count}"
        self.channel.items[key] = (message(key, text, sender),)
        answer = await self._account.handle(request(key.encode(), clock=self.clock))
        assert getattr(answer, "body", b"") == b"accepted"
        return key

    async def told(self, message_id: str) -> str:
        """The answer to a message, within a second of real time and none of ours."""
        async with asyncio.timeout(1.0):
            await until(lambda: message_id in self._told())
        return self._told()[message_id]

    def _told(self) -> dict[str, str]:
        return {one.reply_to: one.text for one in self.channel.sent if isinstance(one, OutboundPart)}


@asynccontextmanager
async def chats(**settings: Any) -> AsyncIterator[Chats]:
    async with homes() as home, open_store(home.db, workers=InlineWorker) as store:
        clock, channel = FakeClock(), PushedChannel()
        workspace = home.root / "workspace"
        home.private_dir(workspace)
        made = setup_for(home, store, clock, channel, limits=HANGING, settings=settings, workspace=workspace)
        services = Services(
            agents=agents_of(Echo(clock)),
            tools=partial(tools_for, home, clock),
            store=store,
            clock=clock,
            control=Uncontrolled(),
            table=SessionsTable(),
        )
        server, account = SessionServer(home.socket, services, "1"), Account(made)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(server.run())
            await server.ready.wait()
            running = tasks.create_task(account.run(FakeHealth()))
            await settle()
            try:
                yield Chats(account, channel, clock, workspace)
            finally:
                running.cancel()
                await settle()
                await clock.advance(400)  # the agents that hang hear of nothing else
                serving.cancel()


async def test_p5_stop_and_status_are_answered_while_agents_hang_in_every_slot() -> None:
    async with chats() as here:
        for stranger in ("a", "b", "c", "d"):
            await here.say("hang 300", stranger)
        await here.say("hang 300")
        await here.say("hello")
        await settle()
        before = here.clock.monotonic()
        status = await here.told(await here.say("/status"))
        assert say(Text.WAITS_TOO, Language.EN, count=1) in status
        assert await here.told(await here.say("/stop", "d")) == say(Text.STOPPED, Language.EN), "of its slot"
        stopped = say(Text.STOPPED_ALL, Language.EN, count=1)
        assert await here.told(await here.say("/stop")) == stopped
        assert await here.told(await here.say("/status", "a")) == say(Text.RUNS, Language.EN, time="0 s")
        assert here.clock.monotonic() == before


async def test_p5_case_60_an_approval_is_given_at_once_while_agents_hang_in_every_slot() -> None:
    async with chats(remote_tools="owner", approvals="ask") as here:
        for stranger in ("a", "b"):
            await here.say("hang 300", stranger)
        writing = await here.say("write note.txt hello")
        await until(lambda: any("/approve" in text for text in here.channel.texts()))
        (question,) = [text for text in here.channel.texts() if "/approve" in text]
        await here.say("and then?")
        found = re.search(r"/approve (\w+)", question)
        assert found is not None
        approving = await here.say(f"/approve {found[1]}")
        assert found[1] in await here.told(approving)
        await here.told(writing)
        assert (here.workspace / "note.txt").read_text() == "hello\n"


async def test_p5_stop_ends_a_turn_that_waits_for_an_approval() -> None:
    async with chats(remote_tools="owner", approvals="ask") as here:
        await here.say("write note.txt hello")
        await until(lambda: any("/approve" in text for text in here.channel.texts()))
        assert await here.told(await here.say("/stop")) == say(Text.STOPPED, Language.EN)
        assert (await here.told(await here.say("hello"))) != ""


async def test_a_text_is_given_to_the_turn_that_runs_and_answered_with_it() -> None:
    """The tool of the first message's turn takes five seconds; the step after it takes the second in."""
    async with chats(remote_tools="owner", when_busy="steer") as here:
        await here.say("progress 5")
        await until(lambda: here.clock.waits()[:1] == [1.0])
        steered = await here.say("and this too")
        assert "1. and this too" in await here.told(await here.say("/queue"))
        for _ in range(6):
            await here.clock.advance(1)
        assert "and this too" in await here.told(steered)
        assert [one.reply_to for one in here.channel.sent] == ["m3", steered], "one reply answers both"
