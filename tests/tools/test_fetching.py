"""Fetching from small servers on loopback, which the guard is told to let pass where a test says so."""

import asyncio
import gzip
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from bridge.guard import Guard
from bridge.tools import fetching
from bridge.tools.fetching import MOST_BYTES, Fetched, FetchError, fetch
from tests.channel.serving import certificate, raw, serving

TLS = ssl.create_default_context()
HERE = Guard(["127.0.0.1"], plain=True)


async def refused(url: str, guard: Guard = HERE) -> str:
    with pytest.raises(FetchError) as error:
        await fetch(url, guard, TLS)
    assert "/secret" not in str(error.value)
    return str(error.value)


async def test_an_answer_is_told_with_its_type_and_charset() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.headers["User-Agent"] == "turnbridge"
        assert "Cookie" not in request.headers
        response = web.Response(body="é".encode("latin-1"), status=404)
        response.headers["Content-Type"] = "Text/Plain; charset=latin-1"
        response.headers["Set-Cookie"] = "a=b"
        return response

    async with serving(answer) as base:
        for _ in range(2):
            found = await fetch(f"{base}/a?b#c", HERE, TLS)
            assert found == Fetched(f"{base}/a?b", 404, "text/plain", "latin-1", b"\xe9", True)
            assert found.said == "404 Not Found"
    assert Fetched("", 799, "", "", b"", True).said == "799"


async def test_what_is_long_is_cut_also_when_it_was_packed() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        packed = gzip.compress(b"x" * (3 * MOST_BYTES))
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async with serving(answer) as base:
        found = await fetch(base, HERE, TLS)
        assert not found.is_whole
        assert len(found.data) == MOST_BYTES


async def test_redirects_are_followed_five_times_and_each_is_judged() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        steps = int(request.path[1:])
        if steps == 0:
            return web.Response(text="here")
        return web.Response(status=302, headers={"Location": f"/{steps - 1}"})

    async with serving(answer) as base:
        found = await fetch(f"{base}/5", HERE, TLS)
        assert (found.url, found.data) == (f"{base}/0", b"here")
        assert "more than 5 times" in await refused(f"{base}/6")


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2/secret",
        "http://[::1]/secret",
        "https://169.254.169.254/secret",
        "file:///etc/secret",
        "//0x7f.1/secret",
        "http://a:b@127.0.0.1/secret",
        "gopher://127.0.0.1/secret",
        "http://[bad/secret",
    ],
)
async def test_case_51_a_redirect_to_an_inner_place_is_refused(location: str) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(status=307, headers={"Location": location})

    async with serving(answer) as base:
        await refused(base)


async def test_case_51_a_name_is_looked_up_once_and_connected_is_to_what_was_judged() -> None:
    looked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.host)

    async def lookup(host: str, port: int) -> Sequence[str]:
        looked.append(host)
        return ["127.0.0.1"]

    async with serving(answer) as base:
        port = urlsplit(base).port
        found = await fetch(
            f"http://inner.example:{port}/", Guard(["inner.example"], lookup, plain=True), TLS
        )
        assert found.data == f"inner.example:{port}".encode()
        assert looked == ["inner.example"]
        assert "private" in await refused(f"http://e.example:{port}/secret", Guard(lookup=ten, plain=True))
        assert "loopback" in await refused(
            f"http://e.example:{port}/secret", Guard(lookup=lookup, plain=True)
        )


async def ten(host: str, port: int) -> Sequence[str]:
    return ["93.184.216.34", "10.0.0.1"]


async def test_a_certificate_must_be_that_of_the_name(tmp_path: Path) -> None:
    server, client = certificate(tmp_path, "good.example")

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text="here")

    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    guard = Guard(["good.example", "bad.example"], lookup)
    async with serving(answer, server) as base:
        port = urlsplit(base).port
        assert (await fetch(f"https://good.example:{port}/", guard, client)).data == b"here"
        with pytest.raises(
            FetchError, match=r"bad\.example cannot be asked: ClientConnectorCertificateError"
        ):
            await fetch(f"https://bad.example:{port}/", guard, client)


async def test_what_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "SECONDS", 0.1)
    async with raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", stall=True) as base:
        assert await refused(f"{base}/secret") == "127.0.0.1 did not answer in 0.1 seconds"


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"]
)
async def test_what_breaks_off_is_told_without_the_address(answer: bytes) -> None:
    async with raw(answer) as base:
        assert "127.0.0.1 cannot be asked" in await refused(f"{base}/secret")


@pytest.mark.parametrize(
    "url", ["", "/secret", "secret", "http://", "http://[/secret", "ftp://e.example/secret", "\ud800"]
)
async def test_what_is_no_web_address_is_refused(url: str) -> None:
    await refused(url)


async def test_the_addresses_are_given_as_they_are_of_both_kinds() -> None:
    pinned = fetching._Pinned(["1.2.3.4", "::1"])
    found = await pinned.resolve("e.example", 443)
    assert [(each["host"], each["port"]) for each in found] == [("1.2.3.4", 443), ("::1", 443)]
    await pinned.close()
    await asyncio.sleep(0)
