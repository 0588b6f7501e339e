import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from defusedxml.ElementTree import fromstring

from bridge.channel.testing.clock import FakeClock, until
from bridge.channel.testing.fakes.wechat_mp.messages import Note, write, written, xml
from bridge.channel.testing.fakes.wechat_mp.push import OUT_OF_ORDER, Outcome, Push, Pusher
from bridge.channel.testing.fakes.wechat_mp.replies import Secrets
from bridge.channel.testing.fakes.wechat_mp.seal import new_key, sign, unseal
from bridge.channel.testing.fakes.wechat_mp.world import ACCOUNT, OWNER, By, World

KEY = new_key()
REPLY = xml(
    {"ToUserName": OWNER, "FromUserName": ACCOUNT, "CreateTime": 7, "MsgType": "text", "Content": "hi"}
)
NEVER = "never"


class Bot:
    """The other side, which answers with ``answers`` one by one: a status, a body, or never."""

    def __init__(self, *answers: int | bytes | str) -> None:
        self.answers = [*answers]
        self.script = answers
        self.came: list[tuple[float, dict[str, str], bytes]] = []
        self.clock = FakeClock()
        self.world = World(self.clock)
        self.told = 0

    async def take(self, request: web.Request) -> web.Response:
        self.came.append((self.clock.monotonic() - 1000, dict(request.query), await request.read()))
        answer = self.answers.pop(0) if self.answers else b"success"
        if answer == NEVER:
            await asyncio.Event().wait()
        if isinstance(answer, int):
            return web.Response(status=answer, text="no")
        return web.Response(body=answer)

    async def hear(self) -> None:
        self.told += 1

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/", self.take)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
        finally:
            await runner.cleanup()

    async def pushed(self, mode: str = "plaintext", to: str = "", form: str = "xml") -> Push:
        """One push to its end, time going on whenever somebody waits for it."""
        async with self.served() as address, aiohttp.ClientSession() as session:
            pusher = Pusher(Secrets("wx1", "token1", KEY, mode, form), to or address, self.world, self.hear)
            fields = written(self.world, Note("hello", message_id="12"))
            push = Push("12", OWNER, fields)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(pusher.deliver(push, session))
                await self._pass(push)
            assert pusher.pushes == [push]
        return push

    async def _pass(self, push: Push) -> None:
        """Five seconds go by only for an attempt that stays unanswered, or between two."""
        while not push.over.is_set():
            count = len(push.attempts)
            held = len(self.came) > count and self.script[count : count + 1] == (NEVER,)
            if held or (count and self.clock.waits() and len(self.came) <= count):
                await self.clock.advance(5)
            await asyncio.sleep(0)


def outcomes(push: Push) -> list[Outcome]:
    return [attempt.outcome for attempt in push.attempts]


async def test_silence_ends_it_and_shows_nothing() -> None:
    bot = Bot(b"success")
    push = await bot.pushed()
    assert (outcomes(push), push.acknowledged, bot.world.shown) == ([Outcome.SILENT], True, [])
    assert bot.told == 1


async def test_a_reply_is_shown() -> None:
    bot = Bot(REPLY)
    push = await bot.pushed()
    (shown,) = bot.world.shown
    assert (shown.text, shown.by, shown.answers, shown) == ("hi", By.REPLY, "12", push.attempts[0].shown)


async def test_after_five_seconds_it_hangs_up_and_comes_again_three_times_in_all() -> None:
    bot = Bot(NEVER, NEVER, NEVER)
    push = await bot.pushed()
    assert outcomes(push) == [Outcome.CUT] * 3
    assert [at for at, _, _ in bot.came] == [0, 5, 10]
    assert [(each.by, each.text) for each in bot.world.shown] == [(By.NOTICE, OUT_OF_ORDER)]
    assert not push.acknowledged


async def test_the_third_attempt_can_still_be_answered() -> None:
    bot = Bot(NEVER, NEVER, REPLY)
    push = await bot.pushed()
    assert outcomes(push) == [Outcome.CUT, Outcome.CUT, Outcome.REPLY]
    assert [each.text for each in bot.world.shown] == ["hi"]


async def test_a_malformed_answer_is_told_to_the_person_and_not_asked_again() -> None:
    bot = Bot(b"fail")
    push = await bot.pushed()
    assert outcomes(push) == [Outcome.MALFORMED]
    assert [each.by for each in bot.world.shown] == [By.NOTICE]


async def test_another_status_is_asked_again() -> None:
    bot = Bot(503, 403)
    push = await bot.pushed()
    assert [(each.outcome, each.status) for each in push.attempts] == [
        (Outcome.REFUSED, 503), (Outcome.REFUSED, 403), (Outcome.SILENT, 200),
    ]  # fmt: skip
    assert push.attempts[0].told == "no"


async def test_nobody_there_is_tried_three_times() -> None:
    bot = Bot()
    push = await bot.pushed(to="http://127.0.0.1:1/")
    assert outcomes(push) == [Outcome.UNREACHED] * 3
    assert [each.by for each in bot.world.shown] == [By.NOTICE]


@pytest.mark.parametrize("form", ["xml", "json"])
async def test_each_attempt_is_signed_and_sealed_afresh(form: str) -> None:
    bot = Bot(503)
    await bot.pushed("secure", form=form)
    (_, one, first), (_, two, second) = bot.came
    assert first != second
    for query in (one, two):
        assert query["openid"] == OWNER
        assert query["encrypt_type"] == "aes"
        assert query["signature"] == sign("token1", query["timestamp"], query["nonce"])
    assert one["nonce"] != two["nonce"]


def requested(mode: str) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
    """The query, the outer and the sealed fields of a push."""
    world = World()

    async def nothing() -> None:
        return

    told: Callable[[], Any] = nothing
    pusher = Pusher(Secrets("wx1", "token1", KEY, mode), "", world, told)
    query, body = pusher.request(written(world, Note("hello")))
    outer = {each.tag: each.text or "" for each in fromstring(body)}
    inner = unseal(KEY, "wx1", outer["Encrypt"]) if "Encrypt" in outer else write("xml", {})
    assert pusher.check("echo")["echostr"] == "echo"
    return query, outer, {each.tag: each.text for each in fromstring(inner)}


def test_the_modes_differ_in_what_lies_open() -> None:
    query, outer, _ = requested("plaintext")
    assert (set(query), outer["Content"]) == ({"signature", "timestamp", "nonce", "openid"}, "hello")
    query, outer, inner = requested("compat")
    assert (outer["Content"], inner["Content"]) == ("hello", "hello")
    query, outer, inner = requested("secure")
    assert (set(outer), inner["Content"]) == ({"ToUserName", "Encrypt"}, "hello")
    assert query["msg_signature"] == sign("token1", query["timestamp"], query["nonce"], outer["Encrypt"])


async def test_ending_the_fake_ends_a_push() -> None:
    bot = Bot(NEVER)
    async with bot.served() as address, aiohttp.ClientSession() as session:
        pusher = Pusher(Secrets("wx1", "token1", KEY, "plaintext"), address, bot.world, bot.hear)
        push = Push("12", OWNER, written(bot.world, Note("hello")))
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(pusher.deliver(push, session))
            await until(lambda: bool(bot.came))
            task.cancel()
    assert push.over.is_set()
