"""What the tests of this channel share: an account's secrets, and requests that are rightly signed."""

import base64
import json
from datetime import datetime
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import Request
from bridge.channel.testing.clock import START
from channels.webhook.settings import WebhookCredentials, WebhookSettings
from channels.webhook.signature import sign


def secret(seed: int) -> str:
    return "whsec_" + base64.b64encode(bytes([seed]) * 32).decode()


INBOUND, CALLBACK, OTHER = secret(1), secret(2), secret(3)
ASK_TOKEN = "ask-token-of-the-tests"
FILE_TOKEN = "file-token-of-the-tests"


def settings(**fields: Any) -> WebhookSettings:
    return WebhookSettings.model_validate(fields)


def credentials(**fields: Any) -> WebhookCredentials:
    return WebhookCredentials.model_validate(
        {
            "secrets": [INBOUND],
            "callback_secrets": [CALLBACK],
            "ask_token": ASK_TOKEN,
            "file_token": FILE_TOKEN,
            **fields,
        }
    )


def message(**fields: Any) -> dict[str, Any]:
    """The data of a message, with ``fields`` changed, or left out where they are ``...``."""
    data = {"conversation_id": "c1", "message_id": "m1", "sender": {"id": "u1"}, "text": "hello", **fields}
    return {key: value for key, value in data.items() if value is not ...}


def event(kind: str = "message.created", **fields: Any) -> bytes:
    return json.dumps({"type": kind, "timestamp": "2026-01-02T03:04:00Z", "data": message(**fields)}).encode()


def request(
    body: bytes,
    *,
    webhook_id: str = "msg_1",
    key: str = INBOUND,
    method: str = "POST",
    path: str = "",
    at: datetime = START,
    headers: dict[str, str] | None = None,
) -> Request:
    signed = sign(key, webhook_id, int(at.timestamp()), body)
    fields = {"Content-Type": "application/json", **signed, **(headers or {})}
    return Request(method, path, {}, CIMultiDictProxy(CIMultiDict(fields)), body, at)


def bare(method: str, path: str, query: dict[str, str] | None = None, **headers: str) -> Request:
    """A request without a signature."""
    return Request(method, path, query or {}, CIMultiDictProxy(CIMultiDict(headers)), b"", START)
