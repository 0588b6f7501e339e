"""The platform as a whole: an HTTP server on loopback, people who write, and faults on demand."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from enum import StrEnum
from typing import Any, Self

import aiohttp
from aiohttp import web

from bridge.channel.testing.fakes.feishu.events import (
    Bundle,
    FakeFile,
    Note,
    edit,
    forward,
    pressed,
    recalled,
    received,
    write,
)
from bridge.channel.testing.fakes.feishu.interface import Handler, Interface
from bridge.channel.testing.fakes.feishu.push import DELAYS, Push, Pusher
from bridge.channel.testing.fakes.feishu.registration import FakeRegistration
from bridge.channel.testing.fakes.feishu.rules import RefusedError
from bridge.channel.testing.fakes.feishu.world import OWNER, Sent, World
from bridge.clock import Clock

SCAN_SECONDS = 1  # between two looks whether somebody has scanned
_MAX_BODY = 64 * 1024 * 1024


class Fault(StrEnum):
    """What can go wrong with one request beside a refusal."""

    STALL = "stall"  # no answer, ever
    DROP = "drop"  # the connection closes, nothing is accepted
    DROP_AFTER = "drop_after"  # accepted, then the connection closes
    GARBAGE = "garbage"  # accepted, and answered by what is no answer
    BROKEN = "broken"  # 502 of a gateway, nothing is accepted


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with ``code`` in place of the due one; ``fields`` are its further ones.

    ``told`` is called when it is given.
    """

    code: int
    status: int = 400
    text: str = "refused"
    headers: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    told: Callable[[], None] = lambda: None

    def answer(self) -> web.Response:
        body = {"code": self.code, "msg": self.text, **self.fields}
        return web.json_response(body, status=self.status, headers=self.headers)


def throttled(seconds: float, told: Callable[[], None] = lambda: None) -> Refusal:
    """What the rate limiter answers."""
    reset = {"x-ogw-ratelimit-limit": "50", "x-ogw-ratelimit-reset": str(seconds)}
    return Refusal(99991400, 429, "request trigger frequency limit", reset, told=told)


