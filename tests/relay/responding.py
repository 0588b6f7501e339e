"""Channels that reply in their responses, and the platform before them that comes again for want of one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from bridge.channel import Answer, Inbound, OutboundFile, OutboundPart, Reading, Refused
from bridge.channel.contract import AnyAnswer, NoAnswer, SentAnswer
from bridge.channel.testing.clock import settle, until
from tests.relay.harness import Desk, PushedChannel, request

HOLD, REPEAT = 4.5, 10.0


class RespondingChannel(PushedChannel):
    """Replies in its responses, and sends by itself as well. ``made`` are the parts it made responses for.

    ``troubles`` are what becomes of the next responses.
    """

    hold_seconds, repeat_seconds = HOLD, REPEAT

    def __init__(self) -> None:
        super().__init__()
        self.made: list[OutboundPart | OutboundFile] = []
        self.troubles: list[Refused | Exception | asyncio.Event] = []

    async def respond(self, reading: Reading, part: OutboundPart | OutboundFile) -> Answer | Refused:
        self.made.append(part)
        trouble = self.troubles.pop(0) if self.troubles else None
        if isinstance(trouble, asyncio.Event):
            await trouble.wait()
        elif isinstance(trouble, Exception):
            raise trouble
        elif trouble is not None:
            return trouble
        body = part.text if isinstance(part, OutboundPart) else part.name
        return Answer(200, body.encode(), "text/plain")


class SilentChannel(RespondingChannel):
    """Has no other way out than its responses."""

    send: Any = None
    send_file: Any = None


@dataclass
class Platform:
    """Makes requests, and writes down what its user sees. ``gone``: it has cut the connection by then."""

    here: Desk
    shown: list[str] = field(default_factory=list)

    async def attempt(self, message: Inbound, *, gone: bool = False) -> str:
        """One request for ``message``: what it brought, ``-`` for no response at all."""
        served = await self.serve(message)
        if isinstance(served, NoAnswer):
            return "-"
        if isinstance(served, SentAnswer):
            served.written(not gone)
            if gone:
                return "gone"
            served = served.answer
        assert isinstance(served, Answer)
        text = served.body.decode()
        if served.content_type == "text/plain":
            self.shown.append(text)
        return text

    async def serve(self, message: Inbound) -> AnyAnswer:
        key = f"{message.message_id}"
        self.here.channel.items[key] = (message,)
        return await self.here.account.handle(request(key.encode(), clock=self.here.clock))

    async def held(self, count: int = 1) -> None:
        """Until so many requests are held."""
        run = self.here.account._run
        assert run is not None
        assert run.responses is not None
        responses = run.responses
        await until(lambda: len(responses._held) >= count)
        await settle()
