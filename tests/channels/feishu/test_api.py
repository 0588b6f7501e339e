import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from pydantic import SecretStr

from bridge.channel import ChannelError, CredentialsError, Http, OutcomeUnknownError, UnreachableError
from bridge.channel.http import UploadFile, http_session
from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.feishu import FakeFeishu, FakeFile, Fault, Note, Refusal, throttled
from bridge.channel.testing.fakes.feishu.events import write
from channels.feishu.api import NO_CODE, Api, Tokens, life_seconds, segment

INFO = "/open-apis/bot/v3/info"
PNG = UploadFile("image", "a.png", b"\x89PNG\r\n\x1a\n" + bytes(16))


async def api(fake: FakeFeishu, stack: Any, secret: str = "fake-app-secret") -> Api:
    session = await stack.enter_async_context(http_session())
    return Api(Http(session).at(fake.base), fake.app_id, SecretStr(secret), fake.world.clock.monotonic)


@pytest.fixture
def stack() -> AsyncExitStack:
    return AsyncExitStack()


async def test_one_token_serves_all_calls_and_is_fetched_by_one_at_a_time(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(calls.get(INFO))
        assert fake.interface.token_calls == 1


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (7200, 7200),
        (1800, 1800),
        (60, 60),
        ("3600", 3600),
        (None, 7200),
        (0, 7200),
        (-1, 7200),
        ("soon", 7200),
        ([], 7200),
        (10**400, 7200),
        (float("nan"), 7200),
        (99_999, 7200),
    ],
)
def test_case_35_the_life_of_a_token_is_sane_whatever_is_told(told: object, seconds: float) -> None:
    assert life_seconds(told) == seconds


@pytest.mark.parametrize(("expire", "calls"), [(7200, 1), (700, 1), ("7200", 1), (1, 1), (0, 1)])
async def test_case_35_a_short_life_does_not_make_every_call_fetch_a_token(
    stack: Any, expire: Any, calls: int
) -> None:
    async with FakeFeishu() as fake, stack:
        fake.interface.expire = expire
        api_calls = await api(fake, stack)
        for _ in range(3):
            await api_calls.get(INFO)
        assert fake.interface.token_calls == calls


async def test_a_token_is_renewed_ten_minutes_before_its_end(stack: Any) -> None:
    clock = FakeClock()
    async with FakeFeishu(clock=clock) as fake, stack:
        session = await stack.enter_async_context(http_session())
        calls = Api(Http(session).at(fake.base), fake.app_id, SecretStr(fake.app_secret), clock.monotonic)
        await calls.get(INFO)
        await clock.advance(6599)
        await calls.get(INFO)
        assert fake.interface.token_calls == 1
        await clock.advance(2)
        await calls.get(INFO)
        assert fake.interface.token_calls == 2


