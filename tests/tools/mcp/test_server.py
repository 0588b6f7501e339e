"""One server, kept connected by a fake clock's time; its programs are real."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.channel.testing.clock import FakeClock
from bridge.config import McpTable
from bridge.errors import BridgeError, ConfigError
from bridge.tools.contract import Risk
from bridge.tools.mcp import server as servers
from bridge.tools.mcp.access import Access
from bridge.tools.mcp.catalog import Offered
from bridge.tools.mcp.server import Server, State, Status, shown
from tests.tools.mcp.running import offering, soon, way_to, web_server
from tests.tools.place import Shown


class Watched:
    """A server that runs, and all that it told."""

    def __init__(self, table: McpTable, place: Path, access: Access | BridgeError | None = None) -> None:
        self.clock, self.place = FakeClock(), place
        self.told: list[Status] = []
        how = access or way_to(table, place)
        self.server = Server("p", table, how, place, self.clock, random.Random(1), self.told.append)

    async def until(self, state: State, fits: Callable[[Status], bool] = lambda _: True) -> Status:
        await soon(lambda: self.server.status.state is state and fits(self.server.status))
        return self.server.status

    def tool(self, own: str) -> Offered:
        return next(one for one in self.server.status.catalog.tools if one.own == own)

    async def passing(self, condition: Callable[[], bool]) -> None:
        """Let time pass until that is so."""
        while not condition():
            await self.clock.advance(1)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(
    table: McpTable, place: Path, access: Access | BridgeError | None = None
) -> AsyncIterator[Watched]:
    watched = Watched(table, place, access)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(watched.server.run())
        yield watched
        task.cancel()


async def test_it_is_connected_in_the_background_and_its_tools_are_known(tmp_path: Path) -> None:
    async with running(offering(tmp_path, "a", "b"), tmp_path) as here:
        assert here.server.status.state is State.STARTING
        status = await here.until(State.CONNECTED)
        assert [one.name for one in status.catalog.tools] == ["p__a", "p__b"]
        assert (status.says, status.kind, status.reason) == ("simple 1", "stdio", "")
        result = await here.server.call(here.tool("a"), {}, Shown(tmp_path).place)
        assert (result.success, result.output) == (True, "did a")


async def test_tools_that_change_are_seen_at_the_next_look_and_the_same_stay_as_they_are(
    tmp_path: Path,
) -> None:
    async with running(offering(tmp_path, "a"), tmp_path) as here:
        before = (await here.until(State.CONNECTED)).catalog
        await here.clock.advance(servers.LOOK_SECONDS + 1)
        await asyncio.sleep(0.1)  # it is asked, and what it answers changes nothing that could be waited for
        assert here.server.status.catalog is before
        offering(tmp_path, "a", "c")
        await here.passing(lambda: len(here.server.status.catalog.tools) == 2)


async def test_a_server_that_dies_in_mid_call_is_told_and_started_anew(tmp_path: Path) -> None:
    async with running(offering(tmp_path, "die", "a"), tmp_path) as here:
        await here.until(State.CONNECTED)
        result = await here.server.call(here.tool("die"), {}, Shown(tmp_path).place)
        assert not result.success
        assert result.output.startswith("The server p: The connection to it ended")
        await here.passing(lambda: here.server.status.state is State.BACKOFF)
        status = here.server.status
        assert status.reason == "its program has ended (exit code 4)"
        assert status.next_try is not None
        assert len(status.catalog.tools) == 2  # what is known stays known
        gone = await here.server.call(here.tool("a"), {}, Shown(tmp_path).place)
        assert gone.output == (
            "The server p of this tool is not there now: its program has ended (exit code 4)."
        )
        await here.passing(lambda: here.server.status.state is State.CONNECTED)
        assert (await here.server.call(here.tool("a"), {}, Shown(tmp_path).place)).success


async def test_each_change_is_told_once_however_often_it_is_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(McpTable(command=("no-such-program",)), tmp_path) as here:
        status = await here.until(State.BACKOFF)
        assert "cannot be started" in status.reason
        tries = [one.next_try for one in here.told if one.next_try]
        await here.passing(lambda: len({one.next_try for one in here.told if one.next_try}) > 4)
        assert tries
        assert len({one.since for one in here.told if one.state is State.BACKOFF}) == 1
    assert capsys.readouterr().out.count("mcp.changed") <= 1


async def test_a_call_shows_how_far_it_is_has_its_time_and_keeps_looks_away(tmp_path: Path) -> None:
    place = Shown(tmp_path)
    async with running(offering(tmp_path, "wait", call_seconds=0.3), tmp_path) as here:
        await here.until(State.CONNECTED)
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(here.server.call(here.tool("wait"), {}, place.place))
            await soon(lambda: bool(place.lines))
            offering(tmp_path, "refuse")  # which a look would find
            await here.clock.advance(servers.LOOK_SECONDS * 3)
            assert here.server.status.state is State.CONNECTED
        assert "did not answer within 0.3 seconds" in call.result().output
        assert place.lines == ["on it (1 of 4)"]
        await here.passing(lambda: here.server.status.state is State.BACKOFF)
        assert here.server.status.reason == "it refuses what the protocol asks for (error -32603)"


async def test_one_that_refuses_us_is_left_alone_for_long(tmp_path: Path) -> None:
    with web_server(tmp_path / "notes", "closed") as url:
        async with running(McpTable(url=url), tmp_path) as here:
            status = await here.until(State.FAILED)
            assert "it refuses us (401)" in status.reason
            assert status.next_try is not None
            assert (status.next_try - here.clock.now()).total_seconds() >= 60


async def test_what_the_operator_must_mend_is_not_tried_again(tmp_path: Path) -> None:
    async with running(offering(tmp_path), tmp_path, ConfigError("set it")) as here:
        status = await here.until(State.FAILED)
        assert (status.reason, status.next_try) == ("set it", None)
        result = await here.server.call(Offered("p__a", "a", "", Risk.PROCESS, {}), {}, Shown(tmp_path).place)
        assert result.output == "The server p of this tool is not there now: set it."


async def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(servers, "import_module", missing)
    async with running(offering(tmp_path), tmp_path) as here:
        assert "pip install '.[llm]' in a clone" in (await here.until(State.FAILED)).reason


async def test_one_that_never_gets_ready_is_left_in_time(tmp_path: Path) -> None:
    sleeping = McpTable(command=("sleep", "99"), start_seconds=0.1)
    async with running(sleeping, tmp_path) as here:
        assert (await here.until(State.BACKOFF)).reason == "it was not ready within 0.1 seconds"


async def test_a_long_connection_begins_the_waits_anew(tmp_path: Path) -> None:
    async with running(offering(tmp_path, "die"), tmp_path) as here:
        for _ in range(2):
            await here.passing(lambda: here.server.status.state is State.CONNECTED)
            here.clock._monotonic += servers.PROVEN_SECONDS + 1
            await here.server.call(here.tool("die"), {}, Shown(tmp_path).place)
            await here.passing(lambda: here.server.status.state is State.BACKOFF)
            due = here.server.status.next_try
            assert due is None or (due - here.clock.now()).total_seconds() <= 1.0


async def test_one_that_is_switched_off_does_nothing(tmp_path: Path) -> None:
    watched = Watched(offering(tmp_path, enabled=False), tmp_path)
    await watched.server.run()
    assert watched.server.status.state is State.DISABLED
    assert watched.told == []


async def test_cancelling_ends_its_program(tmp_path: Path) -> None:
    async with running(offering(tmp_path, "a"), tmp_path) as here:
        await here.until(State.CONNECTED)
        tool = here.tool("a")
    assert not (await here.server.call(tool, {}, Shown(tmp_path).place)).success


def test_progress_is_a_line() -> None:
    assert shown(1, 4, "on it") == "on it (1 of 4)"
    assert shown(0.5, None, None) == "0.5"
