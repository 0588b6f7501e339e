"""A transcription endpoint on loopback, of OpenAI's form: it answers one text, or what it is told to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Asked:
    path: str
    key: str
    fields: dict[str, str]
    name: str = ""
    data: bytes = b""


@dataclass
class FakeTranscriptions:
    status: int = 200
    answer: Any = field(default_factory=lambda: {"text": " Turn the heating on. "})
    asked: list[Asked] = field(default_factory=list)
    base: str = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["FakeTranscriptions"]:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._hear)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.base = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            yield self
        finally:
            await runner.cleanup()

    async def _hear(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        fields = {key: value for key, value in form.items() if isinstance(value, str)}
        key = request.headers.get("Authorization", "")
        self.asked.append(Asked(request.path, key, fields, file.filename, file.file.read()))
        return web.json_response(self.answer, status=self.status)
