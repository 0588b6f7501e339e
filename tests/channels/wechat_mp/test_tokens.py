import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from bridge.channel import CredentialsError, UnreachableError
from bridge.channel.testing.clock import FakeClock, until
from bridge.channel.testing.fakes.wechat_mp import APP_ID, FakeWechatMp, Fault, Refusal
from channels.wechat_mp.tokens import Tokens, life_seconds
from tests.channels.wechat_mp.support import client


@asynccontextmanager
async def stage(secret: str = "fake-app-secret") -> AsyncIterator[tuple[FakeWechatMp, Tokens, FakeClock]]:
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake, client(clock) as http:
        yield fake, Tokens(http.at(fake.base), APP_ID, SecretStr(secret)), clock


async def test_one_token_is_fetched_once_and_shared_by_all_who_ask_at_once() -> None:
    async with stage() as (fake, tokens, _), asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(tokens.get()) for _ in range(20)]
    assert len({each.result() for each in asked}) == 1
    assert fake.tokens.calls == 1
    assert fake.requests == ["POST /cgi-bin/stable_token"]


async def test_it_is_renewed_five_minutes_before_its_end() -> None:
    async with stage() as (fake, tokens, clock):
        first = await tokens.get()
        await clock.advance(6899)
        assert (await tokens.get(), fake.tokens.calls) == (first, 1)
        await clock.advance(2)
        assert await tokens.get() != first
        assert (fake.tokens.calls, fake.tokens.forces) == (2, 0)


@pytest.mark.parametrize(
    ("told", "life"),
    [
        (7200, 7200), ("7200", 7200), (60, 60), (0, 7200), (-1, 7200), (None, 7200), ("x", 7200),
        (10**400, 7200), (float("nan"), 7200), (True, 1), ([], 7200), (99_999, 7200),
    ],
)  # fmt: skip
def test_case_35_a_life_that_makes_no_sense_is_two_hours(told: object, life: float) -> None:
    assert life_seconds(told) == life


async def test_case_35_a_short_life_is_not_asked_about_at_every_call() -> None:
    async with stage() as (fake, tokens, clock):
        fake.tokens.life = 60
        await tokens.get()
        await clock.advance(29)
        await tokens.get()
        assert fake.tokens.calls == 1
        await clock.advance(2)
        await tokens.get()
        assert fake.tokens.calls == 2


async def test_a_refused_token_is_replaced_without_force_where_the_platform_has_another() -> None:
    async with stage() as (fake, tokens, clock):
        first = await tokens.get()
        await clock.advance(6901)  # the platform gives out another now
        other = await tokens.other_than(first)
        assert other != first
        assert await tokens.other_than(first) == other  # somebody else was refused, too: no further call
        assert (fake.tokens.calls, fake.tokens.forces) == (2, 0)


async def test_force_is_used_only_where_the_platform_repeats_a_token_that_it_refuses() -> None:
    async with stage() as (fake, tokens, clock):
        first = await tokens.get()
        second = await tokens.other_than(first)
        assert (second != first, fake.tokens.forces) == (True, 1)
        with pytest.raises(UnreachableError) as soon:
            await tokens.other_than(second)
        assert soon.value.retry_after_seconds == 30
        await clock.advance(31)
        assert await tokens.other_than(second) != second
        assert fake.tokens.forces == 2


async def test_force_is_used_no_more_often_than_the_platform_allows_in_a_day() -> None:
    async with stage() as (fake, tokens, clock):
        token = await tokens.get()
        for _ in range(20):
            token = await tokens.other_than(token)
            await clock.advance(31)
        with pytest.raises(UnreachableError) as later:
            await tokens.other_than(token)
        assert later.value.retry_after_seconds == 300  # by then it may take what it refuses now
        assert fake.tokens.forces == 20
        await clock.advance(86_400 - 20 * 31)
        assert await tokens.other_than(token) != token


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.GARBAGE, Fault.BROKEN, Refusal(-1), Refusal(12345)])
async def test_without_an_answer_it_is_tried_again(fault: Fault | Refusal) -> None:
    async with stage() as (fake, tokens, _):
        fake.next(fault, at="token")
        with pytest.raises(UnreachableError):
            await tokens.get()
        assert await tokens.get()


@pytest.mark.parametrize("code", [40001, 40013, 40125, 40164, 89503])
async def test_a_refused_account_is_told_and_what_to_do(code: int) -> None:
    async with stage() as (fake, tokens, _):
        fake.next(Refusal(code), at="token")
        with pytest.raises(CredentialsError, match="turnbridge reload"):
            await tokens.get()


async def test_an_error_holds_no_secret() -> None:
    async with stage("another-secret") as (_, tokens, _):
        with pytest.raises(CredentialsError) as failed:
            await tokens.get()
        assert "another-secret" not in repr(failed.value)


async def test_whoever_waits_for_a_token_may_leave() -> None:
    async with stage() as (fake, tokens, _):
        fake.next(Fault.STALL, at="token")
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(tokens.get())
            await until(lambda: bool(fake.requests))  # the platform has it, and lets it wait
            waiting.cancel()
        assert await tokens.get()
