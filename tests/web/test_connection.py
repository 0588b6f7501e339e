"""A connection is cut when its header is late, when it idles, when it does not read; and never before."""

import asyncio

import pytest

from bridge import logs
from bridge.channel import Answer
from bridge.web.connection import Connection
from tests.web.raw import FakeAccount, client, get, post, served

SHORT = 0.05  # seconds: deadlines that tests wait for, on the loop's own clock


async def test_a_client_that_sends_nothing_is_cut_after_the_header_deadline() -> None:
    async with served(header_seconds=SHORT) as listener, client(listener) as silent:
        assert await silent.rest() == b""


async def test_a_client_that_dribbles_its_header_is_cut_all_the_same() -> None:
    async with served(header_seconds=SHORT) as listener, client(listener) as slow:
        started = asyncio.get_running_loop().time()
        async with asyncio.timeout(5):
            for byte in get("/healthz", "X-Slow: " + "a" * 1000):
                if slow.is_cut:
                    break
                slow.writer.write(bytes([byte]))
                await asyncio.sleep(SHORT / 20)
        assert slow.is_cut
        assert asyncio.get_running_loop().time() - started < 2


async def test_the_second_header_of_a_connection_has_a_deadline_too() -> None:
    async with served(header_seconds=SHORT) as listener, client(listener) as slow:
        await slow.say(get("/healthz"))
        assert (await slow.answer())[0] == 200
        await asyncio.sleep(SHORT * 2)  # idle: not cut, as the idle limit is another
        await slow.say(b"GET /hea")
        assert await slow.rest() == b""


async def test_an_idle_connection_is_kept_for_the_next_request_and_then_cut() -> None:
    async with served(header_seconds=30, idle_seconds=SHORT * 4) as listener, client(listener) as idle:
        await idle.say(get("/healthz"))
        assert (await idle.answer())[0] == 200
        await asyncio.sleep(SHORT)
        await idle.say(get("/healthz"))
        assert (await idle.answer())[0] == 200
        assert await idle.rest() == b""


async def test_a_request_that_takes_its_time_is_not_cut_by_the_header_deadline() -> None:
    account = FakeAccount(gate=asyncio.Event())
    async with served(account, header_seconds=SHORT) as listener, client(listener) as patient:
        await patient.say(post())
        await asyncio.sleep(SHORT * 3)
        assert account.gate is not None
        account.gate.set()
        assert (await patient.answer())[0] == 200


async def test_a_client_that_has_said_all_and_closed_its_half_is_answered() -> None:
    account = FakeAccount(gate=asyncio.Event())
    async with served(account) as listener, client(listener) as half:
        await half.say(post())
        half.writer.write_eof()
        while not account.requests:
            await asyncio.sleep(0.001)
        assert account.gate is not None
        account.gate.set()
        assert (await half.answer())[0] == 200
        assert await half.rest() == b""


async def test_a_client_that_closes_its_half_in_the_middle_is_let_go() -> None:
    account = FakeAccount()
    async with served(account) as listener:
        for start in (b"", b"POST /chan", post(b"x" * 50)[:-10]):
            async with client(listener) as half:
                await half.say(start)
                half.writer.write_eof()
                assert await half.rest() == b""
    assert account.requests == []


async def test_a_half_closed_connection_that_idles_is_closed() -> None:
    async with served() as listener, client(listener) as half:
        await half.say(get("/healthz"))
        assert (await half.answer())[0] == 200
        half.writer.write_eof()
        assert await half.rest() == b""


async def test_pipelined_requests_are_answered_in_order() -> None:
    account = FakeAccount()
    async with served(account) as listener, client(listener) as eager:
        await eager.say(b"".join(post(b"%d" % n) for n in range(50)))
        for _ in range(50):
            assert (await eager.answer())[0] == 200
    assert [request.body for request in account.requests] == [b"%d" % n for n in range(50)]


async def test_a_client_that_does_not_read_is_cut() -> None:
    account = FakeAccount(Answer(200, b"x" * 30_000_000))
    async with served(account, body_seconds=SHORT) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1024)
        writer.write(post())
        await asyncio.sleep(SHORT * 6)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(30_000_000)
        writer.close()


async def test_a_client_that_reads_slowly_but_reads_gets_all_of_it() -> None:
    account = FakeAccount(Answer(200, b"x" * 5_000_000))
    async with served(account, body_seconds=5) as listener, client(listener) as slow:
        await slow.say(post())
        await asyncio.sleep(SHORT)
        status, _, body = await slow.answer()
    assert (status, len(body)) == (200, 5_000_000)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hunter2\r\n\r\n",
        b"hunter2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nhunter2\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"hunter2" * 3000 + b"\r\n\r\n",
        b"POST /channels/pigeon/main HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /channels/pigeon/main HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_without_repeating_it(
    garbage: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure("info", as_json=True)
    async with served(FakeAccount()) as listener, client(listener) as odd:
        await odd.say(garbage)
        said = await odd.rest()
    assert said.split(b" ", 2)[1] == b"400"
    assert said.endswith(b'{"error":"bad_request"}')
    assert b"hunter2" not in said
    assert capsys.readouterr().err == ""  # whoever knocks fills no log


