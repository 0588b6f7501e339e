"""What a server at an address may send us."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from bridge.tools.mcp import http
from bridge.tools.mcp.access import Access
from bridge.tools.mcp.errors import ServerError
from bridge.tools.mcp.http import Wire, address, explained


class Body(httpx2.AsyncByteStream):
    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part

    async def aclose(self) -> None:
        self.closed = True


class Far(httpx2.AsyncBaseTransport):
    """The other side: it answers everything alike."""

    def __init__(self, status: int = 200, kind: str = "application/json") -> None:
        self.status, self.headers = status, {"content-type": kind}
        self.body = Body(b"{}")
        self.asked: list[httpx2.Request] = []
        self.closed = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        return httpx2.Response(self.status, headers=self.headers, stream=self.body)

    async def aclose(self) -> None:
        self.closed = True


async def ask(far: Far, method: str = "POST") -> httpx2.Response:
    async with httpx2.AsyncClient(transport=Wire(far)) as client:
        return await client.request(method, "http://127.0.0.1/mcp")


async def test_an_answer_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MESSAGE_BYTES", 4)
    far = Far()
    assert (await ask(far)).content == b"{}"
    assert far.body.closed
    assert far.closed
    far.body = Body(b"abc", b"de")
    with pytest.raises(httpx2.StreamError):
        await ask(far)
    events = Far(kind="text/event-stream")
    events.body = Body(b"abc", b"de")  # is bounded by its events
    assert (await ask(events)).content == b"abcde"


async def test_nothing_compressed_is_asked_for_or_taken() -> None:
    far = Far()
    far.headers["content-encoding"] = "gzip"
    with pytest.raises(ServerError, match="compressed"):
        await ask(far)
    assert far.asked[0].headers["accept-encoding"] == "identity"
    assert far.body.closed


async def test_saying_goodbye_takes_no_long() -> None:
    far = Far()
    await ask(far, "DELETE")
    await ask(far, "POST")
    leaving, asking = (request.extensions["timeout"] for request in far.asked)
    assert set(leaving.values()) == {http.LEAVE_SECONDS}
    assert asking["read"] > http.LEAVE_SECONDS


async def test_the_status_is_that_of_the_last_message_alone() -> None:
    far = Far(401)
    wire = Wire(far)
    async with httpx2.AsyncClient(transport=wire) as client:
        await client.post("http://127.0.0.1/mcp")
        assert wire.status == 401
        far.status = 200
        await client.post("http://127.0.0.1/mcp")
        assert wire.status == 0
        far.status = 405
        await client.get("http://127.0.0.1/mcp")
        assert wire.status == 0


async def test_a_message_is_sent_with_the_headers_and_answered() -> None:
    far = Far()
    far.body = Body(b'{"jsonrpc": "2.0", "id": 1, "result": {}}')
    there = Access("s", url="http://127.0.0.1/mcp?key=v", headers={"X-Key": "k"})
    async with address(there, Wire(far), 5.0) as (read, write):
        await write.send(SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")))
        item: Any = await read.receive()
    assert item.message.result == {}
    (asked,) = far.asked
    assert (asked.headers["x-key"], str(asked.url)) == ("k", there.url)
    assert asked.extensions["timeout"]["read"] == 5.0 + http.CONNECT_SECONDS


async def test_the_address_is_reached_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    wire = http.wire()
    async with httpx2.AsyncClient(transport=wire) as client:
        assert client._transport_for_url(httpx2.URL("http://127.0.0.1/mcp")) is wire


def test_a_refusal_says_what_to_do() -> None:
    assert "correct its headers and bearer" in explained(401)
    assert explained(500) == "it answers with status 500: look at its url"
