import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from bridge.channel.testing.clock import FakeClock, settle
from bridge.channel.testing.fakes.feishu.push import DELAYS, Push, Pusher


@asynccontextmanager
async def receiver(*statuses: int) -> AsyncIterator[tuple[str, list[tuple[Any, bytes]]]]:
    """The bot's side, which answers with ``statuses`` and then with 200; 0 is no answer."""
    came: list[tuple[Any, bytes]] = []
    left = [*statuses]

    async def take(request: web.Request) -> web.Response:
        came.append((request.headers, await request.read()))
        status = left.pop(0) if left else 200
        if status == 0 and request.transport is not None:
            request.transport.abort()
        return web.Response(status=status or 200, text="body")

    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/", came
    finally:
        await runner.cleanup()


async def test_what_is_acknowledged_is_not_pushed_again() -> None:
    async with receiver() as (to, came), aiohttp.ClientSession() as session:
        pusher, push = Pusher("key", to, FakeClock(), DELAYS), Push("om_1", {"a": 1})
        await pusher.attempt(push, session)
        await pusher.insist(push, session)
        assert (push.statuses, push.acknowledged, push.over.is_set(), len(came)) == ([200], True, True, 1)
        headers, body = came[0]
        assert {"X-Lark-Signature", "X-Lark-Request-Nonce", "X-Lark-Request-Timestamp"} <= set(headers)
        assert list(json.loads(body)) == ["encrypt"]


async def test_what_is_not_acknowledged_comes_again_on_the_platforms_schedule_and_then_never() -> None:
    clock = FakeClock()
    async with receiver(0, 500, 201, 403, 503) as (to, came), aiohttp.ClientSession() as session:
        pusher, push = Pusher("key", to, clock, DELAYS), Push("om_1", {})
        await pusher.attempt(push, session)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pusher.insist(push, session))
            for delay, count in zip(DELAYS, (2, 3, 4, 5), strict=True):
                await settle()
                assert clock.waits() == [delay]
                await clock.advance(delay)
                while len(push.statuses) < count:
                    await asyncio.sleep(0)
        assert push.statuses == [0, 500, 201, 403, 503]
        assert not push.acknowledged
        assert push.over.is_set()
        assert len({headers["X-Lark-Request-Nonce"] for headers, _ in came}) == 5


async def test_an_answer_that_is_late_counts_as_none() -> None:
    async def stall(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/", stall)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    push = Push("om_1", {})
    async with aiohttp.ClientSession() as session:
        to = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        await Pusher("", to, FakeClock(), (), 0.05).attempt(push, session)
    await runner.cleanup()
    assert push.statuses == [0]


async def test_without_a_key_events_are_plain_and_unsigned() -> None:
    headers, body = Pusher("", "", FakeClock(), ()).request({"a": "é"})
    assert body == '{"a": "é"}'.encode()
    assert list(headers) == ["Content-Type"]


def test_a_push_does_not_show_what_it_carries() -> None:
    assert "secret" not in repr(Push("om_1", {"text": "secret"}))
    assert not Push("om_1", {}).acknowledged
