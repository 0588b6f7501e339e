"""To which addresses a URL may lead."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from bridge.errors import UnreachableError
from bridge.guard import Guard, system_lookup, verdict

PUBLIC = "93.184.216.34"
INNER = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200", "169.254.169.254", "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255",
    "198.18.0.1", "240.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
    "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "2002:7f00:1::", "2001:0:1::", "2001:db8::1", "3fff::1", "64:ff9b::7f00:1", "64:ff9b::a00:1",
    "64:ff9b:1::808:808", "::7f00:1", "4000::1", "100::1", "5f00::1",
]  # fmt: skip
ODD = [
    "0x7f.1",
    "127.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "1.2.3",
    "127.0.0.01",
    "example.0x7f",
    "a.1",
]


def answers(*addresses: str) -> Guard:
    async def lookup(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return Guard(lookup=lookup)


async def refused(guard: Guard, url: str) -> str:
    with pytest.raises(UnreachableError) as error:
        await guard.addresses(URL(url))
    return str(error.value)


@pytest.mark.parametrize("address", INNER)
def test_an_inner_address_is_not_public(address: str) -> None:
    assert verdict(address)


@pytest.mark.parametrize("address", [PUBLIC, "1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_a_public_address_is(address: str) -> None:
    assert verdict(address) is None


@pytest.mark.parametrize("text", [*ODD, "", "localhost", "fe80::1%eth0x", "1.1.1.1/32"])
def test_only_canonical_spellings_are_addresses(text: str) -> None:
    assert verdict(text)


@given(st.ip_addresses())
def test_whatever_python_knows_as_private_is_refused(address: object) -> None:
    if not address.is_global or address.is_multicast:  # type: ignore[attr-defined] # hypothesis types it so
        if str(address).startswith("64:ff9b::"):
            return
        assert verdict(str(address))


@pytest.mark.parametrize("address", INNER)
async def test_a_literal_is_judged(address: str) -> None:
    shown = f"[{address}]" if ":" in address else address
    assert "address" in await refused(Guard(), f"https://{shown}/x")


@pytest.mark.parametrize("host", [*ODD, "2130706433.", "１２７.0.0.1", "0x7f.1:80"])
async def test_odd_spellings_are_refused_without_a_lookup(host: str) -> None:
    await refused(answers(PUBLIC) if host != "１２７.0.0.1" else Guard(), f"https://{host}/")


async def test_case_51_a_name_is_as_good_as_its_worst_address() -> None:
    assert "private" in await refused(answers(PUBLIC, "10.0.0.1"), "https://e.example/")
    assert await answers(PUBLIC, "2606:4700::1111").addresses(URL("https://e.example/")) == [
        PUBLIC,
        "2606:4700::1111",
    ]


async def test_case_51_a_name_is_looked_up_once_so_that_a_second_answer_never_counts() -> None:
    given_out = iter([[PUBLIC], ["127.0.0.1"]])

    async def lookup(host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("e.example", 443)
        return next(given_out)

    assert await Guard(lookup=lookup).addresses(URL("https://E.example./")) == [PUBLIC]


@pytest.mark.parametrize(
    "url",
    [
        "http://e.example/",
        "ws://e.example/",
        "ftp://e.example/",
        "file:///etc/passwd",
        "/x",
        "https://a:b@e.example/",
    ],
)
async def test_only_plain_encrypted_web_addresses_pass(url: str) -> None:
    await refused(answers(PUBLIC), url)


async def test_where_it_may_be_unencrypted_only_that_is_lifted() -> None:
    async def lookup(host: str, _port: int) -> Sequence[str]:
        return ["10.0.0.1"] if host == "inner.example" else [PUBLIC]

    guard = Guard(lookup=lookup, plain=True).allowing(["other.example"])
    assert await guard.addresses(URL("http://e.example/")) == [PUBLIC]
    for url in ("http://inner.example/", "http://127.0.0.1/", "http://a:b@e.example/", "ftp://e.example/"):
        await refused(guard, url)


async def test_a_name_without_address_is_refused() -> None:
    async def lookup(_host: str, _port: int) -> Sequence[str]:
        raise OSError("no such name")

    assert "has no address" in await refused(answers(), "https://e.example/")
    assert "has no address" in await refused(Guard(lookup=lookup), "https://e.example/")


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("127.0.0.1", "https://127.0.0.1/"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("::1", "http://[::1]/"),
        (" Inner.Example ", "http://inner.example:99/"),
        ("inner.example:443", "https://inner.example/"),
    ],
)
async def test_an_allowed_host_passes_whatever_it_is(entry: str, url: str) -> None:
    assert await answers("10.0.0.1").allowing([entry]).addresses(URL(url))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8081/", "http://a.inner.example/", "https://127.0.0.2:8080/"]
)
async def test_an_entry_is_exact(url: str) -> None:
    guard = Guard(["127.0.0.1:8080", "inner.example"], answers("10.0.0.1")._lookup)
    await refused(guard, url)


async def test_the_system_looks_names_up() -> None:
    found = await system_lookup("localhost", 80)
    assert set(found) <= {"127.0.0.1", "::1"}
    assert len(set(found)) == len(found)


def test_errors_name_nothing_but_the_host() -> None:
    text = asyncio.run(refused(answers("10.0.0.1"), "https://e.example/secret?token=1"))
    assert "secret" not in text
    assert "token" not in text
