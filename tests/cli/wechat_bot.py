"""An account at the other side of the fake WeChat: the real adapter behind a small server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from bridge.channel import (
    Answer,
    FileKind,
    Http,
    Identity,
    Inbound,
    OutboundFile,
    OutboundPart,
    Place,
    Reading,
    Request,
)
from bridge.channel.http import http_session
from bridge.channel.testing.clock import FakeClock
from bridge.cli.fake_setup import Setup
from bridge.ids import new_hex
from channels.wechat_mp import OfficialAccountWithService, WechatMpCredentials, WechatMpSettings


class Bot:
    """Answers each new message with what ``answer`` makes of it: in the response, or by itself.

    ``hangs``: so many requests are left without a response. ``body`` and ``status`` replace any response.
    """

    def __init__(self, answer: Callable[[Inbound], str]) -> None:
        self.answer = answer
        self.in_response = True
        self.hangs = 0
        self.body: bytes | None = None
        self.status = 200
        self.file: Path | None = None
        self.mime = ""
        self.heard: list[Inbound] = []
        self._clock = FakeClock()
        self._adapter: OfficialAccountWithService

    async def _asked(self, request: web.Request) -> web.Response:
        asked = Request(
            request.method, "", request.query, request.headers, await request.read(), self._clock.now()
        )
        reading = self._adapter.read(asked, Identity())
        if isinstance(reading, Answer):
            return _response(reading)
        if self.body is not None or self.status != 200:
            return web.Response(status=self.status, body=self.body)
        if self.hangs:
            self.hangs -= 1
            await asyncio.Event().wait()
        return _response(await self._answered(reading))

    async def _answered(self, reading: Reading) -> Answer:
        silent = self._adapter.answer(reading, ())
        (item,) = reading.items
        if not isinstance(item, Inbound) or item.message_id in [each.message_id for each in self.heard]:
            return silent
        self.heard.append(item)
        if self.file is not None:
            await self._adapter.send_file(self._file(item, self.file))
        if not (text := self.answer(item)):
            return silent
        part = OutboundPart(item.to, "", new_hex(32), text)
        if self.in_response:
            answer = await self._adapter.respond(reading, part)
            assert isinstance(answer, Answer)
            return answer
        await self._adapter.send(part)
        return silent

    def _file(self, item: Inbound, path: Path) -> OutboundFile:
        size = path.stat().st_size
        return OutboundFile(item.to, "", new_hex(32), path, path.name, self.mime, FileKind.FILE, size)

    @asynccontextmanager
    async def served(self, setup: Setup, clock: FakeClock) -> AsyncIterator[str]:
        """The address to push to."""
        self._clock = clock
        app = web.Application()
        app.router.add_route("*", "/channels/wechat_mp/fake", self._asked)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            async with http_session() as session:
                settings = WechatMpSettings.model_validate(setup.table)
                known = WechatMpCredentials.model_validate(setup.secrets)
                place = Place("wechat_mp:fake", "https://bot.example/c")
                self._adapter = OfficialAccountWithService(settings, known, Http(session, clock=clock), place)
                yield f"http://127.0.0.1:{runner.addresses[0][1]}/channels/wechat_mp/fake"
        finally:
            await runner.cleanup()


def _response(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, body=answer.body, content_type=answer.content_type)
