"""All servers of the settings: each by itself, changed one by one, and what they offer together."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from bridge.channel.testing.clock import START, FakeClock
from bridge.config import Config, DaemonTable, McpTable, Variable
from bridge.paths import Home
from bridge.protocol import ours
from bridge.tools.contract import Risk
from bridge.tools.mcp.catalog import Catalog, Offered
from bridge.tools.mcp.server import State, Status
from bridge.tools.mcp.servers import Servers, to_wire, workspace_of
from tests.tools.mcp.running import offering, soon
from tests.tools.place import Shown

AWAY = McpTable(command=("no-such-program",))


def config(**mcp: McpTable) -> Config:
    return Config(mcp=mcp)


@asynccontextmanager
async def running(place: Path, first: Config) -> AsyncIterator[Servers]:
    (place / "workspace").mkdir(exist_ok=True)
    servers = Servers(Home(place), FakeClock(), {**os.environ, "NOTES": str(place / "notes"), "KEY": "k-1"})
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(servers.run())
        servers.want(first)
        await soon(lambda: len(servers.statuses()) == len(first.mcp))
        yield servers
        task.cancel()


def states(servers: Servers) -> dict[str, State]:
    return {one.name: one.state for one in servers.statuses()}


async def test_each_runs_by_itself_and_tools_are_those_of_all(tmp_path: Path) -> None:
    first = config(good=offering(tmp_path, "a", "b"), away=AWAY)
    async with running(tmp_path, first) as servers:
        assert servers.tools() == {}
        await soon(lambda: states(servers) == {"good": State.CONNECTED, "away": State.BACKOFF})
        tools = servers.tools()
        assert list(tools) == ["good__a", "good__b"]
        assert servers.tools()["good__a"] is tools["good__a"]
        arguments = tools["good__a"].arguments.model_validate({})
        assert (await tools["good__a"].run(arguments, Shown(tmp_path).place)).output == "did a"
        assert [one.name for one in servers.told()] == ["good", "away"]


async def test_what_changes_is_made_anew_and_the_rest_left_alone(tmp_path: Path) -> None:
    good = offering(tmp_path, "a")
    async with running(tmp_path, config(good=good, gone=AWAY, other=good)) as servers:
        await soon(lambda: states(servers)["good"] == states(servers)["other"] == State.CONNECTED)
        kept = servers.tools()["good__a"]
        lost = servers.tools()["other__a"]
        servers.want(config(other=good.model_copy(update={"disabled": ("a",)}), good=good))
        await soon(lambda: states(servers) == {"other": State.CONNECTED, "good": State.CONNECTED})
        assert list(states(servers)) == ["other", "good"]
        assert servers.tools() == {"good__a": kept}
        result = await lost.run(lost.arguments.model_validate({}), Shown(tmp_path).place)
        assert result.output.startswith("The server other of this tool is not there now")


async def test_what_is_wrong_with_one_is_its_own_and_is_looked_at_again(tmp_path: Path) -> None:
    wrong = McpTable(url="http://127.0.0.1:1/mcp", bearer=Variable(env="NONE"))
    async with running(tmp_path, config(wrong=wrong, good=offering(tmp_path, "a"))) as servers:
        await soon(lambda: states(servers) == {"wrong": State.FAILED, "good": State.CONNECTED})
        assert "the environment has no NONE" in servers.statuses()[0].reason
        before, failed = servers.tools()["good__a"], servers.statuses()[0]
        servers.want(config(wrong=wrong, good=offering(tmp_path, "a")))
        await soon(lambda: servers.statuses()[0] is not failed)
        await soon(lambda: states(servers)["wrong"] is State.FAILED)
        assert servers.tools()["good__a"] is before


async def test_agents_of_their_own_are_told_of_those_that_are_switched_on(tmp_path: Path) -> None:
    there = McpTable.model_validate({"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": {"env": "KEY"}}})
    off = McpTable(url="http://127.0.0.1:1/mcp", enabled=False)
    wrong = McpTable.model_validate({"url": "http://127.0.0.1:1/mcp", "bearer": {"env": "NONE"}})
    async with running(tmp_path, config(web=there, off=off, wrong=wrong)) as servers:
        headers = [{"name": "X-Key", "value": "k-1"}]
        assert servers.passed() == [
            {"type": "http", "name": "web", "url": "http://127.0.0.1:1/mcp", "headers": headers}
        ]


async def test_it_begins_anew_where_it_was_ended(tmp_path: Path) -> None:
    async with running(tmp_path, config(good=offering(tmp_path, "a"))) as servers:
        await soon(lambda: states(servers) == {"good": State.CONNECTED})
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(servers.run())
        before = servers.statuses()
        await soon(lambda: servers.statuses()[0] is not before[0])
        await soon(lambda: states(servers) == {"good": State.CONNECTED})
        task.cancel()


def test_a_status_is_told_in_the_daemons_words() -> None:
    tool = Offered("s__a", "a\x1b", "what\nit does", Risk.NETWORK, {})
    due = START + timedelta(seconds=5)
    status = Status("s", "http", State.BACKOFF, START, "lost", due, "it 1", Catalog((tool,), ("note",)))
    told = to_wire(status)
    assert told.tools == (ours.McpTool(name="s__a", own="a", risk="network", description="what it does"),)
    assert (told.state, told.reason, told.says, told.notes) == ("backoff", "lost", "it 1", ("note",))
    assert told.next_try_unix_seconds == told.since_unix_seconds + 5
    assert to_wire(Status("s", "http", State.STARTING, START)).next_try_unix_seconds is None


def test_the_root_is_the_daemons_workspace(tmp_path: Path) -> None:
    assert workspace_of(Home(tmp_path), Config()) == tmp_path / "workspace"
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    chosen = Config(daemon=DaemonTable(workspace=str(link)))
    assert workspace_of(Home(tmp_path), chosen) == tmp_path.resolve()
