import base64
import hashlib
import hmac
import json

import aiohttp
import pytest

from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.webhook import new_secret, signed_headers
from bridge.channel.testing.fakes.webhook_receiver import (
    Break,
    CallbackReceiver,
    Kept,
    Reaction,
    breaks,
    fails,
    moves,
    signature_of,
    throttles,
)

SECRET, OTHER = new_secret(), new_secret()
BODY = json.dumps({"type": "reply.created", "data": {"text": "hi"}}).encode()


async def post(receiver: CallbackReceiver, clock: FakeClock, webhook_id: str = "a", **headers: str) -> int:
    given = {**signed_headers(SECRET, webhook_id, int(clock.now().timestamp()), BODY), **headers}
    async with aiohttp.ClientSession() as session:
        async with session.post(receiver.url, data=BODY, headers=given, allow_redirects=False) as response:
            await response.read()
            return response.status


def test_a_signature_is_that_of_the_published_scheme() -> None:
    key = base64.b64decode(SECRET[6:])
    assert len(key) == 32
    expected = base64.b64encode(hmac.new(key, b"id.1.body", hashlib.sha256).digest()).decode()
    assert signature_of(SECRET, "id", "1", b"body") == f"v1,{expected}"


async def test_what_is_rightly_signed_is_kept_once_per_id() -> None:
    clock = FakeClock()
    async with CallbackReceiver([OTHER, SECRET], clock) as receiver:
        assert [await post(receiver, clock, webhook_id) for webhook_id in ("a", "a", "b")] == [204] * 3
        kept = await receiver.wait_for(2)
    assert [each.webhook_id for each in kept] == ["a", "b"]
    assert kept[0].data == {"text": "hi"}
    assert len(receiver.attempts) == 3


@pytest.mark.parametrize(
    "headers",
    [
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": ""},
        {"webhook-id": "other"},
        {"webhook-timestamp": "soon"},
        {"Content-Type": "text/plain"},
    ],
)
async def test_anything_else_is_refused(headers: dict[str, str]) -> None:
    clock = FakeClock()
    async with CallbackReceiver([SECRET], clock) as receiver:
        assert await post(receiver, clock, **headers) == 401
        assert not receiver.kept
        assert not receiver.attempts[0].genuine


async def test_an_old_time_is_refused() -> None:
    clock, late = FakeClock(), FakeClock()
    late.jump(301)
    async with CallbackReceiver([SECRET], late) as receiver:
        assert await post(receiver, clock) == 401


async def test_it_reacts_as_planned_and_then_well() -> None:
    clock = FakeClock()
    async with CallbackReceiver([SECRET], clock) as receiver:
        receiver.plan(
            fails(), throttles("7"), moves("http://other.example"), Reaction(200, body_bytes=200_000)
        )
        assert [await post(receiver, clock) for _ in range(5)] == [500, 429, 301, 200, 204]
        assert receiver.in_seconds(60) == "Fri, 02 Jan 2026 03:05:05 GMT"
        assert receiver.host in receiver.url


@pytest.mark.parametrize(("how", "keeps"), [(Break.CLOSE, False), (Break.CUT_HEADERS, True)])
async def test_it_breaks_off_with_or_without_having_kept_it(how: Break, keeps: bool) -> None:
    clock = FakeClock()
    async with CallbackReceiver([SECRET], clock) as receiver:
        receiver.plan(breaks(how, keeps))
        with pytest.raises(aiohttp.ClientError):
            await post(receiver, clock)
        assert len(receiver.kept) == keeps


async def test_it_breaks_off_in_the_middle_of_a_body() -> None:
    clock = FakeClock()
    async with CallbackReceiver([SECRET], clock) as receiver:
        receiver.plan(Reaction(200, broken=Break.CUT_BODY))
        with pytest.raises(aiohttp.ClientPayloadError):
            await post(receiver, clock)
        assert len(receiver.kept) == 1


async def test_a_plan_may_be_for_one_type_of_event_alone() -> None:
    clock = FakeClock()
    for planned, statuses in (("reply.created", [500, 204]), ("turn.started", [204, 204])):
        async with CallbackReceiver([SECRET], clock, planned) as receiver:
            receiver.plan(fails())
            assert [await post(receiver, clock) for _ in range(2)] == statuses


@pytest.mark.parametrize("how", [Break.HANG, Break.HANG_BODY])
async def test_it_hangs_until_it_closes(how: Break) -> None:
    clock = FakeClock()
    async with aiohttp.ClientSession() as session, CallbackReceiver([SECRET], clock) as receiver:
        receiver.plan(Reaction(200, broken=how))
        headers = signed_headers(SECRET, "a", int(clock.now().timestamp()), BODY)
        timeout = aiohttp.ClientTimeout(total=0.05)
        with pytest.raises(TimeoutError):
            async with session.post(receiver.url, data=BODY, headers=headers, timeout=timeout) as response:
                await response.read()


async def test_a_sender_that_has_read_enough_of_a_huge_body_may_go() -> None:
    clock = FakeClock()
    async with CallbackReceiver([SECRET], clock) as receiver, aiohttp.ClientSession() as session:
        receiver.plan(Reaction(200, body_bytes=100 * 1024 * 1024))
        headers = signed_headers(SECRET, "a", int(clock.now().timestamp()), BODY)
        async with session.post(receiver.url, data=BODY, headers=headers) as response:
            assert await response.content.read(10) == bytes(10)
            response.close()
        assert await post(receiver, clock, "b") == 204


async def test_it_serves_files_to_those_with_the_token() -> None:
    async with CallbackReceiver([]) as receiver, aiohttp.ClientSession() as session:
        receiver.files["a"] = b"bytes"
        receiver.file_token = "word"
        found = []
        for name, token in (("a", "word"), ("a", ""), ("b", "word")):
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{receiver.address}/files/{name}", headers=headers) as response:
                found.append((response.status, await response.read()))
    assert found == [(200, b"bytes"), (401, b""), (404, b"")]
    assert len(receiver.file_requests) == 3
    assert Kept("a", {"data": {}}).data == {}
