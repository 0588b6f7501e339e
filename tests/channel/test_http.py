"""Requests of an adapter, against servers on loopback that answer rightly or wrongly."""

import asyncio
import io
import threading
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from bridge.channel.http import Http, HttpAnswer, Query, TooLargeError, UploadFile, http_session
from bridge.channel.testing.clock import until
from bridge.errors import ChannelError, ConfigError, CredentialsError, OutcomeUnknownError, UnreachableError
from bridge.logs import HIDDEN, clean
from tests.channel.serving import client, raw, serving

SECRET = "s3cret"


async def echo(request: web.BaseRequest) -> web.Response:
    """What came, as JSON."""
    body = await request.read()
    return web.json_response(
        {
            "method": request.method,
            "path": request.raw_path,
            "auth": request.headers.get("Authorization", ""),
            "type": request.headers.get("Content-Type", ""),
            "length": request.headers.get("Content-Length", ""),
            "extra": request.headers.get("X-Extra", ""),
            "body": body.decode("utf-8", "replace"),
        }
    )


async def test_a_get_carries_query_token_and_headers() -> None:
    async with serving(echo) as base, client(base + "/api/") as http:
        query: Query = {"a": "中 b", "n": 1, "yes": True, "none": None}
        answer = await http.get("/x%2Fy", query, headers={"X-Extra": "e"})
    assert (answer.status, answer.method, answer.host) == (200, "GET", "127.0.0.1")
    assert answer.body["path"] == "/api/x%2Fy?a=%E4%B8%AD+b&n=1&yes=true"
    assert (answer.body["auth"], answer.body["extra"]) == ("Bearer t0ken", "e")
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.date is not None


async def test_a_post_carries_json_in_utf8() -> None:
    async with serving(echo) as base, client(base) as http:
        answer = await http.post("send", {"text": "中\ud800"})
        empty = await http.post("")
    assert (answer.body["path"], answer.body["type"]) == ("/send", "application/json")
    assert answer.body["body"] == '{"text":"中?"}'
    assert (empty.body["path"], empty.body["body"]) == ("/", "")


async def test_forms_and_bytes_and_other_methods() -> None:
    async with serving(echo) as base, client(base) as http:
        form = await http.post_form("/f", {"a": "1 2", "b": "中"})
        put = await http.request(
            "PUT", "?x=1", body=b"raw", content_type="text/x", headers={"Content-Type": "text/y"}
        )
    assert form.body["body"] == "a=1+2&b=%E4%B8%AD"
    assert form.body["type"] == "application/x-www-form-urlencoded"
    assert (put.body["method"], put.body["body"], put.body["type"]) == ("PUT", "raw", "text/y")


@pytest.mark.parametrize("name", ["测试中文.pdf", "报告—详情（2026）.md", "😀.png", "100%.txt"])
@pytest.mark.parametrize("in_memory", [True, False])
async def test_an_upload_carries_the_name_untouched(name: str, in_memory: bool, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"DATA")
    content = b"DATA" if in_memory else tmp_path / "file"
    async with serving(echo) as base, client(base) as http:
        answer = await http.upload("/up", {"file_name": name}, UploadFile("file", name, content, "text/x"))
    body = answer.body["body"]
    assert f'name="file"; filename="{name}"' in body
    assert f"\r\n\r\n{name}\r\n" in body
    assert "\r\n\r\nDATA\r\n" in body
    assert int(answer.body["length"]) == len(body.encode())


async def test_an_upload_replaces_only_what_breaks_a_form() -> None:
    async with serving(echo) as base, client(base) as http:
        answer = await http.upload("/up", {"k": "v\ud800"}, UploadFile("file", 'a"b\r\nc\\d', b"x"))
    assert 'filename="a_b__c_d"' in answer.body["body"]


async def test_a_file_that_cannot_be_read_is_named_by_nobody(tmp_path: Path) -> None:
    async with client("http://127.0.0.1:9") as http:
        with pytest.raises(ChannelError, match="cannot be read") as error:
            await http.upload("/up", {}, UploadFile("file", "x", tmp_path / "gone"))
    assert "gone" not in str(error.value)