async def test_a_bug_is_answered_with_500_and_logged_by_class_and_place_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("info", as_json=True)
    async with served(FakeAccount(ValueError("hunter2"))) as listener, client(listener) as caller:
        await caller.say(post())
        status, _, body = await caller.answer()
        assert await caller.rest() == b""
    assert (status, body) == (500, b'{"error":"internal"}')
    logged = capsys.readouterr().err
    assert "ValueError" in logged
    assert "hunter2" not in logged


async def test_a_deadline_that_escapes_an_account_is_a_bug_too() -> None:
    async with served(FakeAccount(TimeoutError())) as listener, client(listener) as caller:
        await caller.say(post())
        assert (await caller.answer())[0] == 500


async def test_a_client_that_leaves_while_it_is_answered_is_no_bug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("info", as_json=True)
    account = FakeAccount(gate=asyncio.Event())
    async with served(account) as listener:
        async with client(listener) as hasty:
            await hasty.say(post())
            while not account.requests:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)  # the listener is told that it left, which nothing shows
        assert account.gate is not None
        account.gate.set()
        async with client(listener) as other:
            await other.say(get("/healthz"))
            assert (await other.answer())[0] == 200
    assert capsys.readouterr().err == ""


async def test_over_the_limit_the_connection_that_waited_longest_makes_room() -> None:
    async with served(max_connections=3) as listener:
        async with client(listener) as first, client(listener) as second, client(listener) as third:
            for one in (first, second, third):
                await one.say(get("/healthz"))
                assert (await one.answer())[0] == 200
            await first.say(get("/healthz"))  # now it is the second that has waited longest
            assert (await first.answer())[0] == 200
            async with client(listener) as new:
                await new.say(get("/healthz"))
                assert (await new.answer())[0] == 200
            assert await second.rest() == b""
            await third.say(get("/healthz"))
            assert (await third.answer())[0] == 200


async def test_connections_at_work_are_not_given_up_for_new_ones() -> None:
    account = FakeAccount(gate=asyncio.Event())
    async with served(account, max_connections=2) as listener:
        async with client(listener) as first, client(listener) as second:
            for one in (first, second):
                await one.say(post())
            while len(account.requests) < 2:
                await asyncio.sleep(0.001)
            async with client(listener) as new:
                assert await new.rest() == b""
            assert account.gate is not None
            account.gate.set()
            for one in (first, second):
                assert (await one.answer())[0] == 200


async def test_good_traffic_goes_on_under_idle_and_dribbling_attackers() -> None:
    account = FakeAccount()
    async with served(account, max_connections=64, header_seconds=1) as listener:
        attackers = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(60)]
        for _, writer in attackers[::2]:
            writer.write(b"POST /channels/pigeon/main HTTP/1.1\r\nHost")
        async with asyncio.timeout(5):
            for _ in range(20):
                async with client(listener) as good:
                    await good.say(post())
                    assert (await good.answer())[0] == 200
        for reader, writer in attackers:
            writer.close()
            del reader
    assert len(account.requests) == 20


async def test_a_body_that_turns_into_no_http_is_refused_and_ends_the_connection() -> None:
    account = FakeAccount()
    start = (
        b"POST /channels/pigeon/main HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
    )
    async with served(account) as listener, client(listener) as odd:
        await odd.say(start)
        await asyncio.sleep(0.01)  # so that they come apart
        await odd.say(b"no length\r\n")
        assert (await odd.answer())[0] == 400
        await odd.rest()
    assert account.requests == []


async def test_a_timer_that_fires_too_late_cuts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Connection] = []
    begin = Connection.connection_made

    def noting(connection: Connection, transport: asyncio.BaseTransport) -> None:
        made.append(connection)
        begin(connection, transport)

    monkeypatch.setattr(Connection, "connection_made", noting)
    account = FakeAccount(gate=asyncio.Event())
    async with served(account) as listener:
        async with client(listener) as working:
            await working.say(post())
            while not account.requests:
                await asyncio.sleep(0.001)
            made[0]._cut()  # the header's, just as the header has come
            assert account.gate is not None
            account.gate.set()
            assert (await working.answer())[0] == 200
        while made[0].transport is not None:
            await asyncio.sleep(0.001)
        made[0]._abort()  # the reader's, just as it has gone
        async with client(listener) as other:
            await other.say(get("/healthz"))
            assert (await other.answer())[0] == 200
