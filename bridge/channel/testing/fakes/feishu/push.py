"""Pushing events to the bot's address, and again until it acknowledges them, as the platform does."""

import asyncio
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bridge.channel.testing.fakes.feishu.seal import seal, sign
from bridge.clock import Clock, unix_seconds

ACK_SECONDS = 3.0
DELAYS: tuple[float, ...] = (15.0, 300.0, 3600.0, 21_600.0)


@dataclass(slots=True)
class Push:
    """One event on its way. ``statuses`` has one entry per attempt: the HTTP status, or 0 for no answer."""

    message_id: str
    event: dict[str, Any] = field(repr=False)
    statuses: list[int] = field(default_factory=list)
    body: str = field(default="", repr=False)  # of the last answer
    over: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def acknowledged(self) -> bool:
        return bool(self.statuses) and self.statuses[-1] == 200


class Pusher:
    """Sends events to ``to``; ``delays`` are the waits before each further attempt, in seconds."""

    def __init__(
        self,
        encrypt_key: str,
        to: str,
        clock: Clock,
        delays: Sequence[float],
        ack_seconds: float = ACK_SECONDS,
    ) -> None:
        self.to = to
        self.delays = delays
        self.ack_seconds = ack_seconds
        self.pushes: list[Push] = []
        self._encrypt_key = encrypt_key
        self._clock = clock

    def request(self, event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
        """Headers and body of the request that tells of ``event``."""
        body = json.dumps(event, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json; charset=utf-8"}
        if not self._encrypt_key:
            return headers, body
        body = seal(self._encrypt_key, body)
        timestamp = str(unix_seconds(self._clock.now()))
        return headers | sign(self._encrypt_key, body, timestamp, secrets.token_hex(8)), body

    async def attempt(self, push: Push, session: aiohttp.ClientSession) -> None:
        """Send ``push`` once. Each attempt is sealed and signed afresh."""
        headers, body = self.request(push.event)
        status = 0
        try:
            async with asyncio.timeout(self.ack_seconds):
                async with session.post(self.to, data=body, headers=headers) as answer:
                    push.body = await answer.text()
                    status = answer.status
        except (aiohttp.ClientError, OSError, TimeoutError):
            push.body = ""
        push.statuses.append(status)

    async def insist(self, push: Push, session: aiohttp.ClientSession) -> None:
        """Go on after a first attempt, until it is acknowledged or the schedule ends."""
        try:
            for delay in self.delays:
                if push.acknowledged:
                    return
                await self._clock.sleep(delay)
                await self.attempt(push, session)
        finally:
            push.over.set()