class FakeFeishu:
    """Feishu on loopback: ``async with FakeFeishu(to=…) as fake``.

    Args:
        to: where events are pushed; may be set later.
        delays: waits between the attempts to push one event, the platform's own by default.
        port: 0 takes any free one.
    """

    def __init__(
        self,
        app_id: str = "cli_fake0001",
        app_secret: str = "fake-app-secret",  # noqa: S107 - of a fake
        token: str = "fake-verification-token",  # noqa: S107 - of a fake
        encrypt_key: str = "fake-encrypt-key",
        *,
        to: str = "",
        port: int = 0,
        clock: Clock | None = None,
        delays: Sequence[float] = DELAYS,
    ) -> None:
        self.app_id, self.app_secret = app_id, app_secret
        self.token, self.encrypt_key = token, encrypt_key
        self.world = World(clock)
        self.interface = Interface(self.world, app_id, app_secret, "Turnbridge")
        self.pusher = Pusher(encrypt_key, to, self.world.clock, delays)
        self.registration = FakeRegistration(interval=SCAN_SECONDS, owner=OWNER)
        self.registration.app = {"client_id": app_id, "client_secret": app_secret}
        self.base = ""
        self.requests: list[str] = []  # method and path of each, as it came
        self.holding = False
        self._held: list[Push] = []
        self._faults: dict[str, deque[Fault | Refusal]] = {}
        self._port = port
        self._changed = asyncio.Condition()
        self._stack = AsyncExitStack()
        self._tasks: asyncio.TaskGroup
        self._running: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_MAX_BODY)
        for method, path, name, handler in self.interface.routes():
            app.router.add_route(method, path, self._guarded(name, handler))
        for method, path, handler in self.registration.routes():
            app.router.add_route(method, path, self._guarded("registration", handler))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", self._port)
        await site.start()
        self.base = self.registration.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession())
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._stack.callback(self._stop)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def _stop(self) -> None:
        for task in self._running:
            task.cancel()

    @property
    def sent(self) -> list[Sent]:
        """What the bot sent, oldest first, each once per ``uuid`` and hour."""
        return self.world.sent

    def next(self, *faults: Fault | Refusal, at: str = "send") -> None:
        """What happens next at ``send``, ``upload``, ``token``, ``info``, ``get`` or ``download``."""
        self._faults.setdefault(at, deque()).extend(faults)

    async def say(self, text: str = "", *, files: Sequence[FakeFile] = (), **fields: object) -> Push:
        """Let a person write: ``fields`` as in ``Note``. Returns after the first attempt to push it.

        Where that was not acknowledged, more follow on their own; ``Push.over`` tells the end.
        """
        note = replace(Note(text=text, files=tuple(files)), **fields)  # type: ignore[arg-type]  # checked by it
        message = write(self.world, note)
        return await self._push(message.message_id)

    async def forward(self, *bundle: Note | Bundle, **fields: object) -> Push:
        """Let a person forward messages as one; a list within is a bundle that was forwarded itself."""
        note = replace(Note(), **fields)  # type: ignore[arg-type]  # checked by it
        return await self._push(forward(self.world, bundle, note).message_id)

    async def quote(self, message_id: str, text: str, **fields: object) -> Push:
        """Let a person reply to a message."""
        return await self._beside(message_id, Note(text, parent=message_id), fields)

    async def discuss(self, message_id: str, text: str, **fields: object) -> Push:
        """Let a person write into the thread on a message, which opens by that."""
        first = self.world.messages[message_id]
        root = first.root if first.thread and first.root else message_id
        first.thread = first.thread or self.world.new_id("omt")
        return await self._beside(message_id, Note(text, root=root, thread=first.thread), fields)

    async def _beside(self, message_id: str, note: Note, fields: dict[str, object]) -> Push:
        chat = self.world.messages[message_id].chat
        note = replace(note, chat=chat.chat_id, group=chat.group, **fields)  # type: ignore[arg-type]  # checked by it
        return await self._push(write(self.world, note).message_id)

    async def edit(self, message_id: str, text: str) -> Push:
        """Let its writer change a message, and tell the bot."""
        message = self.world.messages[message_id]
        edit(message, text, self.world.now_ms())
        return await self._push(message_id, "im.message.updated_v1")

    async def repeat(self, message_id: str, *, as_new: bool = False) -> Push:
        """Push a message once more under another event id; ``as_new`` under another message id as well."""
        if as_new:
            message = replace(self.world.messages[message_id], message_id=self.world.new_id("om"))
            message_id = self.world.add(message).message_id
        return await self._push(message_id)

    async def recall(self, message_id: str) -> Push:
        """Let its writer take a message back, and tell the bot."""
        message = self.world.messages[message_id]
        message.recalled = True
        event = recalled(message, self.world.new_id("ev"), self.app_id, self.token, self.world.now_ms())
        return await self._deliver(Push(message_id, event))

    async def press(self, sent: Sent, label: str, sender: str = OWNER) -> Push:
        """Let a person press a button; ``Push.body`` is what the bot answered, a toast for example."""
        value = next(each.value for each in sent.buttons if each.label == label)
        card, event_id = self.world.messages[sent.message_id], self.world.new_id("ev")
        event = pressed(value, card, sender, event_id, self.app_id, self.token, self.world.now_ms())
        return await self._deliver(Push(sent.message_id, event))

    async def again(self, push: Push) -> Push:
        """Deliver the very same event once more, as the platform does at times."""
        return await self._deliver(Push(push.message_id, push.event))

    async def release(self, *, backwards: bool = False) -> list[Push]:
        """Push what was held while ``holding``, in order or ``backwards``."""
        self.holding = False
        held, self._held = self._held, []
        return [await self._deliver(push) for push in (reversed(held) if backwards else held)]

    async def wait_sent(self, count: int, seconds: float | None = 10.0) -> list[Sent]:
        """What the bot sent, once that is at least ``count``; ``seconds`` None waits for ever.

        Raises:
            TimeoutError: it was less after ``seconds``.
        """
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: len(self.sent) >= count)
        return self.sent

    async def _push(self, message_id: str, kind: str = "im.message.receive_v1") -> Push:
        message = self.world.messages[message_id]
        event = received(message, self.world.new_id("ev"), self.app_id, self.token, kind)
        return await self._deliver(Push(message_id, event))

    async def _deliver(self, push: Push) -> Push:
        if self.holding:
            self._held.append(push)
            return push
        self.pusher.pushes.append(push)
        await self.pusher.attempt(push, self._session)
        task = self._tasks.create_task(self.pusher.insist(push, self._session))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return push

    def _guarded(self, name: str, handler: Handler) -> Handler:
        """``handler`` with the faults that wait at ``name``, the platform's clock, and a note of each."""

        async def handle(request: web.Request) -> web.StreamResponse:
            self.requests.append(f"{request.method} {request.path}")
            faults = self._faults.get(name)
            answer = await self._answer(request, handler, faults.popleft() if faults else None)
            answer.headers["Date"] = format_datetime(self.world.clock.now(), usegmt=True)
            async with self._changed:
                self._changed.notify_all()
            return answer

        return handle

    async def _answer(
        self, request: web.Request, handler: Handler, fault: Fault | Refusal | None
    ) -> web.StreamResponse:
        if isinstance(fault, Refusal):
            fault.told()
            return fault.answer()
        if fault == Fault.STALL:
            await asyncio.Event().wait()
        if fault == Fault.DROP:
            return _dropped(request)
        if fault == Fault.BROKEN:
            return web.Response(status=502, text="<html>Bad Gateway</html>", content_type="text/html")
        try:
            answer = await handler(request)
        except RefusedError as error:
            return Refusal(error.code, error.status, str(error)).answer()
        if fault == Fault.DROP_AFTER:
            return _dropped(request)
        return web.Response(text="<html>OK</html>") if fault == Fault.GARBAGE else answer


def _dropped(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
