import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from bridge.channel import ChannelError, Http, OutcomeUnknownError, UnreachableError
from bridge.channel.http import Stream, UploadFile, http_session
from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.wechat_mp import APP_ID, OWNER, FakeWechatMp, Fault, Refusal
from bridge.guard import Guard
from channels.wechat_mp.answers import Result
from channels.wechat_mp.api import Api
from tests.channels.wechat_mp.support import client

PNG = b"\x89PNG\r\n\x1a\nrest"
TYPING = ("/cgi-bin/message/custom/typing", {"touser": OWNER, "command": "Typing"})


@asynccontextmanager
async def stage() -> AsyncIterator[tuple[FakeWechatMp, Api]]:
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake, client(clock) as http:
        fake.world.follower(OWNER)
        yield fake, Api(http, fake.base, APP_ID, SecretStr(fake.app_secret))


async def test_a_call_carries_a_token_and_tells_the_platforms_clock() -> None:
    async with stage() as (fake, api):
        result, date = await api.get("/cgi-bin/getcallbackip")
        assert result.body["ip_list"]
        assert date == fake.world.clock.now() == api.now()
        assert (await api.post(*TYPING)).code == 0


@pytest.mark.parametrize("code", [40001, 40014, 42001])
async def test_a_refused_token_is_renewed_once_and_the_call_repeated_once(code: int) -> None:
    async with stage() as (fake, api):
        fake.next(Refusal(code), at="typing")
        assert (await api.post(*TYPING)).code == 0
        assert fake.world.typing == [(OWNER, "Typing")]
        assert fake.tokens.forces == 1


async def test_a_token_that_is_refused_twice_is_for_later() -> None:
    async with stage() as (fake, api):
        fake.next(Refusal(42001), Refusal(42001), at="typing")
        with pytest.raises(UnreachableError) as later:
            await api.post(*TYPING)
        assert later.value.retry_after_seconds == 30


async def test_tokens_that_the_platform_forgot_cost_one_renewal_for_all_who_send() -> None:
    async with stage() as (fake, api):
        await api.post(*TYPING)
        fake.tokens.spoil()
        async with asyncio.TaskGroup() as tasks:
            calls = [tasks.create_task(api.post(*TYPING)) for _ in range(10)]
        assert [call.result().code for call in calls] == [0] * 10
        assert fake.tokens.forces == 1


async def test_an_upload_gives_an_id_and_a_lost_answer_is_as_good_as_none() -> None:
    async with stage() as (fake, api):
        upload = UploadFile("media", "a.png", PNG, "image/png")
        media = fake.world.media[(await api.upload("image", upload)).text("media_id")]
        assert (media.kind, media.name, media.mime, media.data) == ("image", "a.png", "image/png", PNG)
        fake.next(Fault.DROP_AFTER, at="upload")
        with pytest.raises(UnreachableError):
            await api.upload("image", upload)
        fake.next(Fault.DROP_AFTER, at="typing")
        with pytest.raises(OutcomeUnknownError):
            await api.post(*TYPING)


async def opened(api: Api, media_id: str) -> bytes | Result:
    async with api.download("/cgi-bin/media/get", {"media_id": media_id}) as found:
        return await found.read(1000) if isinstance(found, Stream) else found


async def test_a_download_is_a_file_or_a_result() -> None:
    async with stage() as (fake, api):
        picture = fake.world.add_media("image", "a.png", "image/png", PNG).media_id
        data = fake.world.add_media("image", "a.json", "application/json", b'{"errcode": 1}').media_id
        video = fake.world.add_media("video", "a.mp4", "video/mp4", b"....ftyp").media_id
        assert await opened(api, picture) == PNG
        assert await opened(api, data) == b'{"errcode": 1}'  # it has a name, so it is a file
        told = await opened(api, video)
        assert isinstance(told, Result)
        assert told.text("video_url") == f"{fake.base}/video/{video}"
        gone = await opened(api, "gone")
        assert isinstance(gone, Result)
        assert gone.code == 40007


async def test_a_download_renews_its_token_once() -> None:
    async with stage() as (fake, api):
        picture = fake.world.add_media("image", "a.png", "image/png", PNG).media_id
        fake.next(Refusal(42001), at="download")
        assert await opened(api, picture) == PNG
        fake.next(Refusal(42001), Refusal(42001), at="download")
        await fake.world.clock.advance(31)  # type: ignore[attr-defined]  # it is a FakeClock
        with pytest.raises(UnreachableError):
            await opened(api, picture)


async def public(api: Api, address: str) -> bytes:
    async with api.public(address) as stream:
        return await stream.read(1000)


async def test_what_lies_open_is_fetched_without_the_token() -> None:
    async with stage() as (fake, api):
        video = fake.world.add_media("video", "a.mp4", "video/mp4", b"....ftyp").media_id
        assert await public(api, f"{fake.base}/video/{video}") == b"....ftyp"
        assert fake.tokens.calls == 0
        with pytest.raises(ChannelError, match="status 403"):
            await public(api, f"{fake.base}/video/other")


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/latest", "https://evil.example/x", "https://qq.com.evil.example/x",
        "https://evilqq.com/x", "ftp://a.qq.com/x", "", "x", "https://[::1", "file:///etc/passwd",
        "http://127.0.0.1:1/x", "https://a.qq.com@evil.example/x",
    ],
)  # fmt: skip
async def test_no_address_but_the_platforms_is_fetched(address: str) -> None:
    async with stage() as (_, api):
        with pytest.raises(ChannelError, match="none of WeChat's"):
            await public(api, address)


@pytest.mark.parametrize("address", ["http://vweixinp.tc.qq.com/1.mp4?k=1", "https://mmbiz.qpic.cn:443/x/0"])
async def test_case_51_the_platforms_address_passes_the_guard_and_goes_by_tls(address: str) -> None:
    asked: list[tuple[str, int]] = []

    async def inner(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["10.0.0.1"]

    async with http_session() as session:
        api = Api(Http(session, Guard(lookup=inner)), "https://api.weixin.qq.com", APP_ID, SecretStr("s"))
        with pytest.raises(UnreachableError, match="private"):
            await public(api, address)
    assert [port for _, port in asked] == [443]


async def test_letters_go_as_they_are() -> None:
    bodies: list[Any] = []
    async with stage() as (fake, api):
        fake.say("hi")
        await api.post(
            "/cgi-bin/message/custom/send", {"touser": OWNER, "msgtype": "text", "text": {"content": "你好"}}
        )
        bodies += [shown.text for shown in fake.sent]
    assert bodies == ["你好"]
