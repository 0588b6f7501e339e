"""The receiving side of a Standard Webhooks integration: a server on loopback that takes signed callbacks.

It verifies by its own code, not by ours, remembers ids, and does whatever bad receivers do.
"""

import asyncio
import base64
import hashlib
import hmac
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from bridge.clock import Clock, SystemClock

TOLERANCE_SECONDS = 300
HUGE_CHUNK = bytes(65_536)


class Break(StrEnum):
    """What happens to the connection instead of a whole answer."""

    NONE = ""
    CLOSE = "close"  # before any byte
    CUT_HEADERS = "cut_headers"  # in the middle of the answer's headers
    HANG = "hang"  # no byte, until the receiver closes
    CUT_BODY = "cut_body"  # after a whole head and the start of the body
    HANG_BODY = "hang_body"  # the same, and then no byte more


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the receiver does with one attempt. ``keeps``: it takes the event, whatever it answers."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body_bytes: int = 0
    keeps: bool = True
    broken: Break = Break.NONE


def fails(status: int = 500) -> Reaction:
    return Reaction(status, keeps=False)


def throttles(retry_after: str) -> Reaction:
    """429 with ``retry_after`` as it is: seconds or a date."""
    return Reaction(429, {"Retry-After": retry_after}, keeps=False)


def moves(address: str) -> Reaction:
    return Reaction(301, {"Location": address}, keeps=False)


def breaks(how: Break, keeps: bool = False) -> Reaction:
    return Reaction(keeps=keeps, broken=how)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One POST as it came."""

    webhook_id: str
    timestamp: str
    signature: str
    body: bytes
    genuine: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """An event that was taken, once per id."""

    webhook_id: str
    event: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.event["data"]
        return data


class CallbackReceiver:
    """Entering starts the server. ``plan`` says what happens to the next attempts; then all is well.

    With ``planned`` set, a plan is for events of that type alone.
    """

    def __init__(self, secrets: Sequence[str], clock: Clock | None = None, planned: str = "") -> None:
        self.secrets = list(secrets)
        self._planned = planned
        self.attempts: list[Attempt] = []
        self.kept: list[Kept] = []
        self.files: dict[str, bytes] = {}  # served under /files/<name>
        self.file_token = ""
        self.file_requests: list[Mapping[str, str]] = []
        self._plan: deque[Reaction] = deque()
        self._clock = clock or SystemClock()
        self._changed = asyncio.Condition()
        self._closing = asyncio.Event()
        app = web.Application(client_max_size=8 * 1024 * 1024)
        app.router.add_post("/hook", self._hook)
        app.router.add_get("/files/{name}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        self.address = ""

    @property
    def url(self) -> str:
        return f"{self.address}/hook"

    @property
    def host(self) -> str:
        """``host:port``, for an operator's list."""
        return self.address.removeprefix("http://")

    def plan(self, *reactions: Reaction) -> None:
        self._plan.extend(reactions)

    def in_seconds(self, seconds: float) -> str:
        """A ``Retry-After`` date."""
        return format_datetime(self._clock.now() + timedelta(seconds=seconds), usegmt=True)

    async def wait_for(self, count: int) -> list[Kept]:
        """All that was taken, once that is at least ``count``. Bounded by whoever calls."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.kept) >= count)
        return list(self.kept)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        await self._runner.cleanup()

    async def _hook(self, request: web.Request) -> web.StreamResponse:
        attempt = self._attempt(request, await request.read())
        self.attempts.append(attempt)
        if not attempt.genuine:
            return web.Response(status=401)
        reaction = self._plan.popleft() if self._plan and self._is_planned(attempt) else Reaction()
        if reaction.keeps:
            await self._keep(attempt)
        return await self._react(request, reaction)

    def _is_planned(self, attempt: Attempt) -> bool:
        return self._planned in ("", json.loads(attempt.body)["type"])

    def _attempt(self, request: web.Request, body: bytes) -> Attempt:
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        once = all(len(request.headers.getall(name, [])) == 1 for name in names)
        webhook_id, timestamp, signature = (request.headers.get(name, "") for name in names)
        genuine = (
            once
            and request.content_type == "application/json"
            and timestamp.isdecimal()
            and abs(self._clock.now().timestamp() - int(timestamp)) <= TOLERANCE_SECONDS
            and any(
                signature_of(secret, webhook_id, timestamp, body) in signature.split(" ")
                for secret in self.secrets
            )
        )
        return Attempt(webhook_id, timestamp, signature, body, genuine)

    async def _keep(self, attempt: Attempt) -> None:
        if attempt.webhook_id in [kept.webhook_id for kept in self.kept]:
            return
        async with self._changed:
            self.kept.append(Kept(attempt.webhook_id, json.loads(attempt.body)))
            self._changed.notify_all()

    async def _react(self, request: web.Request, reaction: Reaction) -> web.StreamResponse:
        if reaction.broken and (transport := request.transport) is not None:
            transport.write(_begun(reaction))
            if reaction.broken in (Break.HANG, Break.HANG_BODY):
                await self._closing.wait()
            transport.close()
        elif reaction.body_bytes:
            return await _pour(request, reaction)
        return web.Response(status=reaction.status, headers=reaction.headers)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        self.file_requests.append(dict(request.headers))
        if self.file_token and request.headers.get("Authorization") != f"Bearer {self.file_token}":
            return web.Response(status=401)
        content = self.files.get(request.match_info["name"])
        return web.Response(status=404) if content is None else web.Response(body=content)


def _begun(reaction: Reaction) -> bytes:
    """What is sent of an answer that breaks."""
    if reaction.broken is Break.CUT_HEADERS:
        return b"HTTP/1.1 204 No Content\r\nX-Cut: of"
    if reaction.broken in (Break.CUT_BODY, Break.HANG_BODY):
        return b"HTTP/1.1 %d \r\nContent-Length: 100\r\n\r\n{" % reaction.status
    return b""


async def _pour(request: web.Request, reaction: Reaction) -> web.StreamResponse:
    response = web.StreamResponse(status=reaction.status, headers=reaction.headers)
    await response.prepare(request)
    for _ in range(0, reaction.body_bytes, len(HUGE_CHUNK)):
        try:
            await response.write(HUGE_CHUNK)
        except ConnectionError:  # the sender has read enough
            break
    return response


def signature_of(secret: str, webhook_id: str, timestamp: str, body: bytes) -> str:
    """The ``v1`` token, written down once more so that both sides are not wrong together."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, b".".join([webhook_id.encode(), timestamp.encode(), body]), hashlib.sha256)
    return f"v1,{base64.b64encode(mac.digest()).decode()}"