async def test_a_download_comes_in_pieces() -> None:
    async def file(_request: web.BaseRequest) -> web.Response:
        headers = {"Content-Disposition": "attachment; filename*=UTF-8''%E4%B8%AD.png"}
        return web.Response(body=b"x" * 300_000, content_type="IMAGE/png", headers=headers)

    async with serving(file) as base, client(base) as http, http.stream("/f", {"a": 1}) as stream:
        assert (stream.status, stream.mime, stream.name, stream.size) == (200, "image/png", "中.png", 300_000)
        chunks = [chunk async for chunk in stream.chunks(300_000)]
    assert b"".join(chunks) == b"x" * 300_000
    assert len(chunks) > 1


async def test_a_download_that_is_an_error_can_be_read_as_an_answer() -> None:
    async with serving(echo) as base, client(base) as http, http.stream("/f") as stream:
        assert (await stream.answer()).body["path"] == "/f"


async def endless(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b"x" * 65536)
    except ConnectionError:
        return response


async def test_a_download_is_aborted_past_its_limit_whatever_was_announced() -> None:
    async with serving(endless) as base, client(base) as http, http.stream("/f") as stream:
        assert stream.size is None
        with pytest.raises(TooLargeError):
            await stream.read(1000)


async def test_an_answer_can_be_cut_at_its_limit() -> None:
    async with serving(endless) as base, client(base) as http:
        answer = await http.post("/x", max_bytes=100_000, cut=True)
    assert 0 < len(answer.raw) <= 100_000


async def test_an_adapter_sees_the_accounts_clock() -> None:
    async with client("http://127.0.0.1:9") as http:
        assert http.clock is http.at("http://127.0.0.1:9").clock


async def test_a_download_announced_too_large_is_not_read() -> None:
    async with raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nab", stall=True) as base:
        async with client(base) as http, http.stream("/f") as stream:
            with pytest.raises(TooLargeError):
                await stream.read(1000)


@pytest.mark.parametrize(("method", "error"), [("GET", UnreachableError), ("POST", OutcomeUnknownError)])
class TestNoUsableAnswer:
    async def ask(self, base: str, method: str, error: type[ChannelError], **options: Any) -> None:
        async with client(base + f"/{SECRET}") as http:
            with pytest.raises(error) as caught:
                await http.request(method, f"/{SECRET}", query={"q": SECRET}, **options)
        assert SECRET not in str(caught.value)
        assert str(caught.value).startswith(f"{method} 127.0.0.1: ")
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__

    async def test_hung_up(self, method: str, error: type[ChannelError]) -> None:
        async with raw(b"") as base:
            await self.ask(base, method, error)

    async def test_cut_off(self, method: str, error: type[ChannelError]) -> None:
        async with raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab") as base:
            await self.ask(base, method, error)

    async def test_garbled(self, method: str, error: type[ChannelError]) -> None:
        async with raw(b"\x00\x01\x02 hello\r\n\r\n") as base:
            await self.ask(base, method, error)

    async def test_stalled(self, method: str, error: type[ChannelError]) -> None:
        async with raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab", stall=True) as base:
            await self.ask(base, method, error, timeout_seconds=0.05)

    async def test_never_begun(self, method: str, error: type[ChannelError]) -> None:
        async with raw(b"", stall=True) as base:
            await self.ask(base, method, error, timeout_seconds=0.05)

    async def test_too_large(self, method: str, error: type[ChannelError]) -> None:
        async with serving(endless) as base:
            await self.ask(base, method, error, max_bytes=1000)

    async def test_badly_packed(self, method: str, error: type[ChannelError]) -> None:
        async with raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd") as base:
            await self.ask(base, method, error)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_without_a_connection_nothing_was_accepted(method: str) -> None:
    async with raw(b"") as base:
        pass
    async with client(base) as http:
        with pytest.raises(UnreachableError, match="no connection"):
            await http.request(method, f"/{SECRET}")


async def test_cancelling_a_request_is_passed_on() -> None:
    async with raw(b"", stall=True) as base, client(base) as http:
        with pytest.raises(TimeoutError):  # ours, from a cancellation that went all the way
            async with asyncio.timeout(0.05):
                await http.post("/x")


async def test_the_token_goes_to_its_own_origin_only() -> None:
    async with serving(echo) as base, serving(echo) as other:
        async with client(base, allow=(other.removeprefix("http://"),)) as http:
            own = await http.get(f"{base}/a%7Eb?x=%2f")
            foreign = await http.at(base, SecretStr("x"), {"X-Extra": "e"}).get(f"{other}/a%7Eb?x=%2f")
    assert (own.body["auth"], own.body["path"]) == ("Bearer t0ken", "/a%7Eb?x=%2f")
    assert (foreign.body["auth"], foreign.body["extra"], foreign.body["path"]) == ("", "", "/a%7Eb?x=%2f")


