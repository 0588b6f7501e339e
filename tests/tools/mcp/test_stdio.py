"""Programs that speak the protocol on their standard input and output, or do not."""

import asyncio
import sys
from collections import deque
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from bridge.tools.mcp import stdio
from bridge.tools.mcp.access import Access
from bridge.tools.mcp.stdio import program
from bridge.tools.processes import StartError, clean_environment

BACK = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def python(code: str) -> Access:
    return Access("p", (sys.executable, "-I", "-S", "-c", code), Path("/"), clean_environment())


def ping(number: int, size: int = 0) -> SessionMessage:
    return SessionMessage(
        types.JSONRPCRequest(jsonrpc="2.0", id=number, method="ping", params={"x": "y" * size})
    )


class Told:
    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.came = asyncio.Event()

    def broken(self, why: str) -> None:
        self.reasons.append(why)
        self.came.set()


async def test_messages_go_both_ways_and_what_is_none_is_skipped() -> None:
    told, said = Told(), deque[str](maxlen=5)
    noisy = "import sys\nprint('Hello!\\n\\n[1]\\n{}', flush=True)\nsys.stderr.write('\\x1b[1mnoted\\n')\n"
    async with program(python(noisy + BACK), told.broken, said) as (read, write):
        await write.send(ping(1, size=100_000))
        item = await read.receive()
        assert isinstance(item, SessionMessage)
        assert isinstance(item.message, types.JSONRPCRequest)
        assert item.message.id == 1
        while not said:
            await asyncio.sleep(0)
    assert (list(said), told.reasons) == (["[1mnoted"], [])


async def test_a_message_without_end_is_lost_and_the_next_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MESSAGE_BYTES", 1000)
    async with program(python(BACK), Told().broken, deque()) as (read, write):
        await write.send(ping(1, size=2000))
        await write.send(ping(2))
        item = await read.receive()
        assert isinstance(item, SessionMessage)
        assert isinstance(item.message, types.JSONRPCRequest)
        assert item.message.id == 2


async def test_how_it_ended_is_told_and_ends_the_stream() -> None:
    told = Told()
    async with program(python("import sys; sys.exit(3)"), told.broken, deque()) as (read, _):
        with pytest.raises(anyio.EndOfStream):
            await read.receive()
        await told.came.wait()
    assert told.reasons == ["its program has ended (exit code 3)"]


async def test_one_that_writes_anything_else_without_end_is_left() -> None:
    told = Told()
    async with program(python("while 1: print('y')"), told.broken, deque()) as (read, _):
        with pytest.raises(anyio.EndOfStream):
            await read.receive()
    assert told.reasons == ["it writes to its standard output what is no message of the protocol"]


async def test_one_that_does_not_read_is_left_and_never_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "WAITING_BYTES", 200_000)
    told = Told()
    async with program(python("import time; time.sleep(99)"), told.broken, deque()) as (_, write):
        with pytest.raises(anyio.BrokenResourceError):
            for number in range(9):
                await write.send(ping(number, size=100_000))
    assert told.reasons == ["it does not read what it is sent"]


async def test_nothing_is_sent_once_it_is_closed() -> None:
    async with program(python(BACK), Told().broken, deque()) as (_, write):
        async with write:
            pass
        with pytest.raises(anyio.ClosedResourceError):
            await write.send(ping(1))


async def test_messages_that_nobody_takes_end_the_reading() -> None:
    endless = "import json\nwhile 1: print(json.dumps({'jsonrpc': '2.0', 'method': 'x'}))"
    async with program(python(endless), Told().broken, deque()) as (read, _):
        await read.receive()
        await read.aclose()
        for _ in range(100):
            await asyncio.sleep(0)


async def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(StartError, match="no-such-program cannot be started"):
        async with program(
            Access("p", ("no-such-program",), Path("/"), {"PATH": "/bin"}), Told().broken, deque()
        ):
            pass
