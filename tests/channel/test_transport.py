"""Where requests connect, which hops they follow, and what their failures mean."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from yarl import URL

from bridge.channel.http import Http
from bridge.channel.transport import Request, Stream, TooLargeError, Transport, http_session, origin
from bridge.channel.websocket import Socket
from bridge.clock import SystemClock
from bridge.errors import OutcomeUnknownError, UnreachableError
from bridge.guard import Guard
from tests.channel.serving import certificate, client, raw, serving

SECRET = "s3cret"
INNER = ["127.0.0.1:1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "0x7f.1", "2130706433", "[::]"]


def pinned(*addresses: str, allow: Sequence[str] = ()) -> Guard:
    """A guard for which every name has ``addresses``."""

    async def lookup(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return Guard(allow, lookup)


def port_of(base: str) -> str:
    return base.rpartition(":")[2]


@asynccontextmanager
async def asking(
    url: str,
    guard: Guard | None = None,
    method: str = "GET",
    trusted: str = "",
    follow: int = 0,
    seconds: float = 30,
) -> AsyncIterator[Stream]:
    async with http_session() as session:
        trust = origin(URL(trusted)) if trusted else None
        transport = Transport(session, guard or Guard(), SystemClock(), trust, connect_seconds=0.5)
        deadline = asyncio.get_running_loop().time() + seconds
        request = Request(method, URL(url), {"X-Key": SECRET}, None, deadline)
        stream = await transport.send(request, follow)
        try:
            yield stream
        finally:
            stream.close()


async def told(request: web.BaseRequest) -> web.Response:
    return web.json_response({"host": request.headers["Host"], "key": request.headers.get("X-Key", "")})


@asynccontextmanager
async def moving(location: str, status: int = 302) -> AsyncIterator[str]:
    """A server that sends every path but ``/here`` to ``location``."""

    async def handle(request: web.BaseRequest) -> web.Response:
        if request.path == "/here":
            return await told(request)
        return web.Response(status=status, headers={"Location": location} if location else {})

    async with serving(handle) as base:
        yield base


async def test_case_51_a_guarded_name_is_connected_at_its_judged_address() -> None:
    async with serving(told) as base:
        url = f"http://inner.example:{port_of(base)}/x"
        async with asking(url, pinned("127.0.0.1", allow=["inner.example"])) as stream:
            answer = await stream.answer()
    assert answer.body["host"] == f"inner.example:{port_of(base)}"
    assert stream.host == "inner.example"


async def test_the_next_address_is_tried_when_one_does_not_connect() -> None:
    async with serving(told) as base:
        url = f"http://inner.example:{port_of(base)}/x"
        async with asking(url, pinned("::1", "127.0.0.1", allow=["inner.example"]), "POST") as stream:
            assert stream.status == 200


async def test_a_lookup_that_hangs_is_given_up() -> None:
    async def lookup(_host: str, _port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async with http_session() as session:
        http = Http(session, Guard(lookup=lookup)).at("https://e.example", guarded=True, connect_seconds=0.01)
        with pytest.raises(UnreachableError, match="not looked up in time"):
            await http.get("/x")


@pytest.mark.parametrize("inner", INNER)
async def test_case_51_a_redirect_to_an_inner_address_is_refused(inner: str) -> None:
    for scheme in ("http", "https"):
        async with moving(f"{scheme}://{inner}/x") as base:
            with pytest.raises(UnreachableError, match="not requested"):
                async with asking(base, trusted=base, follow=3):
                    pass


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_within_the_origin_keeps_headers(status: int) -> None:
    async with moving("/here", status) as base, asking(f"{base}/a", trusted=base, follow=1) as stream:
        assert (await stream.answer()).body["key"] == SECRET


async def test_case_51_a_redirect_to_another_origin_loses_headers() -> None:
    async with serving(told) as other, moving(f"{other}/here") as base:
        guard = Guard([other.removeprefix("http://")])
        async with asking(f"{base}/a", guard, trusted=base, follow=2) as stream:
            assert (await stream.answer()).body["key"] == ""


async def test_a_redirect_back_to_the_trusted_origin_is_trusted_no_more() -> None:
    async with moving("/here") as base, moving(f"{base}/here") as other:
        with pytest.raises(UnreachableError, match="not requested"):
            async with asking(other, Guard([other.removeprefix("http://")]), trusted=base, follow=2):
                pass


async def test_redirects_are_not_followed_unasked_or_for_a_post_or_past_the_number() -> None:
    async with moving("/again") as base:
        for method, follow in (("GET", 0), ("POST", 5), ("GET", 2)):
            async with asking(base, method=method, trusted=base, follow=follow) as stream:
                assert stream.status == 302


async def test_a_redirect_without_an_address_is_an_answer() -> None:
    async with moving("") as base, asking(base, trusted=base, follow=1) as stream:
        assert stream.status == 302


@pytest.mark.parametrize("location", ["https://[bad/", "http://:0:0/", "javascript:alert(1)", "data:,x"])
async def test_a_redirect_to_no_web_address_is_refused(location: str) -> None:
    async with moving(location) as base:
        with pytest.raises(UnreachableError):
            async with asking(base, trusted=base, follow=1):
                pass


async def test_a_handshake_that_is_moved_is_a_refusal() -> None:
    reached = []

    async def secret(request: web.BaseRequest) -> web.Response:
        reached.append(request.path)
        return web.Response()

    async with serving(secret) as inner, moving(f"{inner}/x") as base, client(base) as http:
        async with http.websocket("/s") as opened:
            assert not isinstance(opened, Socket)
            assert opened.status == 302
    assert reached == []


async def test_a_handshake_that_is_wrong_or_hangs_is_no_connection() -> None:
    wrong = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tea\r\nConnection: Upgrade\r\n\r\n"
    async with raw(wrong) as base, client(base) as http:
        with pytest.raises(UnreachableError):
            async with http.websocket("/s"):
                pass
    async with raw(b"", stall=True) as base, client() as http:
        with pytest.raises(UnreachableError, match="in time"):
            async with http.at(base, timeout_seconds=0.05).websocket("/s"):
                pass


async def test_a_pinned_websocket_keeps_its_name() -> None:
    async def talk(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(request.headers["Host"])
        await socket.receive()
        return socket

    async with serving(talk) as base:
        guard = pinned("127.0.0.1", allow=["inner.example"])
        async with client(guard=guard) as http:
            async with http.websocket(f"ws://inner.example:{port_of(base)}/s") as socket:
                assert isinstance(socket, Socket)
                assert await socket.receive() == f"inner.example:{port_of(base)}"


async def test_a_pinned_name_is_proved_by_its_certificate(tmp_path: Path) -> None:
    server, trusting = certificate(tmp_path, "inner.example")
    guard = pinned("127.0.0.1", allow=["inner.example", "other.example"])
    async with serving(told, server) as base, http_session(trusting) as session:
        http, port = Http(session, guard), port_of(base)
        assert (await http.get(f"https://inner.example:{port}/")).body["host"] == f"inner.example:{port}"
        with pytest.raises(UnreachableError, match="no connection"):
            await http.post(f"https://other.example:{port}/")


async def test_a_body_over_the_limit_is_no_answer() -> None:
    async with serving(told) as base:
        async with asking(base, trusted=base) as stream:
            with pytest.raises(TooLargeError):
                await stream.read(3)
        async with asking(base, trusted=base) as stream:
            assert (await stream.answer(3, cut=True)).raw == b""


async def test_a_body_that_announced_nothing_is_cut_at_the_limit_too() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"
    async with raw(chunked) as base:
        async with asking(base, trusted=base) as stream:
            assert stream.size is None
            assert await stream.read(4) == b"abcd"
        async with asking(base, trusted=base) as stream:
            with pytest.raises(TooLargeError, match="over 3 bytes"):
                await stream.read(3)


async def test_a_trusted_address_that_is_not_of_the_web_is_no_connection() -> None:
    address = "ftp://127.0.0.1/x"
    with pytest.raises(UnreachableError, match="no connection"):
        async with asking(address, trusted=address):
            pass


async def test_a_body_that_breaks_off_is_no_answer_but_for_whom_the_status_is_enough() -> None:
    async with raw(b"HTTP/1.1 200 \r\nContent-Length: 9\r\n\r\nab") as base:
        async with asking(base, trusted=base) as stream:
            with pytest.raises(UnreachableError):
                await stream.answer()
        async with asking(base, trusted=base) as stream:
            answer = await stream.answer(cut=True)
            assert (answer.status, answer.raw) == (200, b"ab")
        async with asking(base, method="POST", trusted=base) as stream:
            with pytest.raises(OutcomeUnknownError):
                await stream.answer(3)


async def test_a_request_past_its_deadline_has_no_answer() -> None:
    async with raw(b"", stall=True) as base:
        with pytest.raises(UnreachableError):
            async with asking(base, trusted=base, seconds=-1):
                pass


async def test_a_head_without_type_or_name_has_none() -> None:
    async with raw(b"HTTP/1.1 204 No Content\r\n\r\n") as base, asking(base, trusted=base) as stream:
        assert (stream.mime, stream.name) == ("", "")
        assert (await stream.answer()).body is None


def test_a_sockets_origin_is_that_of_its_web_server() -> None:
    assert origin(URL("wss://e.example/x?y")) == origin(URL("https://e.example:443/"))
    assert origin(URL("ws://e.example:8080")) != origin(URL("http://e.example"))
    with pytest.raises(ValueError):
        origin(URL("/x"))


async def test_pieces_come_up_to_the_limit_of_what_was_not_announced() -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"abcd")
        return response

    async with serving(handle) as base:
        async with asking(base, trusted=base) as stream:
            assert b"".join([piece async for piece in stream.chunks(4)]) == b"abcd"
        async with asking(base, trusted=base) as stream:
            with pytest.raises(TooLargeError, match="over 3 bytes"):
                [piece async for piece in stream.chunks(3)]
