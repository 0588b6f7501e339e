"""The platform as a whole: an HTTP server on loopback, followers who write, and faults on demand."""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from email.utils import format_datetime
from enum import StrEnum
from typing import Any, Self

import aiohttp
from aiohttp import web

from bridge.channel.testing.fakes.wechat_mp.interface import Handler, Interface
from bridge.channel.testing.fakes.wechat_mp.messages import FakeFile, Fields, Note, Value, written
from bridge.channel.testing.fakes.wechat_mp.push import ANSWER_SECONDS, ATTEMPTS, Push, Pusher
from bridge.channel.testing.fakes.wechat_mp.replies import Secrets
from bridge.channel.testing.fakes.wechat_mp.rules import RefusedError
from bridge.channel.testing.fakes.wechat_mp.seal import new_key
from bridge.channel.testing.fakes.wechat_mp.tokens import TokenOffice
from bridge.channel.testing.fakes.wechat_mp.world import APP_ID, OWNER, TOUCHED, By, Shown, World
from bridge.clock import Clock

_MAX_BODY = 64 * 1024 * 1024
_TOUCHES = frozenset({"CLICK", "subscribe", "SCAN"})


class Fault(StrEnum):
    """What can go wrong with one request beside a refusal."""

    STALL = "stall"  # no answer, ever
    DROP = "drop"  # the connection closes, nothing is accepted
    DROP_AFTER = "drop_after"  # accepted, then the connection closes
    EMPTY = "empty"  # accepted, and answered by an object without a code
    GARBAGE = "garbage"  # accepted, and answered by what is no answer
    BROKEN = "broken"  # 502 of a gateway, nothing is accepted


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with ``code`` in place of the due one. ``told`` is called when it is given."""

    code: int
    text: str = "refused"
    told: Callable[[], None] = lambda: None


class FakeWechatMp:
    """WeChat on loopback: ``async with FakeWechatMp(to=…) as fake``.

    Args:
        account: what the console says; its app id, token, key, mode and form.
        to: where followers' messages are pushed; may be set later.
        attempts: how often one is pushed at most; the times are the pusher's. All as the platform does.
        port: 0 takes any free one.
    """

    def __init__(
        self,
        account: Secrets | None = None,
        app_secret: str = "fake-app-secret",  # noqa: S107 - of a fake
        *,
        to: str = "",
        port: int = 0,
        clock: Clock | None = None,
        attempts: int = ATTEMPTS,
        answer_seconds: float = ANSWER_SECONDS,
        again_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.account = account or Secrets(APP_ID, "fakeToken0001", new_key())
        self.app_secret = app_secret
        self.world = World(clock)
        self.tokens = TokenOffice(self.world.clock, self.account.app_id, app_secret)
        self.interface = Interface(self.world, self.tokens)
        times = (answer_seconds, again_seconds)
        self.pusher = Pusher(self.account, to, self.world, self.changed, attempts, *times)
        self.base = ""
        self.requests: list[str] = []  # method and path of each, without its query
        self._faults: dict[str, deque[Fault | Refusal | None]] = {}
        self._port = port
        self._rids = itertools.count(1)
        self._changed = asyncio.Condition()
        self._stack = AsyncExitStack()
        self._tasks: asyncio.TaskGroup
        self._running: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_MAX_BODY)
        for method, path, name, handler in self.interface.routes():
            app.router.add_route(method, path, self._guarded(name, handler))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", self._port).start()
        self.base = self.world.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        unlimited = aiohttp.TCPConnector(limit=0)  # many followers write at once
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession(connector=unlimited))
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._stack.callback(self._stop)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def _stop(self) -> None:
        for task in self._running:
            task.cancel()

    @property
    def sent(self) -> list[Shown]:
        """What the bot sent, either way, oldest first."""
        return [each for each in self.world.shown if each.by is not By.NOTICE]

    def next(self, *faults: Fault | Refusal | None, at: str = "send") -> None:
        """What happens next at ``send``, ``typing``, ``upload``, ``token``, ``info`` or ``download``.

        None: what should.
        """
        self._faults.setdefault(at, deque()).extend(faults)

    def say(self, text: str = "", *, file: FakeFile | None = None, **fields: Any) -> Push:
        """Let a follower write: ``fields`` as in ``Note``.

        It is pushed meanwhile; ``Push.over`` tells the end.
        """
        note = replace(Note(text=text, file=file), **fields)
        return self._push(self.event_or_message(note))

    def happen(self, event: str, sender: str = OWNER, **fields: Value) -> Push:
        """Let a follower do something else: ``subscribe``, ``unsubscribe``, ``CLICK`` with an EventKey …"""
        self.world.follower(sender).follows = event != "unsubscribe"
        note = Note(sender=sender, fields={"MsgType": "event", "Event": event, **fields})
        return self._push(self.event_or_message(note))

    def repeat(self, push: Push) -> Push:
        """Push the same once more, as after an answer that was lost."""
        return self._push(push.fields)

    def event_or_message(self, note: Note) -> Fields:
        """What ``note`` becomes, and what its sender may be sent because of it."""
        fields = written(self.world, note)
        follower = self.world.follower(note.sender)
        now = self.world.clock.monotonic()
        if fields["MsgType"] != "event":
            follower.follows = True
            follower.may_be_sent(self.world.after_writing, now)
        elif fields.get("Event") in _TOUCHES:
            follower.may_be_sent(TOUCHED, now)
        return fields

    async def check_address(self, echo: str = "4375120948345356249") -> bool:
        """What the console does when the server's address is entered: whether it accepts it."""
        query = self.pusher.check(echo)
        async with self._session.get(self.pusher.to, params=query, allow_redirects=False) as answer:
            return answer.status == 200 and await answer.text() == echo

    async def wait_shown(self, count: int, seconds: float | None = 10.0) -> list[Shown]:
        """All that is shown, once that is at least ``count``; ``seconds`` None waits for ever.

        Raises:
            TimeoutError: it was less after ``seconds``.
        """
        async with asyncio.timeout(seconds):
            await self.wait_until(lambda: len(self.world.shown) >= count)
        return self.world.shown

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return once ``condition`` holds; it is asked after each attempt, call and message shown."""
        async with self._changed:
            await self._changed.wait_for(condition)

    def _push(self, fields: Fields) -> Push:
        push = Push(str(fields.get("MsgId", "")), str(fields["FromUserName"]), fields)
        task = self._tasks.create_task(self.pusher.deliver(push, self._session))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return push

    async def changed(self) -> None:
        """Wake whoever waits for what is shown."""
        async with self._changed:
            self._changed.notify_all()

    def _guarded(self, name: str, handler: Handler) -> Handler:
        """``handler`` with the faults that wait at ``name``, the platform's clock, and a note of each."""

        async def handle(request: web.Request) -> web.StreamResponse:
            self.requests.append(f"{request.method} {request.path}")
            faults = self._faults.get(name)
            answer = await self._answer(request, handler, faults.popleft() if faults else None)
            answer.headers["Date"] = format_datetime(self.world.clock.now(), usegmt=True)
            await self.changed()
            return answer

        return handle

    async def _answer(
        self, request: web.Request, handler: Handler, fault: Fault | Refusal | None
    ) -> web.StreamResponse:
        if isinstance(fault, Refusal):
            fault.told()
            return self._refused(fault.code, fault.text)
        if fault == Fault.STALL:
            await asyncio.Event().wait()
        if fault == Fault.DROP:
            return _dropped(request)
        if fault == Fault.BROKEN:
            return web.Response(status=502, text="<html>Bad Gateway</html>", content_type="text/html")
        try:
            answer = await handler(request)
        except RefusedError as error:
            return self._refused(error.code, str(error))
        if fault == Fault.DROP_AFTER:
            return _dropped(request)
        if fault == Fault.EMPTY:
            return web.json_response({})
        return web.Response(text="<html>OK</html>") if fault == Fault.GARBAGE else answer

    def _refused(self, code: int, text: str) -> web.Response:
        """Under status 200, with the number by which the platform finds the request again."""
        return web.json_response({"errcode": code, "errmsg": f"{text} rid: 6{next(self._rids):07x}-fake"})


def _dropped(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
