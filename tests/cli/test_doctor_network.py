"""Reaching an address: each step of the way fails with its own words."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridge.channel import ChannelSettings, Fault
from bridge.cli import doctor_network
from bridge.cli.doctor_network import place, places, reach, reached
from tests.daemons import free_port


class Settings(ChannelSettings):
    base: str = "https://open.example.org"
    callback: str = ""
    host: str = "example.org"


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    """A port that takes connections, and hangs up on what is no plain text."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1):
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def test_only_web_addresses_lead_somewhere() -> None:
    assert place("https://a.example/x?y") == ("https", "a.example", 443)
    assert place("http://[::1]:8470") == ("http", "::1", 8470)
    for other in (
        "",
        "a.example",
        "ftp://a.example",
        "https://",
        "http://a:99999",
        "http://[x",
    ):
        assert place(other) is None


def test_the_addresses_of_an_account_are_those_among_its_settings() -> None:
    assert places(Settings(callback="http://b.example:81/in")) == {
        ("https", "open.example.org", 443),
        ("http", "b.example", 81),
    }


async def test_what_takes_connections_is_reached() -> None:
    async with serving() as port:
        assert await reach(("http", "127.0.0.1", port)) is None


async def test_what_listens_nowhere_takes_no_connection() -> None:
    port = free_port()
    found = await reach(("http", "127.0.0.1", port))
    assert found is not None
    assert found.text == f"127.0.0.1:{port} takes no connection: Connection refused"


async def test_what_speaks_no_tls_is_told() -> None:
    async with serving() as port:
        found = await reach(("https", "127.0.0.1", port))
    assert found is not None
    assert found.text == f"127.0.0.1:{port} speaks no TLS"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(-2, "no"), "the name a.example is not known here"),
        (TimeoutError(), "a.example:443 does not answer"),
        (OSError("Multiple exceptions: SECRET"), "takes no connection: none of its addresses"),
    ],
)
async def test_each_step_that_fails_has_its_words(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(asyncio, "open_connection", fail)
    found = await reach(("https", "a.example", 443), ssl.create_default_context())
    assert found is not None
    assert words in found.text
    assert found.cure


async def test_a_certificate_that_is_not_trusted_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_message = "certificate has expired"

    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(asyncio, "open_connection", fail)
    found = await reach(("https", "a.example", 443))
    assert found is not None
    assert "not trusted: certificate has expired" in found.text


async def test_all_are_tried_at_once_and_each_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def tried(where: tuple[str, str, int], _: object) -> Fault | None:
        return Fault(where[1], "cure") if where[1] == "b" else None

    monkeypatch.setattr(doctor_network, "reach", tried)
    found = await reached([("http", "a", 80), ("http", "b", 80)])
    assert found == {("http", "a", 80): None, ("http", "b", 80): Fault("b", "cure")}
