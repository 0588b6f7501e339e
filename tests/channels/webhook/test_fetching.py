import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from bridge.channel import ChannelError, FileKind, Guard, Http, RemoteFile, UnreachableError
from bridge.channel.http import http_session
from bridge.channel.testing.fakes.webhook_receiver import CallbackReceiver
from channels.webhook.fetching import Fetcher, may_fetch
from tests.channel.serving import serving
from tests.channels.webhook.tools import FILE_TOKEN, credentials, settings

CONTENT = bytes(range(256)) * 300


@asynccontextmanager
async def fetching(token: str = FILE_TOKEN, **hosts: Any) -> AsyncIterator[tuple[CallbackReceiver, Fetcher]]:
    """A host of files, listed and let through unless ``hosts`` say otherwise."""
    async with CallbackReceiver([]) as host, http_session() as session:
        host.files["a"] = CONTENT
        host.file_token = FILE_TOKEN
        table = settings(**{"file_hosts": [host.host], "private_hosts": [host.host], **hosts})
        yield host, Fetcher(table, credentials(file_token=token), Http(session))


def remote(address: str, sha256: str = "") -> RemoteFile:
    return RemoteFile(json.dumps({"url": address, "sha256": sha256}), FileKind.FILE, "a.bin", "x/y")


async def fetched(fetcher: Fetcher, file: RemoteFile, max_bytes: int = 10**9) -> bytes:
    async with fetcher.open(file, max_bytes) as incoming:
        return b"".join([chunk async for chunk in incoming.chunks])


async def test_a_file_is_fetched_with_the_token_and_checked_against_its_digest() -> None:
    async with fetching() as (host, fetcher):
        for sha256 in ("", hashlib.sha256(CONTENT).hexdigest()):
            assert await fetched(fetcher, remote(f"{host.address}/files/a", sha256)) == CONTENT
        with pytest.raises(ChannelError, match="sha256 differs"):
            await fetched(fetcher, remote(f"{host.address}/files/a", "0" * 64))
        async with fetcher.open(remote(f"{host.address}/files/a"), 10**9) as incoming:
            assert (incoming.name, incoming.mime, incoming.size) == ("a.bin", "x/y", len(CONTENT))


async def test_without_a_token_none_is_shown() -> None:
    async with fetching(token="") as (host, fetcher):
        host.file_token = ""
        assert await fetched(fetcher, remote(f"{host.address}/files/a")) == CONTENT
        assert "Authorization" not in host.file_requests[0]


async def test_a_refusal_of_the_host_parks_nothing() -> None:
    async with fetching() as (host, fetcher):
        for path, token in (("files/none", FILE_TOKEN), ("files/a", "another")):
            host.file_token = token
            with pytest.raises(ChannelError, match="status 40") as failed:
                await fetched(fetcher, remote(f"{host.address}/{path}"))
            assert type(failed.value) is ChannelError


async def test_too_much_is_given_up() -> None:
    async with fetching() as (host, fetcher):
        with pytest.raises(ChannelError, match="over 1000 bytes"):
            await fetched(fetcher, remote(f"{host.address}/files/a"), 1000)


async def test_a_host_that_is_not_listed_any_more_is_not_asked() -> None:
    async with fetching(file_hosts=["other.example"]) as (host, fetcher):
        with pytest.raises(ChannelError, match="file_hosts"):
            await fetched(fetcher, remote(f"{host.address}/files/a"))
        assert not host.file_requests


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["169.254.169.254"], ["::1"], ["::ffff:10.0.0.1"]],
)
async def test_case_51_a_listed_name_that_leads_inside_is_refused_before_the_token_is_shown(
    addresses: list[str],
) -> None:
    async def lookup(name: str, port: int) -> list[str]:
        return addresses

    async with http_session() as session:
        http = Http(session, Guard(lookup=lookup))
        fetcher = Fetcher(settings(file_hosts=["files.example"]), credentials(), http)
        with pytest.raises(UnreachableError, match=r"files\.example is not requested"):
            await fetched(fetcher, remote("https://files.example/a?word=secret"))


@pytest.mark.parametrize("second", ["127.0.0.1", "169.254.169.254"], ids=["loopback", "metadata"])
async def test_case_51_a_name_is_looked_up_once_so_that_no_second_answer_can_lead_elsewhere(
    second: str,
) -> None:
    """DNS rebinding: the address that was judged is the one that is asked."""
    answers = iter([["127.0.0.1"], [second]])

    async def lookup(name: str, port: int) -> list[str]:
        return next(answers)

    async with CallbackReceiver([]) as host, http_session() as session:
        host.files["a"] = CONTENT
        name = f"files.example:{host.host.rpartition(':')[2]}"
        table = settings(file_hosts=[name], private_hosts=[name])
        fetcher = Fetcher(table, credentials(), Http(session, Guard(lookup=lookup)))
        assert await fetched(fetcher, remote(f"http://{name}/files/a")) == CONTENT
        assert next(answers) == [second], "it was looked up again"
        assert host.file_requests[0]["Host"] == name


async def test_a_redirect_of_a_file_is_refused_wherever_it_leads() -> None:
    asked: list[str] = []

    async def moved(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with serving(moved) as address, http_session() as session:
        host = address.removeprefix("http://")
        table = settings(file_hosts=[host], private_hosts=[host])
        with pytest.raises(ChannelError, match="status 302"):
            await fetched(Fetcher(table, credentials(), Http(session)), remote(f"{address}/a"))
    assert asked == ["/a"]


@pytest.mark.parametrize("size", [len(CONTENT) - 1, len(CONTENT) + 1, 0])
async def test_a_file_whose_size_was_a_lie_is_refused(size: int) -> None:
    async with fetching() as (host, fetcher):
        lying = replace(remote(f"{host.address}/files/a"), size=size)
        with pytest.raises(ChannelError, match="its size differs"):
            await fetched(fetcher, lying)
        assert await fetched(fetcher, replace(lying, size=len(CONTENT))) == CONTENT


async def test_inline_content_comes_in_pieces() -> None:
    async with fetching() as (_, fetcher):
        file = RemoteFile(json.dumps({"content": "QUI="}), FileKind.FILE, "a", "m")
        async with fetcher.open(file, 1) as incoming:
            assert (incoming.name, incoming.mime, incoming.size) == ("a", "m", 2)
            assert [chunk async for chunk in incoming.chunks] == [b"AB"]


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("https://files.example/a", True),
        ("https://files.example:8443/a", True),
        ("http://files.example/a", False),
        ("https://other.example/a", False),
        ("http://lan.example/a", True),
    ],
)
def test_only_listed_hosts_and_encrypted_unless_the_operator_says_so(address: str, allowed: bool) -> None:
    table = settings(file_hosts=["files.example", "lan.example"], private_hosts=["lan.example"])
    assert may_fetch(table)(URL(address)) is allowed