async def test_an_address_of_another_origin_passes_the_guard() -> None:
    async with serving(echo) as base, serving(echo) as other, client(base) as http:
        with pytest.raises(UnreachableError, match="not requested"):
            await http.get(f"{other}/{SECRET}")
        allowing = http.at(base, allow=[other.removeprefix("http://")])
        assert (await allowing.get(other)).status == 200


async def test_a_guarded_base_passes_the_guard_itself_and_keeps_its_token() -> None:
    async with serving(echo) as base, client() as http:
        with pytest.raises(UnreachableError, match="not requested"):
            await http.at(base, guarded=True).post("/x")
        bound = http.at(base, "tok", guarded=True, allow=("127.0.0.1",))
        assert (await bound.post("/x")).body["auth"] == "Bearer tok"


@pytest.mark.parametrize("path", ["http://", "https://[x/", "mailto://", "http://a b/"])
async def test_what_is_no_address_is_not_requested(path: str) -> None:
    async with client() as http:
        with pytest.raises(UnreachableError):
            await http.get(path)


async def test_without_a_base_only_absolute_addresses_are_requested() -> None:
    async with client() as http:
        with pytest.raises(UnreachableError):
            await http.get("/x")


@pytest.mark.parametrize("base", ["e.example", "ftp://e.example", "https://", "/x"])
async def test_a_base_that_is_no_web_address_is_the_operators_error(base: str) -> None:
    async with http_session() as session:
        with pytest.raises(ConfigError):
            Http(session).at(base)


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "中", "  "])
async def test_a_token_that_no_header_takes_is_refused_without_showing_it(token: str) -> None:
    async with http_session() as session:
        with pytest.raises(CredentialsError) as error:
            Http(session).at("https://e.example", bearer=token)
    assert not token.strip() or token not in str(error.value)


async def test_websockets_talk_and_end_with_a_code() -> None:
    async def talk(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(request.headers["Authorization"])
        await socket.close(code=4004)
        return socket

    async with serving(talk) as base, client(base) as http:
        async with http.websocket(base.replace("http", "ws") + "/s", headers={"A": "b"}) as socket:
            assert not isinstance(socket, HttpAnswer)
            assert await socket.receive() == "Bearer t0ken"


async def test_a_refused_upgrade_is_an_answer() -> None:
    async with serving(echo) as base, client(base) as http, http.websocket("/s") as socket:
        assert isinstance(socket, HttpAnswer)
        assert socket.status == 200


@pytest.mark.parametrize("opens", [True, False])
async def test_cancelling_an_upload_while_its_file_is_opened_leaves_no_file_open(
    opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, entered, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    opened, ended = io.BytesIO(b"DATA"), asyncio.Event()

    def slow(_content: object) -> io.BytesIO:
        loop.call_soon_threadsafe(entered.set)
        go_on.wait(5)
        loop.call_soon_threadsafe(lambda: loop.call_soon(ended.set))
        if not opens:
            raise OSError("gone")
        return opened

    monkeypatch.setattr("bridge.channel.http.open_content", slow)
    async with client("http://127.0.0.1:9") as http, asyncio.TaskGroup() as tasks:
        upload = tasks.create_task(http.upload("/up", {}, UploadFile("file", "x", b"")))
        await entered.wait()
        upload.cancel()
        await asyncio.sleep(0)
        go_on.set()
        await ended.wait()
        await until(lambda: opened.closed or not opens)
    assert upload.cancelled()
    assert opened.closed is opens


async def test_what_a_request_bears_is_in_no_log_from_then_on() -> None:
    async with serving(echo) as base, client(base) as http:
        await http.get(
            "/x", {"access_token": "fetched-4715"}, headers={"Authorization": "Bearer fetched-4716"}
        )
        await http.get("/x?ticket=fetched-4717")
    assert clean("fetched-4715 fetched-4716 fetched-4717") == " ".join([HIDDEN] * 3)


async def test_no_remote_party_decides_by_an_address_what_no_log_holds() -> None:
    async with serving(echo) as base, client("http://127.0.0.1:1", allow=("127.0.0.1",)) as http:
        await http.get(f"{base}/x?token=connected")
    assert clean("connected") == "connected"
