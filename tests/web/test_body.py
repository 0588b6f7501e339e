"""Bodies are bounded in size, in time, and all together; what is refused says why."""

import asyncio

import pytest

from bridge.channel.testing.clock import until
from bridge.web import body as body_module
from tests.web.raw import FakeAccount, client, post, served

CHUNKED = b"POST /channels/pigeon/main HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def head(length: int, more: str = "") -> bytes:
    return (
        f"POST /channels/pigeon/main HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{more}\r\n".encode()
    )


async def ask(account: FakeAccount, *pieces: bytes) -> tuple[int, bytes]:
    """Say ``pieces``, each after a pause, and read the answer."""
    async with served(account) as listener, client(listener) as caller:
        for piece in pieces:
            await caller.say(piece)
            await asyncio.sleep(0.005)  # so that they come apart
        status, headers, body = await caller.answer()
        assert headers["content-type"] == "application/json"
        return status, body


async def test_a_body_in_one_piece_arrives() -> None:
    account = FakeAccount()
    assert (await ask(account, post(b"x" * 1000)))[0] == 200
    assert account.requests[0].body == b"x" * 1000


async def test_a_body_in_many_pieces_arrives() -> None:
    account = FakeAccount()
    assert (await ask(account, head(9), b"abc", b"def", b"ghi"))[0] == 200
    assert account.requests[0].body == b"abcdefghi"


async def test_a_chunked_body_arrives() -> None:
    account = FakeAccount()
    assert (await ask(account, CHUNKED, b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n"))[0] == 200
    assert account.requests[0].body == b"abcde"


async def test_no_body_is_an_empty_one() -> None:
    account = FakeAccount()
    await ask(account, b"GET /channels/pigeon/main HTTP/1.1\r\nHost: x\r\n\r\n")
    assert account.requests[0].body == b""


@pytest.mark.parametrize(
    "pieces",
    [
        (head(1001),),
        (head(10**12),),
        (post(b"x" * 1001),),
        (CHUNKED + b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n",),
        (CHUNKED, b"258\r\n" + b"x" * 600 + b"\r\n", b"258\r\n" + b"x" * 600 + b"\r\n"),
    ],
)
async def test_a_body_over_the_accounts_limit_is_refused_however_it_comes(pieces: tuple[bytes, ...]) -> None:
    account = FakeAccount()
    assert await ask(account, *pieces) == (413, b'{"error":"too_large"}')
    assert account.requests == []


async def test_the_limit_is_the_accounts_own() -> None:
    account = FakeAccount(body_limit_bytes=5000)
    assert (await ask(account, post(b"x" * 5000)))[0] == 200


async def test_a_body_that_does_not_come_is_refused_and_the_connection_ends() -> None:
    account = FakeAccount()
    async with served(account, body_seconds=0.05) as listener, client(listener) as slow:
        await slow.say(head(10) + b"half")
        status, _, body = await slow.answer()
        assert (status, body) == (408, b'{"error":"too_slow"}')
        assert await slow.rest() == b""
    assert account.requests == []


async def test_a_broken_chunk_is_the_clients_fault() -> None:
    account = FakeAccount()
    async with served(account) as listener, client(listener) as odd:
        await odd.say(CHUNKED)
        await asyncio.sleep(0.01)  # so that they come apart
        await odd.say(b"zz\r\nhunter2\r\n")
        said = await odd.rest()
    assert b" 400 " in said.splitlines()[0]
    assert b"hunter2" not in said
    assert account.requests == []


async def test_a_compressed_body_is_refused_before_it_is_read() -> None:
    account = FakeAccount()
    assert await ask(account, post(headers="Content-Encoding: gzip\r\n")) == (415, b'{"error":"compressed"}')
    assert (await ask(account, post(headers="Content-Encoding: identity\r\n")))[0] == 200


async def test_a_client_that_asks_whether_to_go_on_is_told_to() -> None:
    account = FakeAccount()
    async with served(account) as listener, client(listener) as polite:
        await polite.say(head(3, "Expect: 100-continue\r\n"))
        assert await polite.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await polite.say(b"abc")
        assert (await polite.answer())[0] == 200
    assert account.requests[0].body == b"abc"


async def test_a_client_that_asks_with_too_much_is_refused_at_once() -> None:
    account = FakeAccount()
    assert (await ask(account, head(10**9, "Expect: 100-continue\r\n")))[0] == 413


async def test_slow_bodies_together_have_a_limit_and_quick_ones_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body_module, "ALL_BODIES_BYTES", 1500)
    account = FakeAccount()
    async with served(account) as listener:
        async with client(listener) as first, client(listener) as second, client(listener) as quick:
            await first.say(head(1000) + b"x" * 999)
            await until(lambda: listener._bodies._held == 999)
            await second.say(head(1000))
            await asyncio.sleep(0.02)  # so that they come apart
            await second.say(b"x" * 999)
            status, headers, body = await second.answer()
            assert (status, headers["retry-after"], body) == (503, "5", b'{"error":"busy"}')
            await quick.say(post(b"x" * 1000))
            assert (await quick.answer())[0] == 200
            await first.say(b"x")
            assert (await first.answer())[0] == 200
        async with client(listener) as later:  # what was held is given back
            await later.say(head(1000))
            await asyncio.sleep(0.02)  # so that they come apart
            await later.say(b"x" * 1000)
            assert (await later.answer())[0] == 200
