"""The protocol, with real servers of the SDK: over either way, of either age, and with every fault."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import MCPError
from pydantic import BaseModel, ValidationError

from bridge.channel.testing.clock import FakeClock
from bridge.config import McpTable
from bridge.errors import BridgeError
from bridge.tools.mcp import connection as connections
from bridge.tools.mcp import stdio
from bridge.tools.mcp.connection import CallError, Connection
from bridge.tools.mcp.errors import RefusedError, ServerError
from bridge.tools.processes import StartError
from tests.tools.mcp.running import notes, program, soon, way_to, web_server


async def nothing(progress: float, total: float | None, message: str | None) -> None:
    return None


@asynccontextmanager
async def connected(
    table: McpTable, place: Path, clock: FakeClock | None = None
) -> AsyncIterator[tuple[Connection, asyncio.Event]]:
    wake = asyncio.Event()
    one = Connection(way_to(table, place), table, place, clock or FakeClock(), wake)
    async with one.opened():
        yield one, wake


@asynccontextmanager
async def of_kind(kind: str, place: Path) -> AsyncIterator[McpTable]:
    way, *words = kind.split()
    if way == "stdio":
        yield program(*words, call_seconds=30)
        return
    with web_server(place / "notes", *words) as url:
        yield McpTable(url=url, call_seconds=30)


def said(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("kind", ["stdio", "stdio old", "http", "http old"])
async def test_a_server_of_either_kind_and_age_works_whole(kind: str, tmp_path: Path) -> None:
    async with of_kind(kind, tmp_path) as table, connected(table, tmp_path) as (one, wake):
        assert one.server == "playing 1.0"
        first = await one.listed()
        assert first[0].name == "echo"
        assert first[0].schema["required"] == ["text"]
        assert said(await one.call("echo", {"text": "hi"}, nothing)).startswith("hi ")
        steps: list[tuple[Any, ...]] = []

        async def show(progress: float, total: float | None, message: str | None) -> None:
            steps.append((progress, total, message))

        await one.call("steps", {}, show)
        assert sorted(steps, key=str) == [(1.0, 2.0, "half"), (2.0, 2.0, None)]
        assert (await one.call("fail", {}, nothing)).is_error
        assert (await one.call("liar", {}, nothing)).structured_content == {"a": "b" * 30}  # nobody checks it
        assert tmp_path.as_uri() in said(await one.call("roots", {}, nothing))
        with pytest.raises(CallError, match=r"which is not offered|not supported"):
            await one.call("person", {}, nothing)
        with pytest.raises(CallError, match=r"It refused the call: not\[31m today"):
            await one.call("refuse", {}, nothing)
        await _cancelled(one, tmp_path)
        wake.clear()
        while not wake.is_set():  # a change before it is listened for is missed, as any may be
            await one.call("change", {}, nothing)
            await asyncio.sleep(0.02)
        assert len(await one.listed()) > len(first)
        assert one.broken == ""


async def _cancelled(one: Connection, place: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        calling = tasks.create_task(one.call("slow", {}, nothing))
        await soon(lambda: notes(place) == ["begun"])
        calling.cancel()
    await soon(lambda: notes(place) == ["begun", "cancelled"])


async def test_a_call_has_its_time_and_the_server_is_told_of_its_end(tmp_path: Path) -> None:
    async with connected(program(call_seconds=0.2), tmp_path) as (one, wake):
        with pytest.raises(CallError, match=r"did not answer within 0\.2 seconds and was told to stop"):
            await one.call("slow", {}, nothing)
        await soon(lambda: notes(tmp_path) == ["begun", "cancelled"])
        assert wake.is_set()


async def test_a_server_that_dies_in_a_call_is_told_of_in_both(tmp_path: Path) -> None:
    async with connected(program(), tmp_path) as (one, wake):
        with pytest.raises(CallError, match="ended before it answered: what it did is unknown"):
            await one.call("die", {}, nothing)
        await wake.wait()
        await soon(lambda: one.broken == "its program has ended (exit code 7)")
        with pytest.raises(CallError, match="ended before"):
            await one.call("echo", {"text": "x"}, nothing)
    assert str(one.explained(RuntimeError())) == "its program has ended (exit code 7)"


async def test_what_is_larger_than_a_message_may_be_ends_its_call_alone(tmp_path: Path) -> None:
    with web_server(tmp_path / "notes") as url:
        async with connected(McpTable(url=url, call_seconds=20), tmp_path) as (one, _):
            with pytest.raises(CallError, match="refused the call"):
                await one.call("enormous", {}, nothing)
            assert said(await one.call("echo", {"text": "hi"}, nothing)).startswith("hi")


async def test_a_list_of_many_pages_is_read_to_its_end_or_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(program("many"), tmp_path) as (one, _):
        assert len(await one.listed()) == 5000
        monkeypatch.setattr(connections, "MOST_LISTED", 1500)
        assert len(await one.listed()) == 1500
        monkeypatch.setattr(connections, "MOST_PAGES", 1)
        assert len(await one.listed()) == 1000


async def test_one_that_sends_more_than_anybody_can_take_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "FLOOD_MESSAGES", 500)
    async with connected(program(), tmp_path) as (one, wake):
        await one.call("flood", {}, nothing)
        assert one.broken == "it sends more than anybody can take"
        assert wake.is_set()


async def test_garbage_before_the_first_message_is_no_harm(tmp_path: Path) -> None:
    async with connected(program("garbage", "stderr"), tmp_path) as (one, _):
        assert await one.listed()
        await soon(lambda: bool(one.said))
    assert list(one.said) == ["[31mI begin"]


def leaf(error: BaseException) -> BaseException:
    return leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def failure(table: McpTable, place: Path) -> BridgeError:
    """What it is explained by, when no connection comes about."""
    one = Connection(way_to(table, place), table, place, FakeClock(), asyncio.Event())
    try:
        async with one.opened():
            await one.listed()
    except (BridgeError, MCPError, BaseExceptionGroup) as error:
        return one.explained(leaf(error))
    raise AssertionError("it came about")


async def test_why_no_connection_came_about_is_told_and_what_to_do(tmp_path: Path) -> None:
    refused = "it refuses us (401): correct its headers and bearer, or their private file"
    with web_server(tmp_path / "notes", "closed") as url:
        found = await failure(McpTable(url=url), tmp_path)
        assert isinstance(found, RefusedError)
        assert str(found) == refused
        lost = await failure(McpTable(url=url.replace("/mcp", "/other")), tmp_path)
        assert isinstance(lost, RefusedError)
    assert str(await failure(McpTable(url=url), tmp_path)) == "its address cannot be reached"
    assert isinstance(await failure(McpTable(command=("no-such-program",)), tmp_path), StartError)
    unlisted = await failure(program("unlisted"), tmp_path)
    assert str(unlisted) == "it refuses what the protocol asks for (error -32603)"


def test_errors_of_the_library_become_ours(tmp_path: Path) -> None:
    table = McpTable(url="http://127.0.0.1/mcp", start_seconds=7)
    one = Connection(way_to(table, tmp_path), table, tmp_path, FakeClock(), asyncio.Event())
    assert one.server == ""
    with pytest.raises(ValidationError) as odd:
        Odd.model_validate({})
    for error, told in (
        (ServerError("as it is"), "as it is"),
        (TimeoutError(), "it was not ready within 7 seconds"),
        (MCPError(types.REQUEST_TIMEOUT, "x"), "it does not answer within 30 seconds"),
        (MCPError(types.CONNECTION_CLOSED, "x"), "it hung up"),
        (httpx2.ReadError("x"), "it hung up"),
        (odd.value, "it does not speak the protocol"),
        (KeyError("a bug"), "it made our side fail: the log says where"),
    ):
        assert str(one.explained(error)) == told
    assert one.wire is not None
    one.wire.status = 500
    assert str(one.explained(RuntimeError())) == "it answers with status 500: look at its url"


class Odd(BaseModel):
    x: int


RAW = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if asked["method"] == "initialize":
        info = {"name": "r", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": CAPABLE, "serverInfo": info}
    elif asked["method"] == "tools/call":
        answer["result"] = ANSWER
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    if "id" in asked:
        print(json.dumps(answer), flush=True)
"""


def raw(answer: object, capable: object) -> McpTable:
    code = RAW.replace("CAPABLE", repr(capable)).replace("ANSWER", repr(answer))
    return McpTable(command=(sys.executable, "-I", "-S", "-c", code))


async def test_a_server_without_tools_has_none_and_an_answer_that_is_none_is_told(tmp_path: Path) -> None:
    async with connected(raw({"content": 7}, {}), tmp_path) as (one, _):
        assert await one.listed() == []
        with pytest.raises(CallError, match="none that the protocol knows"):
            await one.call("x", {}, nothing)


async def test_a_server_that_reads_nothing_takes_no_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(raw({}, {}), tmp_path) as (one, _):
        monkeypatch.setattr(stdio, "WAITING_BYTES", -1)
        with pytest.raises(CallError):
            await one.call("x", {}, nothing)
        assert one.broken == "it does not read what it is sent"


async def test_a_call_that_is_asked_back_again_and_again_comes_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_ROUNDS", 1)
    async with connected(program(), tmp_path) as (one, _):
        with pytest.raises(CallError, match="again and again"):
            await one.call("roots", {}, nothing)
