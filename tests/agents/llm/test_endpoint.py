"""The connections to an endpoint."""

import asyncio
import ssl
from typing import Any

import httpx2
import pytest

from bridge.agents.llm.endpoint import Endpoint
from bridge.agents.llm.settings import LlmSettings
from bridge.channel.testing.clock import FakeClock, settle
from tests.agents.llm.server import ModelServer


def endpoint(
    address: str = "http://127.0.0.1:9/v1", clock: FakeClock | None = None, **given: Any
) -> Endpoint:
    settings = LlmSettings.model_validate({"model": "m", "base_url": address, **given})
    return Endpoint("fast", settings, "key", clock or FakeClock())


async def test_requests_share_their_connections_until_it_is_closed() -> None:
    async with ModelServer().serving() as server:
        tested = endpoint(f"{server.address}/v1")
        for _ in range(2):
            async with tested.client(tested.watch()) as client:
                assert (await client.get(f"{server.address}/v1/models")).status_code == 200
        pool = await tested._open()
        assert await tested._open() is pool
        await tested.close()
        assert await tested._open() is not pool
        await tested.close()
        await tested.close()


async def test_opening_at_the_same_time_opens_once() -> None:
    tested = endpoint()
    async with asyncio.TaskGroup() as tasks:
        opened = [tasks.create_task(tested._open()) for _ in range(3)]
    assert len({id(one.result()) for one in opened}) == 1
    await tested.close()


async def test_proxies_are_taken_from_the_profile_alone(monkeypatch: Any) -> None:
    async with ModelServer().serving() as server, ModelServer().serving() as other:
        monkeypatch.setenv("HTTP_PROXY", other.address)
        for given, asked in (({}, 0), ({"proxy": other.address}, 1)):
            tested = endpoint(f"{server.address}/v1", None, **given)
            async with tested.client(tested.watch()) as client:
                await client.get(f"{server.address}/v1/models")
            await tested.close()
            assert len(other.asked) == asked
        assert len(server.asked) == 1


async def test_redirects_are_not_followed_so_no_key_goes_elsewhere() -> None:
    tested = endpoint()
    async with tested.client(tested.watch()) as client:
        assert client.follow_redirects is False
        assert isinstance(client, httpx2.AsyncClient)
    await tested.close()


@pytest.mark.parametrize(
    ("given", "trusts"),
    [
        ({}, False),
        ({"base_url": "https://api.example.org"}, True),
        ({"proxy": "https://p.example.org"}, True),
    ],
)
async def test_whom_the_system_trusts_is_read_where_something_is_encrypted(
    given: dict[str, str], trusts: bool
) -> None:
    settings = LlmSettings.model_validate({"model": "m", "base_url": "http://127.0.0.1:9/v1", **given})
    trusted = await Endpoint("fast", settings, "", FakeClock())._trusted()
    assert trusted.verify_mode is ssl.CERT_REQUIRED
    assert trusted.check_hostname
    assert (trusted.cert_store_stats()["x509"] > 0) is trusts


def test_a_source_says_whom_a_request_goes_to() -> None:
    source = endpoint().source("small")
    assert (source.profile, source.model, source.address) == ("fast", "small", "http://127.0.0.1:9")


async def test_a_watch_may_be_stricter_than_the_profile() -> None:
    clock = FakeClock()
    tested = endpoint(clock=clock, first_byte_seconds=60, silence_seconds=60)
    async with asyncio.TaskGroup() as tasks:
        strict = tasks.create_task(tested.watch(5).limit(asyncio.sleep(3600)))
        usual = tasks.create_task(tested.watch().limit(asyncio.sleep(3600)))
        await settle()
        await clock.advance(6)
        assert (strict.done(), usual.done()) == (True, False)
        await clock.advance(60)
        assert usual.done()
