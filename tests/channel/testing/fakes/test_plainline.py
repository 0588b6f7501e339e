"""The plainest platform."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from bridge.channel.testing.clock import until
from bridge.channel.testing.fakes.plainline import FakePlainline
from bridge.channel.testing.kit import Trouble


class Bot:
    def __init__(self, fake: FakePlainline, session: aiohttp.ClientSession) -> None:
        self._fake, self._session = fake, session
        self.token = fake.token

    async def read(self, after: int, wait: float = 0) -> Any:
        query = {"after": f"{after}", "wait": f"{wait}"}
        async with self._session.get(f"{self._fake.base}/lines", params=query, headers=self._headers) as got:
            return await got.json() if got.status == 200 else got.status

    async def write(self, text: str) -> tuple[int, str]:
        line = {"to": "you", "text": text}
        async with self._session.post(f"{self._fake.base}/lines", json=line, headers=self._headers) as got:
            return got.status, got.headers.get("Retry-After", "") or got.content_type

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@asynccontextmanager
async def platform() -> AsyncIterator[tuple[FakePlainline, Bot]]:
    async with FakePlainline() as fake, aiohttp.ClientSession() as session:
        yield fake, Bot(fake, session)


async def test_lines_are_read_after_a_place_at_once_or_when_one_comes() -> None:
    async with platform() as (fake, bot), asyncio.TaskGroup() as tasks:
        fake.add({"text": "one"})
        fake.add({"text": "two"})
        assert await bot.read(1) == [{"text": "two"}]
        assert await bot.read(2) == []
        waiting = tasks.create_task(bot.read(2, wait=20))
        await until(lambda: not fake._arrived.is_set())
        fake.add({"text": "three"})
        assert await waiting == [{"text": "three"}]


@pytest.mark.parametrize(
    ("trouble", "answer"),
    [
        (Trouble.REFUSE, (400, "application/octet-stream")),
        (Trouble.THROTTLE, (429, "7")),
        (Trouble.BREAK_BEFORE, (500, "application/octet-stream")),
        (Trouble.CREDENTIALS, (401, "application/octet-stream")),
        (Trouble.GARBAGE, (200, "text/html")),
    ],
)
async def test_each_trouble_befalls_one_send(trouble: Trouble, answer: tuple[int, str]) -> None:
    async with platform() as (fake, bot):
        fake.troubles.append(trouble)
        assert await bot.write("hello") == answer
        assert await bot.write("hello") == (200, "application/json")
        assert fake.shown == [("you", "hello")]


async def test_a_line_may_be_taken_and_the_connection_closed_or_left_without_an_answer() -> None:
    async with platform() as (fake, bot), asyncio.TaskGroup() as tasks:
        fake.troubles.append(Trouble.DROP_AFTER)
        with pytest.raises(aiohttp.ClientError):
            await bot.write("one")
        fake.answers.clear()
        writing = tasks.create_task(bot.write("two"))
        await until(lambda: len(fake.shown) == 2)
        assert not writing.done()
        fake.answers.set()
        assert (await writing)[0] == 200


async def test_nothing_goes_without_the_token() -> None:
    async with platform() as (fake, bot):
        bot.token = "another"
        assert await bot.read(0) == 401
        assert (await bot.write("hello"))[0] == 401
        assert fake.shown == []
