import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bridge.channel.testing.clock import FakeClock, settle
from bridge.channel.testing.fakes.wechat_mp import (
    OWNER,
    STRANGER,
    By,
    FakeFile,
    FakeWechatMp,
    Fault,
    Outcome,
    Refusal,
)

PROBE = "/cgi-bin/getcallbackip"


@asynccontextmanager
async def bot(fake: FakeWechatMp, answer: bytes = b"success") -> AsyncIterator[list[dict[str, str]]]:
    """The account's side; it also echoes the console's word."""
    came: list[dict[str, str]] = []

    async def take(request: web.Request) -> web.Response:
        came.append(dict(request.query))
        return web.Response(body=answer if request.method == "POST" else request.query["echostr"].encode())

    app = web.Application()
    app.router.add_route("*", "/", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        fake.pusher.to = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        yield came
    finally:
        await runner.cleanup()


async def asked(fake: FakeWechatMp) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(fake.base + PROBE) as answer:
        return answer.status, await answer.json(content_type=None)


async def test_what_people_write_and_do_is_pushed() -> None:
    async with FakeWechatMp() as fake, bot(fake) as came:
        pushes = [
            fake.say("hi"),
            fake.say(file=FakeFile("a.png", "image/png", b"x"), sender=STRANGER),
            fake.happen("CLICK", EventKey="k"),
        ]
        for push in pushes:
            await push.over.wait()
        assert [push.attempts[0].outcome for push in pushes] == [Outcome.SILENT] * 3
        assert sorted(query["openid"] for query in came) == sorted([OWNER, STRANGER, OWNER])
        again = fake.repeat(pushes[0])
        await again.over.wait()
        assert again.fields == pushes[0].fields


async def test_writing_and_touching_open_what_may_be_sent() -> None:
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake, bot(fake):
        fake.happen("VIEW")
        owner = fake.world.follower(OWNER)
        assert owner.take(clock.monotonic()) == 45015
        fake.happen("subscribe")
        assert [owner.take(clock.monotonic()) for _ in range(4)] == [0, 0, 0, 45047]
        fake.say("hi")
        assert owner.take(clock.monotonic()) == 0
        fake.happen("unsubscribe")
        assert owner.take(clock.monotonic()) == 45015
        fake.say("back")
        assert owner.take(clock.monotonic()) == 0


async def test_what_is_shown_can_be_waited_for() -> None:
    async with FakeWechatMp() as fake, bot(fake, b"fail"):
        fake.say("hi")
        assert [each.by for each in await fake.wait_shown(1)] == [By.NOTICE]
        assert fake.sent == []
        with pytest.raises(TimeoutError):
            await fake.wait_shown(2, 0.01)


async def test_the_consoles_check_wants_its_word_back() -> None:
    async with FakeWechatMp() as fake, bot(fake) as came:
        assert await fake.check_address("word")
        assert came[0]["echostr"] == "word"


async def test_faults_come_one_by_one() -> None:
    told: list[int] = []
    async with FakeWechatMp() as fake:
        fake.next(Refusal(45009, told=lambda: told.append(1)), None, Fault.BROKEN, Fault.EMPTY, at="info")
        status, body = await asked(fake)
        assert (status, body["errcode"], told) == (200, 45009, [1])
        assert (await asked(fake))[1]["errcode"] == 41001
        with pytest.raises(ValueError):
            await asked(fake)
        assert fake.requests == [f"GET {PROBE}"] * 3


async def test_connections_can_be_dropped_and_answers_lost() -> None:
    async with FakeWechatMp() as fake:
        body = {"grant_type": "client_credential", "appid": fake.account.app_id, "secret": fake.app_secret}

        async def ask() -> bytes:
            async with aiohttp.ClientSession() as session:
                async with session.post(f"{fake.base}/cgi-bin/stable_token", json=body) as answer:
                    return await answer.read()

        for fault in (Fault.DROP, Fault.DROP_AFTER):
            fake.next(fault, at="token")
            with pytest.raises(aiohttp.ClientError):
                await ask()
        fake.next(Fault.GARBAGE, Fault.EMPTY, at="token")
        assert [await ask(), await ask()] == [b"<html>OK</html>", b"{}"]
        fake.next(Fault.STALL, at="token")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ask()
        assert b"access_token" in await ask()


async def test_its_end_ends_what_is_being_pushed() -> None:
    async with FakeWechatMp(clock=FakeClock(), to="http://127.0.0.1:1/") as fake:
        push = fake.say("hi")
        await settle()
    assert push.over.is_set()
