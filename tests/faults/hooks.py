"""A system that pushes messages and takes replies at its callback, by a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import Request
from bridge.channel.spec import ChannelSpec
from bridge.channel.testing.fakes.webhook import message_event, new_secret, signed_headers
from bridge.channel.testing.fakes.webhook_receiver import CallbackReceiver
from bridge.channel.testing.kit import KitMessage
from bridge.clock import Clock
from bridge.registry import channels


@dataclass(frozen=True)
class Told:
    """A reply as the system got it."""

    text: str


class HookSystem:
    """What a seat uses of a kit. ``base`` is where its server really is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._secret, callback_secret = new_secret(), new_secret()
        self._receiver = CallbackReceiver([callback_secret], clock)
        self.credentials = {"secrets": [self._secret], "callback_secrets": [callback_secret]}
        self.settings: dict[str, Any] = {}

    @property
    def base(self) -> str:
        return self._receiver.address

    @property
    def fake(self) -> Self:
        return self

    @property
    def spec(self) -> ChannelSpec:
        return channels().load("webhook")

    async def __aenter__(self) -> Self:
        await self._receiver.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._receiver.__aexit__(None, None, None)

    def person(self, n: int) -> str:
        return f"person-{n}"

    def chat(self, n: int) -> str:
        return f"chat-{n}"

    def push(self, message: KitMessage) -> Request:
        """Signed for this moment, as each repetition is."""
        data = {
            "conversation_id": message.chat,
            "message_id": message.message_id,
            "sender": {"id": message.sender},
            "is_direct": True,
        }
        body = message_event(message.text, **data)
        now = self._clock.now()
        headers = signed_headers(self._secret, message.message_id, int(now.timestamp()), body)
        return Request("POST", "", {}, CIMultiDictProxy(CIMultiDict(headers)), body, now)

    def sent(self) -> list[Told]:
        return [Told(kept.data["text"]) for kept in self._receiver.kept]
