"""A system that integrates over the webhook channel: it sends signed messages, and takes the replies.

It behaves as a Standard Webhooks sender does: an event that was not acknowledged with a 2xx goes out again
under the same id, with a fresh time and signature. Usable from any process; nothing here needs pytest.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from bridge.channel.testing.fakes.webhook_receiver import CallbackReceiver, Kept, signature_of
from bridge.clock import Clock, SystemClock

RETRY_SECONDS: Sequence[float] = (0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
_AGAIN = frozenset({408, 425, 429})
_NO_ANSWER = 0


def new_secret() -> str:
    """A fresh ``whsec_`` secret of 32 bytes."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


@dataclass(slots=True)
class Delivery:
    """One event and what became of each attempt; status 0 stands for no answer."""

    webhook_id: str
    body: bytes
    statuses: list[int] = field(default_factory=list)
    answer: Any = None

    @property
    def acknowledged(self) -> bool:
        return bool(self.statuses) and 200 <= self.statuses[-1] < 300


@dataclass(frozen=True, slots=True)
class Account:
    """How the other side knows an account. ``url`` is its route; no callback secrets: it asks."""

    url: str
    secret: str
    callback_secrets: Sequence[str] = ()
    ask_token: str = ""


def message_event(text: str, **data: Any) -> bytes:
    """A ``message.created``; ``data`` adds to the sender ``u1`` in the conversation ``c1``."""
    fields = {
        "conversation_id": "c1",
        "message_id": f"m_{secrets.token_hex(8)}",
        "sender": {"id": "u1", "name": "Una"},
        "text": text,
        **data,
    }
    return json.dumps({"type": "message.created", "data": fields}, ensure_ascii=False).encode()


def inline(name: str, mime: str, data: bytes) -> dict[str, Any]:
    """An attachment inside the message."""
    digest = hashlib.sha256(data).hexdigest()
    content = base64.b64encode(data).decode()
    return {"name": name, "mime_type": mime, "size": len(data), "sha256": digest, "content_base64": content}


def signed_headers(secret: str, webhook_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature_of(secret, webhook_id, str(timestamp), body),
    }


class FakeWebhookClient:
    """Entering opens a connection pool and, where the account calls back, the receiver.

    ``retry_seconds`` are the waits before each attempt; when they are used up a delivery is given up.
    """

    def __init__(
        self,
        account: Account,
        *,
        clock: Clock | None = None,
        retry_seconds: Iterable[float] = RETRY_SECONDS,
        attempt_seconds: float = 15.0,
    ) -> None:
        self.account = account
        self.receiver = CallbackReceiver(account.callback_secrets, clock)
        self.deliveries: list[Delivery] = []
        self.asked: dict[int, dict[str, Any]] = {}  # by cursor: what asking brought
        self.cursor = 0
        self._clock = clock or SystemClock()
        self._retry_seconds = tuple(retry_seconds)
        self._timeout = aiohttp.ClientTimeout(total=attempt_seconds)
        self._session: aiohttp.ClientSession | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.receiver)
            self._session = await stack.enter_async_context(aiohttp.ClientSession())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("use it as an async context manager")
        return self._session

    async def say(self, text: str, *, webhook_id: str = "", **data: Any) -> Delivery:
        """Send a message until it is acknowledged or refused for good."""
        return await self.deliver(message_event(text, **data), webhook_id)

    async def deliver(self, body: bytes, webhook_id: str = "") -> Delivery:
        """Send an event: 2xx ends it, and so does any 4xx but 408, 425 and 429."""
        delivery = Delivery(webhook_id or f"msg_{secrets.token_hex(12)}", body)
        self.deliveries.append(delivery)
        asked_seconds = 0.0
        for wait in self._retry_seconds:
            await self._clock.sleep(max(wait, asked_seconds))
            status, asked_seconds = await self.attempt(delivery)
            if 200 <= status < 300 or (400 <= status < 500 and status not in _AGAIN):
                return delivery
        return delivery

    async def attempt(self, delivery: Delivery) -> tuple[int, float]:
        """One POST, signed for this moment: its status, and the wait in seconds that was asked for."""
        now = int(self._clock.now().timestamp())
        headers = signed_headers(self.account.secret, delivery.webhook_id, now, delivery.body)
        try:
            async with self.session.post(
                self.account.url, data=delivery.body, headers=headers, timeout=self._timeout
            ) as response:
                delivery.answer = await response.json(content_type=None)
                status, after = response.status, response.headers.get("Retry-After", "0")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            status, after = _NO_ANSWER, "0"
        delivery.statuses.append(status)
        return status, float(after) if after.isdecimal() else 0.0

    async def replies(self, count: int) -> list[Kept]:
        """What was called back, once that is at least ``count`` events."""
        return await self.receiver.wait_for(count)

    async def ask(self, wait_seconds: float = 0.0) -> list[dict[str, Any]]:
        """Ask once for what waits past the cursor, keep it, and move the cursor on: the new replies.

        Raises:
            aiohttp.ClientResponseError: it was refused.
        """
        query = {"after": str(self.cursor), "wait": f"{wait_seconds:g}"}
        answer = await self._get(f"{self.account.url}/replies", query, self._bearer())
        told: dict[str, Any] = json.loads(answer)
        new = [each for each in told["replies"] if each["cursor"] not in self.asked]
        self.asked.update({each["cursor"]: each for each in new})
        self.cursor = told["cursor"]
        return new

    async def content(self, attachment: Mapping[str, Any]) -> bytes:
        """The bytes of a reply's attachment, inline or by its address, checked against its digest."""
        if "content_base64" in attachment:
            data = base64.b64decode(attachment["content_base64"], validate=True)
        else:
            address = URL(f"{self.account.url}/replies").join(URL(attachment["url"], encoded=True))
            data = await self._get(str(address), {}, {})
        if hashlib.sha256(data).hexdigest() != attachment["sha256"]:
            raise ValueError("the file is not the one that was announced")
        return data

    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.account.ask_token}"}

    async def _get(self, address: str, query: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        timeout = aiohttp.ClientTimeout(total=60)
        async with self.session.get(
            address, params=query, headers=headers, timeout=timeout, raise_for_status=True
        ) as response:
            return await response.read()
