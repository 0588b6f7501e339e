"""A whole daemon with a webhook account, and requests to it as raw as a test wants them."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bridge.channel.testing.fakes.webhook import signed_headers
from bridge.channel.testing.fakes.webhook_receiver import CallbackReceiver, signature_of
from bridge.client import connected, expect
from bridge.clock import SystemClock
from bridge.daemon import StoreWrap
from bridge.paths import Home, write_private
from bridge.protocol import commands, ours
from bridge.store.contract import Step, Store
from tests.channels.webhook.tools import event
from tests.daemons import SECRET, TOKEN, Running, daemon, short_home, write_settings
from tests.store.around import Around

DEMO = '[channels.webhook.demo]\nsenders = "anyone"\n'
ROUTE = "/channels/webhook/demo"


def unix() -> int:
    return int(SystemClock().now().timestamp())


@dataclass
class Answered:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass
class Live:
    """A running daemon and an HTTP client before it."""

    running: Running
    http: aiohttp.ClientSession

    @property
    def home(self) -> Home:
        return self.running.home

    async def post(
        self, body: Any, webhook_id: str = "msg_1", secret: str = SECRET, path: str = ROUTE, **more: Any
    ) -> Answered:
        """``body``: bytes, or an async iterator of what is sent in chunks and signed as ``signed``."""
        signed = more.pop("signed", body)
        headers = {**signed_headers(secret, webhook_id, unix(), signed), **more.pop("headers", {})}
        data = io.BytesIO(body) if isinstance(body, bytes) else body
        async with self.http.post(self.running.address + path, data=data, headers=headers) as response:
            return Answered(response.status, dict(response.headers), _json(await response.read()))

    async def replies(self, after: int = 0, wait: float = 20.0) -> list[dict[str, Any]]:
        address = f"{self.running.address}{ROUTE}/replies?after={after}&wait={wait:g}"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with self.http.get(address, headers=headers) as response:
            replies: list[dict[str, Any]] = (await response.json())["replies"]
            return replies

    async def reload(self) -> None:
        async with connected(self.home.socket, "test", "1", "hello") as connection:
            await connection.send(ours.DaemonControl(request_id="1", command=commands.Reload()))
            expect(await connection.next(), ours.DaemonStatusEvent)

    async def state(self) -> str:
        async with connected(self.home.socket, "test", "1", "hello") as connection:
            await connection.send(ours.DaemonControl(request_id="1", command=commands.Status()))
            (one,) = expect(await connection.next(), ours.DaemonStatusEvent).status.components
            return one.state.value


def keep(home: Home, **secrets: Any) -> None:
    """The account's credentials file, anew."""
    given = {"secrets": [SECRET], "ask_token": TOKEN, **secrets}
    write_private(home.credentials("webhook", "demo"), json.dumps(given).encode())


@asynccontextmanager
async def live(
    home: Home, settings: str = DEMO, store_wrap: StoreWrap | None = None, **secrets: Any
) -> AsyncIterator[Live]:
    write_settings(home, settings)
    keep(home, **secrets)
    async with daemon(home, store_wrap=store_wrap) as running, aiohttp.ClientSession() as http:
        yield Live(running, http)


@asynccontextmanager
async def answering(settings: str = "", **secrets: Any) -> AsyncIterator[Live]:
    """A daemon whose account is asked for its replies."""
    with short_home() as home:
        async with live(home, DEMO + settings, **secrets) as there:
            yield there


def calling(receiver: CallbackReceiver, more: str = "") -> str:
    """The settings of an account that posts its replies to ``receiver``."""
    return f'{DEMO}callback_url = "{receiver.url}"\nprivate_hosts = ["{receiver.host}"]\n{more}'


class Watched(Around):
    """A store that can hold the steps of one kind back, or fail them."""

    def __init__(self, store: Store, kind: type[Step[Any]]) -> None:
        super().__init__(store)
        self._kind = kind
        self.held = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.error: Exception | None = None
        self.done = False

    async def do(self, step: Step[Any]) -> Any:
        if isinstance(step, self._kind) and not self.goes_on.is_set():
            self.held.set()
            if self.error is not None:
                raise self.error
            await self.goes_on.wait()
        result = await self._store.do(step)
        self.done = self.done or isinstance(step, self._kind)
        return result


def plain_event(text: str, kind: str = "message.created", **fields: Any) -> bytes:
    """An event of now."""
    given = json.loads(event(kind, text=text, **fields))
    return json.dumps({**given, "timestamp": SystemClock().now().isoformat()}).encode()


def _json(raw: bytes) -> Any:
    return json.loads(raw) if raw else None


def kept_texts(receiver: CallbackReceiver) -> Sequence[str]:
    return [each.data["text"] for each in receiver.kept]


__all__ = [
    "DEMO", "ROUTE", "Answered", "Live", "Watched", "answering", "calling", "keep", "kept_texts", "live",
    "plain_event", "signature_of", "unix",
]  # fmt: skip
