"""Our own tools on a private socket."""

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from bridge.agents.acp import tools
from bridge.agents.acp.tools import ToolServer
from bridge.agents.contract import ToolCall
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for
from bridge.tools.contract import Tool, ToolResult

ATTACH = {"name": "chat_attach", "arguments": {"path": "a"}}


class Session:
    def __init__(self, home: Home) -> None:
        self.tools: Mapping[str, Tool] = tools_for(home, FakeClock(), False, "Feishu")
        self.calls: list[ToolCall] = []

    async def call(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        return ToolResult(call.arguments != {}, "said", truncated=True)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, line: Any) -> Any:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        self.writer.write(data + b"\n")
        answer = await self.reader.readline()
        return json.loads(answer) if answer else None

    async def request(self, method: str, params: Any = None) -> Any:
        return (await self.ask({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))["result"]


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[ToolServer, Session, str]]:
    home = Home(folder)
    server, session = ToolServer("coder", home), Session(home)
    async with asyncio.TaskGroup() as tasks, server.serving(tasks):
        secret, entry = server.entry(session)
        assert entry["env"] == [{"name": "TURNBRIDGE_TOOLS_SECRET", "value": secret}]
        yield server, session, secret


@asynccontextmanager
async def client(server: ToolServer, secret: str) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_unix_connection(server._path)
    writer.write(secret.encode() + b"\n")
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def test_a_session_s_secret_leads_to_its_tools_and_their_calls(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, session, secret), client(server, secret) as one:
        assert (await one.request("initialize", {"protocolVersion": "v"}))["protocolVersion"] == "v"
        assert (await one.request("initialize"))["serverInfo"]["name"] == "turnbridge"
        assert await one.request("ping") == {}
        (listed,) = [
            tool for tool in (await one.request("tools/list"))["tools"] if tool["name"] == "chat_attach"
        ]
        assert "path" in listed["inputSchema"]["properties"]
        result = await one.request("tools/call", ATTACH)
        assert result == {"content": [{"type": "text", "text": "said\n…"}], "isError": False}
        assert (await one.request("tools/call", {"name": "chat_attach"}))["isError"] is True
        assert [call.arguments for call in session.calls] == [{"path": "a"}, {}]
        for name in ("write_file", "none", None):
            assert (await one.request("tools/call", {"name": name}))["isError"] is True
        assert len(session.calls) == 2


async def test_odd_messages_are_answered_as_such(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _, secret), client(server, secret) as one:
        assert (await one.ask(b"{"))["error"]["code"] == -32700
        assert (await one.ask([1]))["error"]["code"] == -32600
        one.writer.write(b'{"method":"notifications/initialized"}\n')
        assert (await one.ask({"id": 2, "method": "resources/list"}))["error"]["code"] == -32601


async def test_an_id_that_is_none_is_refused_and_ends_nobody_else_s(tmp_path: Path) -> None:
    """One that can just be read is nested too deeply to be written again."""
    async with serving(tmp_path) as (server, _, secret), client(server, secret) as one:
        for depth in range(1, 1000):
            line = b'{"method":"ping","id":' + b"[" * depth + b"]" * depth + b"}"
            assert (await one.ask(line))["error"]["code"] in (-32600, -32700)
        assert await one.request("ping") == {}


async def test_a_wrong_secret_and_a_forgotten_one_lead_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as (server, session, secret):
        for wrong in ("", "x", secret[:-1], "é"):
            async with client(server, wrong) as one:
                assert await one.reader.read() == b""
        async with client(server, secret) as one:
            await one.request("ping")
            server.forget(secret)
            assert await one.ask({"id": 1, "method": "tools/call", "params": ATTACH}) is None
        assert session.calls == []
        monkeypatch.setattr(tools, "SECRET_SECONDS", 0.01)
        reader, writer = await asyncio.open_unix_connection(server._path)
        assert await reader.read() == b""  # it told none
        writer.close()


async def test_it_lies_where_nobody_else_comes_and_leaves_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _, secret):
        assert stat.S_IMODE(server._path.parent.stat().st_mode) == 0o700
        path = server._path
        async with client(server, secret) as one:
            await one.request("ping")  # and it hangs on until the end
    assert not path.exists()


async def test_there_are_only_so_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "MOST_CONNECTIONS", 1)
    async with serving(tmp_path) as (server, _, secret), client(server, secret) as one:
        await one.request("ping")
        async with client(server, secret) as two:
            assert await two.reader.read() == b""


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_program_that_hangs_up_in_its_call_ends_nobody_else_s(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    async def work() -> None:
        async with serving(tmp_path) as (server, session, secret):
            begun, go = asyncio.Event(), asyncio.Event()

            async def call(call: ToolCall) -> ToolResult:
                begun.set()
                await go.wait()
                return ToolResult(True, "x" * 1_000_000)

            session.call = call  # type: ignore[method-assign]  # it takes a while
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(str(server._path))
                one.sendall(f"{secret}\n".encode())
                for method, params in (
                    ("ping", {}),
                    ("tools/call", ATTACH),
                ):  # the first's answer is never read
                    line = json.dumps({"id": 1, "method": method, "params": params})
                    one.sendall(line.encode() + b"\n")
                await begun.wait()
            await asyncio.sleep(0.05)  # the server is told that it has hung up, which nothing shows
            go.set()
            await asyncio.sleep(0.05)  # the answer meets nobody
            async with client(server, secret) as two:
                assert await two.request("ping") == {}

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(work())
