"""From a request to the account that it is for, and back; and what the daemon says of itself."""

import asyncio
import errno
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from bridge import logs
from bridge.channel import Answer
from bridge.channel.contract import FileAnswer, NoAnswer, SentAnswer
from bridge.channel.testing.clock import START, FakeClock, settle
from bridge.config import WebTable
from bridge.errors import ConfigError, ExhaustedError, StoreError
from bridge.web.listener import listening, listening_at
from bridge.web.unix import bound
from tests.scarce import no_descriptors
from tests.web.raw import Client, FakeAccount, client, get, nothing, post, served


async def ask(account: FakeAccount | None, data: bytes) -> tuple[int, dict[str, str], bytes]:
    async with served(account) as listener, client(listener) as caller:
        await caller.say(data)
        return await caller.answer()


async def test_the_account_gets_the_request_as_it_came() -> None:
    account = FakeAccount()
    await ask(account, post(b'{"a": 1}', "/channels/pigeon/main?x=1&y=%E5%9B%BE", "X-Sign: abc\r\n"))
    (request,) = account.requests
    assert (request.method, request.path, request.body) == ("POST", "", b'{"a": 1}')
    assert dict(request.query) == {"x": "1", "y": "图"}
    assert request.headers["x-SIGN"] == "abc"
    assert request.received_at == START


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("/channels/pigeon/main", ""),
        ("/channels/pigeon/main/", ""),
        ("/channels/pigeon/main/replies", "/replies"),
        ("/channels/pigeon/main/files/%E5%9B%BE.png", "/files/图.png"),
        ("http://elsewhere/channels/pigeon/main/replies", "/replies"),
    ],
)
async def test_what_follows_the_route_is_the_accounts_path(path: str, rest: str) -> None:
    account = FakeAccount()
    await ask(account, get(path))
    assert [request.path for request in account.requests] == [rest]
    assert account.requests[0].query == {}


@pytest.mark.parametrize(
    "path",
    [
        "/channels/pigeon/other",
        "/channels/pigeon",
        "/channels/",
        "/channels/pigeon/main2",
        "/channels/pigeon/../pigeon/mai",
        "/Channels/pigeon/main",
        "/",
        "/healthz/x",
    ],
)
async def test_anything_else_is_not_found(path: str) -> None:
    account = FakeAccount()
    status, headers, body = await ask(account, get(path))
    assert (status, body) == (404, b'{"error":"not_found"}')
    assert headers["server"] == "turnbridge"
    assert account.requests == []


async def test_the_accounts_answer_is_passed_on_as_it_is() -> None:
    answer = Answer(429, "好".encode(), "text/plain; charset=utf-8", {"Retry-After": "7"})
    status, headers, body = await ask(FakeAccount(answer), post())
    assert (status, body.decode()) == (429, "好")
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["retry-after"] == "7"


async def test_a_file_is_streamed_and_one_that_is_gone_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    there = FileAnswer(tmp_path / "file", "a.txt", "text/plain", 4)
    assert (await ask(FakeAccount(there), get("/channels/pigeon/main/files/x")))[2] == b"data"
    gone = FileAnswer(tmp_path / "none", "a.txt", "text/plain", 4)
    assert (await ask(FakeAccount(gone), get("/channels/pigeon/main/files/x")))[0] == 404


async def test_a_response_that_is_a_send_is_written_and_told_of() -> None:
    told: list[bool | None] = []
    sent = SentAnswer(Answer(200, b"hello"), told.append)
    assert (await ask(FakeAccount(sent), post()))[2] == b"hello"
    assert told == [True]


async def test_what_is_left_unanswered_ends_the_connection() -> None:
    async with served(FakeAccount(NoAnswer())) as listener, client(listener) as caller:
        await caller.say(post())
        assert await caller.rest() == b""


async def test_a_body_over_the_limit_ends_the_connection() -> None:
    account = FakeAccount()
    async with served(account) as listener, client(listener) as caller:
        await caller.say(post(b"x" * 1001))
        assert (await caller.answer())[0] == 413
        assert await caller.rest() == b""
    assert account.requests == []


