"""Pigeon's fake and kit: what its author brings to the contract suite."""

import asyncio
import secrets
from collections import deque
from contextlib import suppress
from typing import Any, Self

from aiohttp import web

from bridge.channel import ChannelSpec, FileKind, RemoteFile
from bridge.channel.testing.kit import KitFile, KitMessage, KitSent, Trouble
from bridge.registry import channels


class FakePigeon:
    """The platform: updates under rising numbers, messages once per nonce, files."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(16)
        self.updates: list[dict[str, Any]] = []
        self.messages: dict[str, dict[str, Any]] = {}
        self.files: dict[str, KitFile] = {}
        self.troubles: deque[Trouble] = deque()
        self.base = ""
        self._arrived = asyncio.Event()
        app = web.Application()
        app.router.add_get("/bot/updates", self._updates)
        app.router.add_post("/bot/messages", self._messages)
        app.router.add_get("/bot/files/{id}", self._files)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    def add(self, update: dict[str, Any]) -> None:
        self.updates.append({"id": len(self.updates) + 1, **update})
        self._arrived.set()

    def _allowed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.token}"

    async def _updates(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return web.Response(status=401)
        after = int(request.query["after"])
        if len(self.updates) <= after:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(float(request.query["wait"])):
                    await self._arrived.wait()
        new = self.updates[after : after + 2]  # small pages, so that one poll is not enough
        return web.json_response({"updates": new, "next": str(after + len(new))})

    async def _messages(self, request: web.Request) -> web.Response:
        trouble = self.troubles.popleft() if self.troubles else None
        if trouble is Trouble.CREDENTIALS or not self._allowed(request):
            return web.Response(status=401)
        wire = await request.json()
        if trouble in (None, Trouble.DROP_AFTER):
            self.messages.setdefault(wire["nonce"], wire)
        match trouble:
            case Trouble.REFUSE:
                return web.json_response({"error": "blocked"}, status=400)
            case Trouble.THROTTLE:
                return web.Response(status=429, headers={"Retry-After": "7"})
            case Trouble.BREAK_BEFORE:
                return web.Response(status=500)
            case Trouble.GARBAGE:
                return web.Response(text="<html>", content_type="text/html")
            case Trouble.DROP_AFTER if request.transport is not None:
                request.transport.close()
        return web.json_response({"id": f"p_{wire['nonce']}"})

    async def _files(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return web.Response(status=401)
        file = self.files[request.match_info["id"]]
        return web.Response(body=file.data, content_type=file.mime)


class PigeonKit:
    """Kit, PollsKit and FilesKit."""

    def __init__(self) -> None:
        self.fake = FakePigeon()

    @property
    def spec(self) -> ChannelSpec:
        return channels().load("pigeon")

    async def __aenter__(self) -> Self:
        await self.fake.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.fake.stop()

    @property
    def settings(self) -> dict[str, Any]:
        return {"base": self.fake.base, "poll_seconds": 0.05}

    @property
    def credentials(self) -> dict[str, Any]:
        return {"token": self.fake.token}

    def person(self, n: int) -> str:
        return f"person{n}"

    def chat(self, n: int, group: bool = False) -> str:
        return f"{'group' if group else 'chat'}{n}"

    def sent(self) -> list[KitSent]:
        return [
            KitSent(wire["nonce"], wire["text"], reply_to=wire["answers"], to=wire["chat"])
            for wire in self.fake.messages.values()
        ]

    def trouble(self, *troubles: Trouble) -> None:
        self.fake.troubles.extend(troubles)

    def supports(self, trouble: Trouble) -> bool:
        return True

    def arrive(self, message: KitMessage) -> None:
        files = [self._store(each) for each in message.files]
        self.fake.add(
            {
                "sender": message.sender,
                "chat": message.chat,
                "text": message.text,
                "group": message.group,
                "files": [
                    {"id": key, "name": each.name, "mime": each.mime, "size": len(each.data)}
                    for key, each in zip(files, message.files, strict=True)
                ],
            }
        )

    def arrive_unreadable(self) -> None:
        self.fake.add({"sender": None, "chat": ["?"]})

    def remote(self, file: KitFile) -> RemoteFile:
        return RemoteFile(self._store(file), FileKind.FILE, file.name, file.mime, len(file.data))

    def _store(self, file: KitFile) -> str:
        key = secrets.token_hex(8)
        self.fake.files[key] = file
        return key
