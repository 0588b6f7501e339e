"""The webhook channel's kit: an account that calls back to a fake system on loopback."""

import base64
import json
import secrets
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Self

from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel.contract import FileKind, RemoteFile, Request
from bridge.channel.spec import ChannelSpec
from bridge.channel.testing.fakes.webhook import inline, message_event, new_secret, signed_headers
from bridge.channel.testing.fakes.webhook_receiver import (
    Break,
    CallbackReceiver,
    Kept,
    breaks,
    fails,
    throttles,
)
from bridge.channel.testing.kit import KitFile, KitMessage, KitSent, Trouble
from bridge.clock import SystemClock
from bridge.registry import channels

_REACTIONS: Final = {
    Trouble.REFUSE: fails(422),
    Trouble.THROTTLE: throttles("7"),
    Trouble.BREAK_BEFORE: breaks(Break.CLOSE),
    Trouble.DROP_AFTER: breaks(Break.CUT_HEADERS, keeps=True),
    Trouble.CREDENTIALS: fails(410),
}


class WebhookKit:
    """The form that calls back; files come by address, from the same fake system."""

    def __init__(self) -> None:
        self._secret, self._callback_secret = new_secret(), new_secret()
        self._file_token = secrets.token_hex(16)
        self._receiver = CallbackReceiver([self._callback_secret], planned="reply.created")
        self._receiver.file_token = self._file_token

    @property
    def spec(self) -> ChannelSpec:
        return channels().load("webhook")

    async def __aenter__(self) -> Self:
        await self._receiver.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._receiver.__aexit__(None, None, None)

    @property
    def settings(self) -> dict[str, Any]:
        host = self._receiver.host
        return {
            "callback_url": self._receiver.url,
            "progress": True,
            "file_hosts": [host],
            "private_hosts": [host],
        }

    @property
    def credentials(self) -> dict[str, Any]:
        return {
            "secrets": [self._secret],
            "callback_secrets": [self._callback_secret],
            "ask_token": secrets.token_hex(16),
            "file_token": self._file_token,
        }

    def person(self, n: int) -> str:
        return f"person-{n}"

    def chat(self, n: int, group: bool = False) -> str:
        return f"{'group' if group else 'chat'}-{n}"

    def sent(self) -> list[KitSent]:
        return [_sent(kept) for kept in self._receiver.kept if kept.event["type"] == "reply.created"]

    def trouble(self, *troubles: Trouble) -> None:
        self._receiver.plan(*(_REACTIONS[trouble] for trouble in troubles))

    def supports(self, trouble: Trouble) -> bool:
        return trouble in _REACTIONS  # any 2xx is a success here, whatever its body

    def push(self, message: KitMessage) -> Request:
        data: dict[str, Any] = {
            "conversation_id": message.chat,
            "message_id": message.message_id or "m1",
            "sender": {"id": message.sender},
            "is_direct": not message.group,
            "mentioned": message.mentions_bot,
            "attachments": [inline(each.name, each.mime, each.data) for each in message.files],
        }
        return self._request(message_event(message.text, **data), message.message_id)

    def forged(self, message: KitMessage) -> list[Request]:
        good = self.push(message)
        unsigned = CIMultiDictProxy(CIMultiDict({"Content-Type": "application/json"}))
        return [
            self._request(good.body, key=new_secret()),
            replace(good, body=good.body + b" "),
            replace(good, headers=unsigned),
            replace(good, received_at=good.received_at + timedelta(seconds=302)),
            replace(good, received_at=good.received_at - timedelta(seconds=302)),
            self._request(b"{"),
            self._request(b'{"type":"message.created","data":{}}'),
            self._request(good.body, content_type="text/plain"),
        ]

    def uninteresting(self) -> list[Request]:
        bot = {"sender": {"id": "robot", "is_bot": True}}
        return [
            self._request(b'{"type":"message.reacted","data":{}}'),
            self._request(message_event("beep", **bot)),
            self._request(message_event("not for you", is_direct=False, mentioned=False)),
        ]

    def remote(self, file: KitFile) -> RemoteFile:
        name = secrets.token_hex(8)
        self._receiver.files[name] = file.data
        key = {"url": f"{self._receiver.address}/files/{name}", "sha256": ""}
        return RemoteFile(json.dumps(key), FileKind.FILE, file.name, file.mime, len(file.data))

    def _request(
        self, body: bytes, webhook_id: str = "", key: str = "", content_type: str = "application/json"
    ) -> Request:
        now = SystemClock().now()
        webhook_id = webhook_id or f"msg_{secrets.token_hex(12)}"
        headers = signed_headers(key or self._secret, webhook_id, int(now.timestamp()), body)
        given = CIMultiDictProxy(CIMultiDict({**headers, "Content-Type": content_type}))
        return Request("POST", "", {}, given, body, now)


def _sent(kept: Kept) -> KitSent:
    data = kept.data
    files = [
        KitFile(each["name"], each["mime_type"], base64.b64decode(each["content_base64"]))
        for each in data["attachments"]
    ]
    return KitSent(
        client_id=kept.webhook_id,
        text=data["text"],
        file=files[0] if files else None,
        reply_to=data.get("in_reply_to", ""),
        to=data["conversation_id"],
    )


KIT = WebhookKit
