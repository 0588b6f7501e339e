from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from bridge.channel import ChannelError, FileKind, RemoteFile
from bridge.channel.testing.fakes.wechat_mp import APP_ID, FakeWechatMp, Refusal
from channels.wechat_mp.api import Api
from channels.wechat_mp.fetching import fetched
from channels.wechat_mp.messages import MediaKey
from tests.channels.wechat_mp.support import client


@asynccontextmanager
async def stage() -> AsyncIterator[tuple[FakeWechatMp, Api]]:
    async with FakeWechatMp() as fake, client() as http:
        yield fake, Api(http, fake.base, APP_ID, SecretStr(fake.app_secret))


async def fetch(api: Api, key: MediaKey | str, name: str = "") -> tuple[str, str, int | None, bytes]:
    file = RemoteFile(key if isinstance(key, str) else key.write(), FileKind.IMAGE, name)
    async with fetched(api, file, 1000) as incoming:
        return (
            incoming.name,
            incoming.mime,
            incoming.size,
            b"".join([chunk async for chunk in incoming.chunks]),
        )


async def test_a_file_comes_by_its_id_with_its_name_and_type() -> None:
    async with stage() as (fake, api):
        media = fake.world.add_media("image", "图 1.jpg", "image/jpeg", b"\xff\xd8\xff")
        assert await fetch(api, MediaKey(media.media_id)) == ("图 1.jpg", "image/jpeg", 3, b"\xff\xd8\xff")


async def test_a_video_comes_from_the_address_that_is_answered() -> None:
    async with stage() as (fake, api):
        media = fake.world.add_media("video", "a.mp4", "video/mp4", b"....ftyp")
        assert await fetch(api, MediaKey(media.media_id)) == ("", "video/mp4", 8, b"....ftyp")
        assert fake.requests[-1] == f"GET /video/{media.media_id}"


async def test_a_voice_is_the_ordinary_recording_and_else_the_better_one() -> None:
    async with stage() as (fake, api):
        plain = fake.world.add_media("voice", "a.amr", "audio/amr", b"#!AMR")
        better = fake.world.add_media("voice", "a.speex", "audio/speex", b"speex")
        assert (await fetch(api, MediaKey(plain.media_id, better.media_id)))[3] == b"#!AMR"
        assert (await fetch(api, MediaKey("gone", better.media_id)))[3] == b"speex"
        assert fake.requests[-1] == "GET /cgi-bin/media/get/jssdk"


async def test_a_picture_comes_by_its_address_where_the_account_may_not_fetch_files() -> None:
    async with stage() as (fake, api):
        media = fake.world.add_media("image", "a.jpg", "image/jpeg", b"\xff\xd8\xff")
        key = MediaKey(media.media_id, address=f"{fake.base}/picture/{media.media_id}")
        fake.interface.service = False
        assert (await fetch(api, key))[3] == b"\xff\xd8\xff"
        assert (await fetch(api, MediaKey("", address=key.address)))[3] == b"\xff\xd8\xff"
        with pytest.raises(ChannelError, match="48001"):
            await fetch(api, MediaKey(media.media_id))


async def test_a_file_that_is_gone_or_refused_is_told_by_its_code() -> None:
    async with stage() as (fake, api):
        with pytest.raises(ChannelError, match="not on the platform any more"):
            await fetch(api, MediaKey("gone", address=f"{fake.base}/picture/gone"))
        fake.next(Refusal(12345), at="download")
        with pytest.raises(ChannelError, match="12345"):
            await fetch(api, MediaKey("x"))
        with pytest.raises(ChannelError, match="nothing to fetch"):
            await fetch(api, MediaKey(""))


async def test_an_address_in_an_answer_is_fetched_only_from_the_platforms_hosts() -> None:
    async with stage() as (fake, api):
        media = fake.world.add_media("video", "a.mp4", "video/mp4", b"....ftyp")
        fake.world.base = "http://169.254.169.254"
        with pytest.raises(ChannelError, match="none of WeChat's"):
            await fetch(api, MediaKey(media.media_id))


@pytest.mark.parametrize("key", ["", "x", "7", "[]", "null"])
async def test_a_key_of_another_channel_is_told(key: str) -> None:
    async with stage() as (_, api):
        with pytest.raises(ChannelError, match="not one of this channel"):
            await fetch(api, key)
