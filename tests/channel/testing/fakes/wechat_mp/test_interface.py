from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.wechat_mp import OWNER, FakeWechatMp

PNG = b"\x89PNG\r\n\x1a\n"


class Client:
    """Whoever calls the platform; ``token`` goes along."""

    def __init__(self, fake: FakeWechatMp, session: aiohttp.ClientSession) -> None:
        self.fake, self._session = fake, session
        self.token = ""

    async def sign_in(self) -> None:
        body = {"grant_type": "client_credential", "appid": self.fake.account.app_id}
        answer = await self.post("/cgi-bin/stable_token", body | {"secret": self.fake.app_secret})
        self.token = answer["access_token"]

    async def get(self, path: str, **query: str) -> Any:
        async with self._session.get(self.fake.base + path, params=self._query(query)) as answer:
            if answer.content_type == "application/json":
                return await answer.json()
            return answer.status, answer.headers.get("Content-Disposition", ""), await answer.read()

    async def post(self, path: str, body: Any, **query: str) -> Any:
        data = {"data": body} if isinstance(body, aiohttp.FormData) else {"json": body}
        async with self._session.post(self.fake.base + path, params=self._query(query), **data) as answer:
            assert answer.status == 200
            return await answer.json()

    def _query(self, query: dict[str, str]) -> dict[str, str]:
        return query | ({"access_token": self.token} if self.token else {})


@asynccontextmanager
async def stage() -> AsyncIterator[Client]:
    async with FakeWechatMp(clock=FakeClock()) as fake, aiohttp.ClientSession() as session:
        client = Client(fake, session)
        await client.sign_in()
        yield client


def form(name: str = "media", filename: str | None = "a.png") -> aiohttp.FormData:
    data = aiohttp.FormData()
    data.add_field("other", "x", content_type="text/plain")
    if filename:
        data.add_field(name, PNG, filename=filename, content_type="image/png")
    return data


async def test_tokens_come_by_both_calls() -> None:
    async with stage() as client:
        token = await client.get(
            "/cgi-bin/token", appid=client.fake.account.app_id, secret=client.fake.app_secret
        )
        assert token["expires_in"] == 7200
        assert (await client.get("/cgi-bin/token", appid="wx"))["errcode"] == 40013


async def test_without_a_token_or_from_elsewhere_nothing_is_answered() -> None:
    async with stage() as client:
        assert "127.0.0.1" in (await client.get("/cgi-bin/getcallbackip"))["ip_list"]
        client.fake.interface.listed = False
        assert (await client.get("/cgi-bin/getcallbackip"))["errcode"] == 40164
        client.fake.interface.listed, client.token = True, ""
        refused = await client.get("/cgi-bin/getcallbackip")
        assert refused["errcode"] == 41001
        assert "rid: " in refused["errmsg"]


async def test_a_text_and_typing_are_shown() -> None:
    async with stage() as client:
        client.fake.say("hi")
        body = {"touser": OWNER, "msgtype": "text", "text": {"content": "hello"}}
        assert await client.post("/cgi-bin/message/custom/send", body) == {"errcode": 0, "errmsg": "ok"}
        typing = {"touser": OWNER, "command": "Typing"}
        assert (await client.post("/cgi-bin/message/custom/typing", typing))["errcode"] == 0
        for wrong in ({"touser": "oNobody", "command": "Typing"}, {"touser": OWNER, "command": "Sing"}):
            assert (await client.post("/cgi-bin/message/custom/typing", wrong))["errcode"] == 40003
        assert [each.text for each in client.fake.sent] == ["hello"]
        assert client.fake.world.typing == [(OWNER, "Typing")]


async def test_files_go_up_and_come_down() -> None:
    async with stage() as client:
        upload = await client.post("/cgi-bin/media/upload", form(), type="image")
        assert upload["type"] == "image"
        status, name, data = await client.get("/cgi-bin/media/get", media_id=upload["media_id"])
        assert (status, "a.png" in name, data) == (200, True, PNG)
        for wrong in (form("file"), form(filename=None)):
            assert (await client.post("/cgi-bin/media/upload", wrong, type="image"))["errcode"] == 41005
        assert (await client.post("/cgi-bin/media/upload", {}, type="image"))["errcode"] == 41005
        assert (await client.post("/cgi-bin/media/upload", form(), type="file"))["errcode"] == 40004
        assert (await client.get("/cgi-bin/media/get", media_id="gone"))["errcode"] == 40007


async def test_a_thumb_has_an_id_of_its_own_name() -> None:
    async with stage() as client:
        data = aiohttp.FormData()
        data.add_field("media", b"\xff\xd8\xff", filename="a.jpg", content_type="image/jpeg")
        assert "thumb_media_id" in await client.post("/cgi-bin/media/upload", data, type="thumb")


async def test_a_video_lies_where_no_token_may_be_shown() -> None:
    async with stage() as client:
        media = client.fake.world.add_media("video", "a.mp4", "video/mp4", b"....ftyp")
        address = (await client.get("/cgi-bin/media/get", media_id=media.media_id))["video_url"]
        path = address.removeprefix(client.fake.base)
        assert (await client.get(path))[0] == 403
        client.token = ""
        assert await client.get(path) == (200, "", b"....ftyp")
        assert (await client.get("/video/gone"))[0] == 403


async def test_without_the_permission_neither_messages_nor_files() -> None:
    async with stage() as client:
        client.fake.interface.service = False
        for path in (
            "/cgi-bin/message/custom/send",
            "/cgi-bin/message/custom/typing",
            "/cgi-bin/media/upload",
        ):
            assert (await client.post(path, {}))["errcode"] == 48001
        assert (await client.get("/cgi-bin/media/get/jssdk"))["errcode"] == 48001
        assert (await client.get("/cgi-bin/getcallbackip"))["ip_list"]
