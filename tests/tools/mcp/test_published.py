"""A server that others publish: ``@modelcontextprotocol/server-everything``, as npm installs it."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from bridge.channel.testing.clock import FakeClock
from bridge.config import McpTable
from bridge.tools.mcp.server import Server, State
from tests.tools.mcp.running import soon, way_to
from tests.tools.place import Shown

pytestmark = pytest.mark.check

NAME = "mcp-server-everything"
HERE = Path(__file__).parents[3] / ".npm-agents"


async def test_the_server_with_everything_works_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [os.environ.get("TURNBRIDGE_NPM") or str(HERE), str(HERE)]
    binaries = [f"{folder}/node_modules/.bin" for folder in folders]
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], *binaries]))
    if shutil.which(NAME) is None:
        pytest.skip("@modelcontextprotocol/server-everything is not installed: make agents")
    table, place = McpTable(command=(NAME,)), Shown(tmp_path)
    server = Server("all", table, way_to(table, tmp_path), tmp_path, FakeClock())
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(server.run())
        await soon(lambda: server.status.state is not State.STARTING)
        assert server.status.state is State.CONNECTED, server.status
        tools = {one.own: one for one in server.status.catalog.tools}
        assert server.status.catalog.notes == ()
        echoed = await server.call(tools["echo"], {"message": "hello"}, place.place)
        assert (echoed.success, "hello" in echoed.output) == (True, True)
        image = next(name for name in tools if "image" in name.lower())
        assert "mcp-files/all-" in (await server.call(tools[image], {}, place.place)).output
        long = next(name for name in tools if "long" in name.lower())
        assert (await server.call(tools[long], {"duration": 1, "steps": 2}, place.place)).success
        assert place.lines
        task.cancel()
