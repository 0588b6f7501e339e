"""A platform as plain as can be: lines of text to and fro, and no way to tell that a line comes again.

It exists nowhere. What is sent to it twice is shown twice, so it shows what a bridge does about a send whose
outcome nobody knows.
"""

import asyncio
import secrets
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from bridge.channel.testing.kit import Trouble

_STATUS = {Trouble.CREDENTIALS: 401, Trouble.THROTTLE: 429, Trouble.BREAK_BEFORE: 500, Trouble.REFUSE: 400}


@dataclass
class FakePlainline:
    """The server. ``written`` are people's lines, ``shown`` the bot's as (to, text), oldest first.

    While ``answers`` is not set, what was taken gets no answer.
    """

    written: list[dict[str, Any]] = field(default_factory=list)
    shown: list[tuple[str, str]] = field(default_factory=list)
    troubles: deque[Trouble] = field(default_factory=deque)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    base: str = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/lines", self._read)
        app.router.add_post("/lines", self._write)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        self._arrived = asyncio.Event()
        self.answers.set()
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    def add(self, line: dict[str, Any]) -> None:
        """A person writes, or something strange comes."""
        self.written.append(line)
        self._arrived.set()

    async def _read(self, request: web.Request) -> web.Response:
        """Lines after the n-th, at once or when one comes."""
        if not self._allowed(request):
            return web.Response(status=401)
        after = int(request.query["after"])
        if len(self.written) <= after:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(float(request.query["wait"])):
                    await self._arrived.wait()
        return web.json_response(self.written[after:])

    async def _write(self, request: web.Request) -> web.Response:
        trouble = self.troubles.popleft() if self.troubles else None
        if not self._allowed(request):
            trouble = Trouble.CREDENTIALS
        if trouble is not None and trouble in _STATUS:
            headers = {"Retry-After": "7"} if trouble is Trouble.THROTTLE else {}
            return web.Response(status=_STATUS[trouble], headers=headers)
        if trouble is Trouble.GARBAGE:
            return web.Response(text="<html>", content_type="text/html")
        line = await request.json()
        self.shown.append((line["to"], line["text"]))
        await self.answers.wait()
        if trouble is Trouble.DROP_AFTER and request.transport is not None:
            request.transport.close()
        return web.json_response({"taken": True})

    def _allowed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.token}"