async def test_what_could_not_be_stored_is_to_come_again(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", as_json=True)
    status, headers, body = await ask(FakeAccount(StoreError("the disk is full")), post())
    assert (status, headers["retry-after"], body) == (503, "5", b'{"error":"not_stored"}')
    assert "the disk is full" in capsys.readouterr().err


async def test_requests_of_one_account_run_side_by_side() -> None:
    account = FakeAccount(gate=asyncio.Event())
    async with served(account) as listener:
        async with client(listener) as first, client(listener) as second:
            for one in (first, second):
                await one.say(post())
            while len(account.requests) < 2:
                await asyncio.sleep(0.001)
            assert account.gate is not None
            account.gate.set()
            for one in (first, second):
                assert (await one.answer())[0] == 200


async def test_what_is_no_accounts_is_the_daemons_own_to_answer() -> None:
    asked: list[tuple[str, str]] = []

    async def own(path: str, headers: Mapping[str, str]) -> Answer:
        asked.append((path, headers["authorization"]))
        return Answer(401, b"no", "text/plain", {"WWW-Authenticate": "Bearer"})

    async with served(None, own) as listener, client(listener) as caller:
        await caller.say(get("/metrics?x=1", "Authorization: Bearer me\r\n"))
        status, headers, body = await caller.answer()
    assert (status, headers["www-authenticate"], body) == (401, "bearer", b"no")
    assert asked == [("/metrics", "Bearer me")]


async def test_an_address_that_is_taken_is_an_operators_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        table = WebTable(port=taken.getsockname()[1])
        with pytest.raises(ConfigError, match=r"web\.port \d+: Address already .* of config\.toml"):
            async with listening(table, lambda channel, account: None, FakeClock(), nothing):
                pass


async def test_that_the_system_lacks_descriptors_is_no_mistake_of_the_settings(tmp_path: Path) -> None:
    table = WebTable(port=0)
    with no_descriptors(), pytest.raises(ExhaustedError, match=r"Too many open files: allow more") as caught:
        async with listening(table, lambda channel, account: None, FakeClock(), nothing):
            pass
    assert "choose another" not in str(caught.value)
    with no_descriptors(), pytest.raises(ExhaustedError, match="Too many open files"), bound(tmp_path / "s"):
        pass


async def test_at_the_end_nothing_listens_and_requests_are_let_finish() -> None:
    account = FakeAccount(gate=asyncio.Event())
    context = served(account)
    listener = await context.__aenter__()
    async with client(listener) as caller, asyncio.TaskGroup() as tasks:
        await caller.say(post())
        while not account.requests:
            await asyncio.sleep(0.001)
        tasks.create_task(context.__aexit__(None, None, None))
        await settle()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", listener.port)
        assert account.gate is not None
        account.gate.set()
        assert (await caller.answer())[0] == 200
        assert await caller.rest() == b""


async def test_a_host_that_is_not_ours_is_an_operators_error() -> None:
    table = WebTable(host="203.0.113.1", port=0)
    with pytest.raises(ConfigError, match=r"web\.host 203\.0\.113\.1"):
        async with listening(table, lambda channel, account: None, FakeClock(), nothing):
            pass


async def test_a_unix_socket_serves_as_an_address_does_and_is_gone_at_the_end() -> None:
    account = FakeAccount()
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as folder:
        path = Path(folder) / "console.sock"
        find = {("pigeon", "main"): account}
        async with listening_at(path, WebTable(), lambda *name: find.get(name), FakeClock(), nothing):
            reader, writer = await asyncio.open_unix_connection(str(path))
            caller = Client(reader, writer)
            await caller.say(post(b"1"))
            assert (await caller.answer())[0] == 200
            await caller.say(get("/channels/pigeon/other"))
            assert (await caller.answer())[0] == 404
            writer.close()
        assert not path.exists()
    assert [request.body for request in account.requests] == [b"1"]


async def test_a_family_of_addresses_that_this_system_has_not_is_an_operators_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = socket.socket

    def no_internet(family: int = socket.AF_INET, *more: int, **named: object) -> socket.socket:
        if more and not named:  # as asyncio makes them
            raise OSError(errno.EAFNOSUPPORT, "")
        return real(family)

    monkeypatch.setattr(socket, "socket", no_internet)
    with pytest.raises(ConfigError, match="Address family not supported"):
        async with listening(WebTable(port=0), lambda channel, account: None, FakeClock(), nothing):
            pass
