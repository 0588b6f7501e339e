"""A request's way: what leaves, how much may come, and how long it may be silent."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest

from bridge.agents.contract import AgentError
from bridge.agents.llm.mending import ChatMender, Mender
from bridge.agents.llm.wire import ERROR_BYTES, RESPONSE_BYTES, Watch, Wire
from bridge.channel.testing.clock import FakeClock, settle


class Bytes(httpx2.AsyncByteStream):
    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces, self.closed = pieces, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    async def aclose(self) -> None:
        self.closed = True


class Pool(httpx2.AsyncBaseTransport):
    """Answers every request with the same pieces."""

    def __init__(self, *pieces: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.stream, self.status, self.headers = Bytes(pieces), status, headers
        self.sent: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        return httpx2.Response(self.status, headers=self.headers, stream=self.stream)


def watch(clock: FakeClock | None = None) -> Watch:
    return Watch(clock or FakeClock(), 10, 4)


async def fetch(pool: Pool, seen: Watch, mender: Mender | None = None, **headers: str) -> bytes:
    wire = Wire(pool, {"authorization": "Bearer key"}, seen, mender)
    async with httpx2.AsyncClient(transport=wire) as client:
        answer = await client.get("http://127.0.0.1/x", headers=headers)
        return answer.content


async def test_only_what_is_needed_leaves_and_the_key_is_put_in_last() -> None:
    pool = Pool(b"ok")
    told = {
        "x-stainless-os": "Linux",
        "authorization": "Bearer none",
        "anthropic-version": "1",
        "cookie": "a",
    }
    assert await fetch(pool, watch(), None, **told) == b"ok"
    (sent,) = pool.sent
    assert set(sent.headers) == {
        "host",
        "accept",
        "anthropic-version",
        "authorization",
        "accept-encoding",
        "user-agent",
    }
    assert sent.headers["authorization"] == "Bearer key"
    assert sent.headers["user-agent"].startswith("turnbridge/")
    assert pool.stream.closed


async def test_bytes_that_are_packed_though_nobody_asked_stay_as_they_are() -> None:
    assert await fetch(Pool(b"not gzip", headers={"content-encoding": "gzip"}), watch()) == b"not gzip"


async def test_an_answer_over_its_limit_is_refused() -> None:
    line = b"data: x\n\n" * 100_000
    assert len(await fetch(Pool(*[line] * 4), watch())) == 4 * len(line)
    with pytest.raises(AgentError, match=f"over {RESPONSE_BYTES} bytes") as caught:
        await fetch(Pool(*[line] * 5), watch())
    assert caught.value.code == "response_limit"


async def test_of_a_refusal_only_the_beginning_is_read() -> None:
    assert await fetch(Pool(b"a" * 60_000, b"b" * 60_000, b"c", status=500), watch()) == (
        b"a" * 60_000 + b"b" * (ERROR_BYTES - 60_000)
    )
    assert await fetch(Pool(b"no", status=400), watch()) == b"no"


async def test_events_are_mended_and_their_ends_are_seen() -> None:
    seen = watch()
    usage = b'data: {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}\n\n'
    pool = Pool(b"data: nu", b'll\n\ndata: {"choices"', b': [{"finish_reason": "stop"}]}\n\n', usage[:-2])
    said = await fetch(pool, seen, ChatMender())
    assert said.count(b"data: {") == 2
    assert b"null\n\n" not in said.split(b"data: {")[0]
    assert (seen.began, seen.is_whole, seen.is_counted) == (True, True, True)


async def test_an_answer_that_is_json_becomes_events() -> None:
    seen, whole = watch(), b' {"choices": [{"message": {"content": "a"}}]}'
    said = await fetch(Pool(b"", whole[:9], whole[9:]), seen, ChatMender())
    assert said.startswith(b"data: ")
    assert b'"content": "a"' in said
    assert seen.is_whole


async def test_what_begins_with_events_goes_on_with_them() -> None:
    said = await fetch(Pool(b"data: null\n\n", b"{}\n\n"), watch(), ChatMender())
    assert said == b""


async def test_a_whole_answer_is_asked_for_where_none_comes_in_events() -> None:
    pool = Pool(b"ok")
    wire = Wire(pool, {}, watch(), streams=False)
    async with httpx2.AsyncClient(transport=wire) as client:
        body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
        await client.post("http://127.0.0.1/x", json=body)
    assert json.loads(pool.sent[0].content) == {"model": "m", "stream": False}
    assert int(pool.sent[0].headers["content-length"]) == len(pool.sent[0].content)


async def test_what_was_held_back_comes_at_the_end() -> None:
    pool = Pool(b'data: {"choices": [{"delta": {"content": "<thi"}}]}\n\n')
    seen = watch()
    assert b'"content": "<thi"' in await fetch(pool, seen, ChatMender())
    assert not seen.is_whole


async def test_nothing_has_begun_before_a_byte_came() -> None:
    seen = watch()
    await fetch(Pool(b"", b""), seen)
    assert (seen.began, seen.is_whole) == (False, False)


async def test_silence_ends_the_work_and_what_is_heard_begins_it_anew() -> None:
    clock = FakeClock()
    seen = Watch(clock, 10, 4)
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(seen.limit(_for_ever()))
        await settle()
        await clock.advance(9)
        seen.heard()
        await clock.advance(3.5)
        assert not working.done()
        await clock.advance(1)
        assert working.result() is None


async def test_the_first_byte_has_a_time_of_its_own() -> None:
    clock = FakeClock()
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(Watch(clock, 10, 4).limit(_for_ever()))
        await settle()
        await clock.advance(9.5)
        assert not working.done()
        await clock.advance(1)
        assert working.result() is None


async def test_while_the_endpoint_is_not_listened_to_it_is_not_silent() -> None:
    clock = FakeClock()
    seen = Watch(clock, 10, 4)
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(seen.limit(_for_ever()))
        await settle()
        seen.heard()
        with seen.paused():
            await clock.advance(100)
            assert not working.done()
        await clock.advance(3)
        assert not working.done()
        await clock.advance(2)
        assert working.result() is None


async def test_what_the_work_returns_is_returned_and_its_own_timeout_is_its_own() -> None:
    assert await watch().limit(_three()) == 3
    with pytest.raises(ExceptionGroup) as caught:
        await watch().limit(_late())
    assert isinstance(caught.value.exceptions[0], TimeoutError)


async def test_cancelling_ends_the_work() -> None:
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(watch().limit(_for_ever()))
        await settle()
        working.cancel()
    assert working.cancelled()


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _three() -> int:
    return 3


async def _late() -> None:
    raise TimeoutError
