import asyncio
import base64
import hashlib
import json
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from standardwebhooks import Webhook

from bridge.channel.testing.clock import FakeClock, settle
from bridge.channel.testing.fakes.webhook import (
    RETRY_SECONDS,
    Account,
    Delivery,
    FakeWebhookClient,
    inline,
    message_event,
    new_secret,
)
from bridge.channel.testing.fakes.webhook_receiver import signature_of

SECRET, TOKEN = new_secret(), "ask-token"


class Bridge:
    """The other end, as far as a sender sees it: it answers as planned, and is asked."""

    def __init__(self) -> None:
        self.plan: deque[web.Response | None] = deque()
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.waiting: list[dict[str, Any]] = []
        self.questions: list[dict[str, str]] = []

    async def take(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append((headers, await request.read()))
        planned = self.plan.popleft() if self.plan else web.json_response({"accepted": True}, status=202)
        if planned is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return planned

    async def tell(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        self.questions.append(dict(request.query))
        after = int(request.query["after"])
        new = [each for each in self.waiting if each["cursor"] > after]
        return web.json_response({"replies": new, "cursor": max([after, *(each["cursor"] for each in new)])})

    async def file(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=request.match_info["name"].encode())


@asynccontextmanager
async def bridge(clock: FakeClock, token: str = TOKEN) -> AsyncIterator[tuple[Bridge, FakeWebhookClient]]:
    made = Bridge()
    app = web.Application()
    app.router.add_post("/w/a", made.take)
    app.router.add_get("/w/a/replies", made.tell)
    app.router.add_get("/w/a/files/{name}", made.file)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/w/a"
        async with FakeWebhookClient(Account(url, SECRET, [SECRET], token), clock=clock) as client:
            yield made, client
    finally:
        await runner.cleanup()


async def until_waiting(clock: FakeClock) -> float:
    """The wait that the sender has begun, once the network has done its part."""
    while not clock.waits():
        await asyncio.sleep(0.001)
    return clock.waits()[0]


async def test_a_message_is_sent_as_the_reference_library_would_sign_it() -> None:
    clock = FakeClock()
    async with bridge(clock) as (made, client):
        delivery = await client.say("你好", sender={"id": "u2"})
    ((headers, body),) = made.requests
    assert delivery.acknowledged
    assert (delivery.statuses, delivery.answer) == ([202], {"accepted": True})
    assert headers["webhook-signature"] == Webhook(SECRET).sign(
        delivery.webhook_id, clock.now(), body.decode()
    )
    data = json.loads(body)["data"]
    assert (data["text"], data["sender"], data["conversation_id"]) == ("你好", {"id": "u2"}, "c1")


async def test_what_is_not_acknowledged_goes_out_again_with_the_same_id_and_a_fresh_time() -> None:
    clock = FakeClock()
    async with bridge(clock) as (made, client):
        made.plan.extend(
            [web.Response(status=500), None, web.Response(status=429, headers={"Retry-After": "900"})]
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(client.say("hello"))
            waits = []
            for _ in range(3):
                waits.append(await until_waiting(clock))
                await clock.advance(waits[-1])
        delivery = task.result()
    assert waits == [5, 300, 1800]
    assert delivery.statuses == [500, 0, 429, 202]
    ids, times, bodies = zip(
        *((headers["webhook-id"], headers["webhook-timestamp"], body) for headers, body in made.requests),
        strict=True,
    )
    assert (len(set(ids)), len(set(times)), len(set(bodies))) == (1, 4, 1)


async def test_a_longer_retry_after_wins() -> None:
    clock = FakeClock()
    async with bridge(clock) as (made, client):
        made.plan.append(web.Response(status=503, headers={"Retry-After": "77"}))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(client.say("hello"))
            assert await until_waiting(clock) == 77
            await clock.advance(77)
        assert task.result().statuses == [503, 202]


@pytest.mark.parametrize("status", [400, 401, 409, 413, 422])
async def test_a_refusal_is_final(status: int) -> None:
    async with bridge(FakeClock()) as (made, client):
        made.plan.append(web.json_response({"error": "no"}, status=status))
        delivery = await client.deliver(message_event("x"), "msg_own")
    assert (delivery.webhook_id, delivery.statuses, delivery.acknowledged) == ("msg_own", [status], False)
    assert client.deliveries == [delivery]


async def test_a_delivery_is_given_up_when_its_waits_are_used_up() -> None:
    client = FakeWebhookClient(
        Account("http://127.0.0.1:1/", SECRET), clock=FakeClock(), retry_seconds=[0, 0]
    )
    async with client:
        assert (await client.say("x")).statuses == [0, 0]
    async with bridge(FakeClock()) as (made, whole):
        made.plan.extend([web.Response(status=500), web.Response(status=502)])
        async with FakeWebhookClient(whole.account, clock=FakeClock(), retry_seconds=[0, 0]) as client:
            assert (await client.say("x")).statuses == [500, 502]
    assert not Delivery("a", b"").acknowledged
    assert sum(RETRY_SECONDS) > 75 * 3600


async def test_asking_moves_the_cursor_and_keeps_each_reply_once() -> None:
    async with bridge(FakeClock()) as (made, client):
        assert await client.ask() == []
        made.waiting = [{"cursor": 3, "text": "a"}, {"cursor": 4, "text": "b"}]
        assert [each["text"] for each in await client.ask(25)] == ["a", "b"]
        client.cursor = 3  # as after a crash between receiving and remembering
        assert await client.ask(0.5) == []
    assert [(each["after"], each["wait"]) for each in made.questions] == [
        ("0", "0"),
        ("0", "25"),
        ("3", "0.5"),
    ]
    assert sorted(client.asked) == [3, 4]


async def test_a_wrong_token_is_an_error() -> None:
    async with bridge(FakeClock(), token="wrong") as (_, client):
        with pytest.raises(aiohttp.ClientResponseError):
            await client.ask()


async def test_files_come_from_the_reply_or_from_an_address_relative_to_the_asking() -> None:
    async with bridge(FakeClock()) as (_, client):
        digest = hashlib.sha256(b"AB").hexdigest()
        assert await client.content({"content_base64": "QUI=", "sha256": digest}) == b"AB"
        assert await client.content({"url": "files/AB", "sha256": digest}) == b"AB"
        with pytest.raises(ValueError, match="not the one"):
            await client.content({"url": f"{client.account.url}/files/other", "sha256": digest})


async def test_it_takes_callbacks_too() -> None:
    clock = FakeClock()
    async with bridge(clock) as (_, client):
        body, now = b'{"type":"reply.created","data":{"text":"hi"}}', str(int(clock.now().timestamp()))
        headers = {"webhook-id": "a", "webhook-timestamp": now, "Content-Type": "application/json"}
        headers["webhook-signature"] = signature_of(SECRET, "a", now, body)
        async with client.session.post(client.receiver.url, data=body, headers=headers) as response:
            assert response.status == 204
        assert [kept.data for kept in await client.replies(1)] == [{"text": "hi"}]
        await settle()


async def test_it_is_used_as_a_context() -> None:
    with pytest.raises(RuntimeError, match="context manager"):
        await FakeWebhookClient(Account("http://127.0.0.1:1/", SECRET)).ask()


def test_inline_attachments_describe_themselves() -> None:
    assert inline("a", "m", b"AB") == {
        "name": "a",
        "mime_type": "m",
        "size": 2,
        "sha256": hashlib.sha256(b"AB").hexdigest(),
        "content_base64": base64.b64encode(b"AB").decode(),
    }


def test_it_needs_no_pytest() -> None:
    code = "import sys, bridge.channel.testing.fakes.webhook; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