async def test_a_token_that_ended_early_is_replaced_at_once_to_read_and_later_to_send(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        await calls.get(INFO)
        fake.interface.expire_tokens()
        assert (await calls.get(INFO)).code == 0
        fake.interface.expire_tokens()
        with pytest.raises(UnreachableError):
            await calls.post("/open-apis/im/v1/messages", {})
        assert (await calls.get(INFO)).code == 0


async def test_tokens_that_are_refused_again_and_again_are_no_contact(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        for place in ("info", "download"):
            fake.next(Refusal(99991663), Refusal(99991664), at=place)
        with pytest.raises(UnreachableError):
            await calls.get(INFO)
        with pytest.raises(UnreachableError):
            async with calls.download("/open-apis/im/v1/messages/m/resources/k", {"type": "file"}):
                raise AssertionError("it must not open")


async def test_a_wrong_secret_or_app_parks_the_account_without_telling_it(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack, "a-wrong-secret")
        with pytest.raises(CredentialsError) as caught:
            await calls.get(INFO)
        assert "a-wrong-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "fault", [Fault.DROP, Fault.BROKEN, Fault.GARBAGE, Refusal(7), Refusal(0, status=200), throttled(3)]
)
async def test_no_token_is_no_contact(stack: Any, fault: Fault | Refusal) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        fake.next(fault, at="token")
        with pytest.raises(UnreachableError):
            await calls.post("/open-apis/im/v1/messages", {})
        assert (await calls.get(INFO)).code == 0


@pytest.mark.parametrize("token", ["", "t-\n", "t x", "t-é", 5])
async def test_a_token_that_cannot_be_a_header_is_none(stack: Any, token: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        fake.next(Refusal(0, 200, fields={"tenant_access_token": token, "expire": 7200}), at="token")
        with pytest.raises(UnreachableError):
            await calls.get(INFO)


async def test_a_status_without_a_code_is_judged_by_itself(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        missing = await calls.post("/nothing/here", {})
        assert (missing.code, missing.reason) == (NO_CODE, "refused with status 404")
        with pytest.raises(ChannelError, match="404"):
            missing.checked()
        fake.next(Fault.BROKEN, Fault.GARBAGE, at="info")
        for _ in range(2):
            with pytest.raises(UnreachableError):
                await calls.get(INFO)
        fake.next(Fault.BROKEN)
        with pytest.raises(OutcomeUnknownError):
            await calls.post("/open-apis/im/v1/messages", {})


async def test_a_lost_upload_is_as_good_as_none(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        for fault in (Fault.DROP_AFTER, Fault.BROKEN, Fault.GARBAGE):
            fake.next(fault, at="upload")
            with pytest.raises(UnreachableError):
                await calls.upload("/open-apis/im/v1/images", {"image_type": "message"}, PNG)
        assert (await calls.upload("/open-apis/im/v1/images", {"image_type": "message"}, PNG)).data[
            "image_key"
        ]


async def test_data_that_is_no_object_is_empty(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        fake.next(Refusal(0, 200, fields={"data": [1]}), Refusal(True, 200), at="info")
        assert (await calls.get(INFO)).data == {}
        with pytest.raises(UnreachableError):
            await calls.get(INFO)


def test_an_id_is_one_part_of_a_path() -> None:
    assert segment("../a?b#c d") == "..%2Fa%3Fb%23c%20d"


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (throttled(3), UnreachableError),
        (Refusal(232096), UnreachableError),
        (Refusal(230049), OutcomeUnknownError),
        (Refusal(99991662), CredentialsError),
        (Refusal(7, 503), UnreachableError),
    ],
)
async def test_codes_are_told_apart_by_what_is_to_be_done(
    stack: Any, refusal: Refusal, error: type[ChannelError]
) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        fake.next(refusal, at="info")
        with pytest.raises(error) as caught:
            await calls.get(INFO)
        assert type(caught.value) is error
        assert (await calls.get(INFO)).checked().code == 0


async def test_a_bare_429_waits_as_long_as_its_header_says(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        headers = {"x-ogw-ratelimit-reset": "9", "Retry-After": "4"}
        fake.next(Refusal(7, 429, headers=headers), at="info")
        with pytest.raises(UnreachableError) as caught:
            await calls.get(INFO)
        assert caught.value.retry_after_seconds == 9


async def test_a_download_is_a_stream_or_says_why_not(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        calls = await api(fake, stack)
        message = write(fake.world, Note(files=(FakeFile("a.txt", "text/plain", b"data"),)))
        key = json.loads(message.content)["file_key"]
        path = f"/open-apis/im/v1/messages/{message.message_id}/resources/{key}"
        for _ in range(2):
            async with calls.download(path, {"type": "file"}) as stream:
                assert await stream.read(100) == b"data"
            fake.interface.expire_tokens()
        fake.next(Refusal(234037, 200), Refusal(0, 200), at="download")
        for reason in ("over 100 MB", "no file came"):
            with pytest.raises(ChannelError, match=reason):
                async with calls.download(path, {"type": "file"}):
                    raise AssertionError("it must not open")


async def test_a_late_refusal_of_an_old_token_leaves_the_new_one(stack: Any) -> None:
    async with FakeFeishu() as fake, stack:
        session = await stack.enter_async_context(http_session())
        tokens = Tokens(
            Http(session).at(fake.base), fake.app_id, SecretStr(fake.app_secret), FakeClock().monotonic
        )
        token = await tokens.get()
        tokens.drop("t-an-older-one")
        assert await tokens.get() == token
        assert fake.interface.token_calls == 1


def test_anything_is_one_part_of_a_path() -> None:
    assert segment("a/b?c#好 %2f") == "a%2Fb%3Fc%23%E5%A5%BD%20%252f"
    assert segment("\ud800") == "%3F"
