"""The answer in one piece reads as aiohttp's own does, and goes out only where it can."""

import asyncio
import socket
import struct
from email.utils import formatdate

import pytest

from bridge.channel import Answer
from bridge.channel.testing.clock import START
from bridge.clock import unix_seconds
from bridge.web.brief import Brief
from tests.web.raw import Client, FakeAccount, client, get, post, served

ANSWER = Answer(200, b'{"ok":true}')
ROUTE = "/channels/pigeon/main"


async def test_it_says_status_length_date_and_who_serves() -> None:
    async with served(FakeAccount(Answer(429, b'{"a":1}'))) as listener, client(listener) as caller:
        await caller.say(post(b"{}"))
        head = (await caller.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        assert await caller.reader.readexactly(7) == b'{"a":1}'
    assert head[0] == "HTTP/1.1 429 Too Many Requests"
    assert sorted(head[1:-2]) == [
        "Content-Length: 7",
        "Content-Type: application/json",
        f"Date: {formatdate(unix_seconds(START), usegmt=True)}",
        "Server: turnbridge",
    ]


async def test_the_connection_is_kept_and_pipelined_requests_are_answered_in_order() -> None:
    account = FakeAccount(ANSWER)
    async with served(account) as listener, client(listener) as caller:
        await caller.say(post(b"1") + post(b"2") + post(b"3"))
        for _ in range(3):
            assert await caller.answer() == (200, await _headers(caller), b'{"ok":true}')
    assert [request.body for request in account.requests] == [b"1", b"2", b"3"]


async def _headers(_: Client) -> dict[str, str]:
    return {
        "content-length": "11",
        "content-type": "application/json",
        "date": formatdate(unix_seconds(START), usegmt=True).lower(),
        "server": "turnbridge",
    }


@pytest.mark.parametrize(
    ("answer", "request_", "shown"),
    [
        (Answer(200, b"{}", headers={"Retry-After": "5"}), post(b"{}"), "retry-after"),
        (ANSWER, post(b"{}", headers="Connection: close\r\n"), "connection"),
        (ANSWER, post(b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"), "server"),
        (Answer(200, b"hi", "text/plain"), get(ROUTE), "content-type"),
        (Answer(299, b"{}"), get(ROUTE), "content-length"),
        (Answer(200, b" " * 5000), get(ROUTE), "content-length"),
    ],
)
async def test_what_has_more_to_it_is_answered_whole(answer: Answer, request_: bytes, shown: str) -> None:
    async with served(FakeAccount(answer)) as listener, client(listener) as caller:
        await caller.say(request_)
        status, headers, body = await caller.answer()
    assert (status, body, shown in headers) == (answer.status, answer.body, True)


@pytest.mark.parametrize("status", [204, 304])
async def test_what_has_no_body_gets_none(status: int) -> None:
    async with served(FakeAccount(Answer(status))) as listener, client(listener) as caller:
        await caller.say(get(ROUTE))
        head = (await caller.reader.readuntil(b"\r\n\r\n")).decode()
        await caller.say(get("/nowhere"))
        assert (await caller.answer())[0] == 404
    assert head.startswith(f"HTTP/1.1 {status} ")


async def test_a_head_request_gets_the_length_and_no_body() -> None:
    async with served(FakeAccount(ANSWER)) as listener, client(listener) as caller:
        await caller.say(get(ROUTE).replace(b"GET", b"HEAD"))
        head = (await caller.reader.readuntil(b"\r\n\r\n")).decode()
        await caller.say(get("/nowhere"))
        assert (await caller.answer())[0] == 404
    assert "Content-Length: 11" in head


async def test_a_client_that_left_meanwhile_harms_nobody() -> None:
    account = FakeAccount(ANSWER, gate=asyncio.Event())
    assert account.gate is not None
    async with served(account) as listener:
        async with client(listener) as caller:
            await caller.say(post(b"{}"))
            while not account.requests:
                await asyncio.sleep(0)
            connection = caller.writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            caller.writer.transport.abort()  # with a reset, not with a half that is closed
            for _ in range(100):  # until the listener has seen it
                await asyncio.sleep(0)
        account.gate.set()
        async with client(listener) as caller:
            await caller.say(post(b"{}"))
            assert (await caller.answer())[0] == 200


def test_it_is_kept_and_no_more() -> None:
    assert Brief(ANSWER, 0).keep_alive


async def test_a_client_that_reads_nothing_is_answered_no_further_than_the_buffers_reach() -> None:
    account = FakeAccount(Answer(200, b"[" + b"1," * 1900 + b"1]"))
    requests = 4000
    async with served(account) as listener, client(listener) as caller:
        caller.reader._transport.pause_reading()  # type: ignore[attr-defined] # the kernel's buffers fill
        caller.writer.write(post(b"1") * requests)
        seen = -1
        while seen < len(account.requests):
            seen = len(account.requests)
            for _ in range(200):
                await asyncio.sleep(0)
        assert 0 < seen < requests
