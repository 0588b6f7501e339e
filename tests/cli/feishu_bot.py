"""A bot at the other side of the fake platform: the real adapter behind a small server."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from bridge.channel import (
    Choice,
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
from bridge.clock import SystemClock
from bridge.ids import new_hex
from channels.feishu import Feishu, FeishuCredentials, FeishuSettings

Answer = Callable[[Inbound], str]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Bot:
    """Answers each new message with what ``answer`` makes of it and ``choices``, and with a ``file``."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.choices: tuple[Choice, ...] = ()
        self.file: Path | None = None
        self.heard: list[Inbound] = []
        self.address = ""
        self.status = 200
        self._feishu: Feishu

    async def meet(self, base: str, credentials: dict[str, str], http: Http) -> None:
        """Become the bot of the platform at ``base``."""
        settings = FeishuSettings(app_id="cli_fake0001", base=base)
        known = FeishuCredentials.model_validate(credentials)
        self._feishu = Feishu(settings, known, http, Place("feishu:fake"))

    async def _pushed(self, request: web.Request) -> web.Response:
        if self.status != 200:
            return web.Response(status=self.status, text="not\x1b[2J today")
        body = await request.read()
        asked = Request("POST", "", {}, request.headers, body, SystemClock().now())
        reading = self._feishu.read(asked, Identity("ou_fake_bot"))
        assert isinstance(reading, Reading), reading
        for item in reading.items:
            if isinstance(item, Inbound) and item.message_id not in [each.message_id for each in self.heard]:
                self.heard.append(item)
                await self._reply(item)
        return web.Response(text="{}")

    async def _reply(self, item: Inbound) -> None:
        if text := self.answer(item):
            await self._feishu.send(
                OutboundPart(item.to, item.reply_to, new_hex(32), text, choices=self.choices)
            )
        if self.file is not None:
            size = len(self.file.read_bytes())
            part = OutboundFile(
                item.to,
                item.reply_to,
                new_hex(32),
                self.file,
                "../报告.txt",
                "text/plain",
                FileKind.FILE,
                size,
            )
            await self._feishu.send_file(part)

    @asynccontextmanager
    async def served(self, port: int, credentials: dict[str, str]) -> AsyncIterator[str]:
        """The address to push to; ``port`` is where the platform will listen."""
        app = web.Application()
        app.router.add_post("/channels/feishu/fake", self._pushed)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.address = f"http://127.0.0.1:{runner.addresses[0][1]}/channels/feishu/fake"
            async with http_session() as session:
                await self.meet(f"http://127.0.0.1:{port}", credentials, Http(session))
                yield self.address
        finally:
            await runner.cleanup()
