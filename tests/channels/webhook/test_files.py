import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from bridge.channel import (
    Answer,
    ChannelError,
    FileKind,
    FileWanted,
    Guard,
    Http,
    OutboundFile,
    Place,
    RemoteFile,
    UnreachableError,
)
from bridge.channel.http import http_session
from bridge.channel.testing.clock import START
from bridge.channel.testing.fakes.webhook_receiver import CallbackReceiver
from channels.webhook.files import (
    ADDRESS_LIVES,
    Fetcher,
    Shelf,
    TooLargeInlineError,
    digest_file,
    expiry,
    may_fetch,
    read_file,
    shown_name,
)
from channels.webhook.wire import INLINE_BYTES
from tests.channels.webhook.tools import FILE_TOKEN, bare, credentials, settings

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
async def test_a_listed_name_that_leads_inside_is_refused_before_the_token_is_shown(
    addresses: list[str],
) -> None:
    async def lookup(name: str, port: int) -> list[str]:
        return addresses

    async with http_session() as session:
        http = Http(session, Guard(lookup=lookup))
        fetcher = Fetcher(settings(file_hosts=["files.example"]), credentials(), http)
        with pytest.raises(UnreachableError, match=r"files\.example is not requested"):
            await fetched(fetcher, remote("https://files.example/a?word=secret"))


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


def shelf(address: str = "https://b.example/w/a", **fields: Any) -> Shelf:
    return Shelf.of(Place("a", address), [b"first" * 8, b"second" * 8], **fields)


def copy(path: Path, size: int) -> OutboundFile:
    path.write_bytes(bytes(size))
    return OutboundFile(
        "t", "r", "c" * 32, path, "n.txt", "text/plain", FileKind.FILE, size, created_at=START
    )


async def test_the_inline_limit_is_exact(tmp_path: Path) -> None:
    inline, keep = await shelf().attachment(copy(tmp_path / "a", INLINE_BYTES), START)
    assert len(inline["content_base64"]) > INLINE_BYTES
    assert keep == 0
    by_address, keep = await shelf().attachment(copy(tmp_path / "b", INLINE_BYTES + 1), START)
    assert by_address["url"].startswith("https://b.example/w/a/files/")
    assert by_address["sha256"] == hashlib.sha256(bytes(INLINE_BYTES + 1)).hexdigest()
    assert keep == 48 * 3600
    with pytest.raises(TooLargeInlineError, match="public_url"):
        await shelf("").attachment(copy(tmp_path / "c", INLINE_BYTES + 1), START)
    relative, _ = await shelf("", relative=True).attachment(copy(tmp_path / "d", INLINE_BYTES + 1), START)
    assert relative["url"].startswith("files/")


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=200), st.integers(0, 10**9))
def test_an_address_that_we_signed_gives_its_file(name: str, ahead: int) -> None:
    token = shelf().token(name, START + timedelta(seconds=ahead))
    assert shelf().wanted(bare("GET", f"/files/{token}")) == FileWanted(name)
    assert shelf().wanted(bare("HEAD", f"/files/{token}")) == FileWanted(name)


def status(shelf: Shelf, token: str, method: str = "GET") -> int:
    found = shelf.wanted(bare(method, f"/files/{token}"))
    assert isinstance(found, Answer)
    return found.status


def test_any_other_address_gives_none() -> None:
    good = shelf().token("a", START + ADDRESS_LIVES)
    name, expires, mac = good.split(".")
    other = shelf().token("b", START + ADDRESS_LIVES)
    assert status(shelf(), good, "POST") == 405
    wrong = [
        "", "x", name, f"{name}.{expires}", f"{name}.{int(expires) + 1}.{mac}", good + "A", good[:-1],
        f"{other.split('.')[0]}.{expires}.{mac}", f"../{good}", f"{good}/..", good.replace(".", ". "), "é",
    ]  # fmt: skip
    assert {status(shelf(), token) for token in wrong} == {404}
    stranger = Shelf.of(Place("a"), [b"stranger" * 8])
    assert status(shelf(), stranger.token("a", START + ADDRESS_LIVES)) == 404


def test_an_address_ends_and_says_so() -> None:
    assert shelf().wanted(bare("GET", "/files/" + shelf().token("a", START))) == FileWanted("a")
    assert status(shelf(), shelf().token("a", START - timedelta(seconds=1))) == 410


def test_addresses_outlive_the_rotation_of_their_secret() -> None:
    before = Shelf.of(Place("a"), [b"second" * 8]).token("a", START + ADDRESS_LIVES)
    assert shelf().wanted(bare("GET", f"/files/{before}")) == FileWanted("a")
    assert "first" not in repr(shelf())


@given(st.integers(0, 10 * 86_400))
def test_an_address_lives_a_day_at_least_and_is_the_same_within_a_day(age: int) -> None:
    now = START + timedelta(seconds=age)
    assert ADDRESS_LIVES < expiry(START, now) - now <= 2 * ADDRESS_LIVES
    assert (expiry(START, now) == expiry(START, START)) is (age < 86_400)
    assert expiry(now + timedelta(seconds=5), now) > now + ADDRESS_LIVES


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("测试中文.pdf", "测试中文.pdf"),
        ("a/b\\c.txt", "c.txt"),
        ("a\r\nb\x85\u2028.txt", "a__b__.txt"),
        ('"q".txt', '"q".txt'),
        ("/", "file"),
        ("", "file"),
    ],
)
def test_names_are_shown_without_what_could_break_out_of_them(name: str, shown: str) -> None:
    assert shown_name(name) == shown


def test_copies_are_read_but_links_are_not_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(bytes(INLINE_BYTES + 5))
    link.symlink_to(path)
    assert len(read_file(path)) == INLINE_BYTES
    assert digest_file(path) == hashlib.sha256(bytes(INLINE_BYTES + 5)).hexdigest()
    for read in (read_file, digest_file):
        with pytest.raises(OSError):
            read(link)
