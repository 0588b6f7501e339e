"""What these tests share: requests as the platform makes them, and the adapter's settings."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import Answer, Identity, Inbound, Item, Reading, Request
from channels.feishu.events import Proof, read_request

TESTS = Path(__file__).parents[2]
GOLDEN = TESTS / "golden" / "feishu"
VECTORS: dict[str, Any] = json.loads((TESTS / "vectors" / "feishu_crypto.json").read_text())
BOT = Identity(bot_id="ou_bot", name="Bot")
TOKEN_ONLY = Proof("cli_app", "", "verify-token-1")


def request(body: bytes, headers: Mapping[str, str] | None = None, **changes: Any) -> Request:
    fields: dict[str, Any] = {
        "method": "POST",
        "path": "",
        "query": {},
        "headers": CIMultiDictProxy(CIMultiDict(headers or {})),
        "body": body,
        "received_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return Request(**(fields | changes))


def signed(body: bytes, key: str) -> dict[str, str]:
    """The headers of an event; computed here without the adapter's own code."""
    digest = hashlib.sha256(b"1700000000" + b"nonce" + key.encode() + body).hexdigest()
    return {
        "X-Lark-Request-Timestamp": "1700000000",
        "X-Lark-Request-Nonce": "nonce",
        "X-Lark-Signature": digest,
    }


def message_event(message: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A message in a direct chat, with ``message``'s fields and the envelope's ``changes``."""
    fields: dict[str, Any] = {
        "message_id": "om_1",
        "chat_id": "oc_1",
        "chat_type": "p2p",
        "message_type": "text",
        "content": json.dumps({"text": "hello"}),
        "create_time": "1700000000123",
    }
    sender = changes.pop("sender", {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"})
    header = {
        "event_id": "e1",
        "event_type": "im.message.receive_v1",
        "token": "verify-token-1",
        "app_id": "cli_app",
    }
    event = {"sender": sender, "message": fields | dict(message or {})}
    return {"schema": "2.0", "header": header | changes, "event": event}


def bot_mention(key: str = "@_user_1") -> dict[str, Any]:
    return {"key": key, "id": {"open_id": "ou_bot"}, "name": "Bot"}


def read(value: Any, identity: Identity = BOT, proof: Proof = TOKEN_ONLY) -> Reading | Answer:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_request(request(body), identity, proof)


def item(value: Any, identity: Identity = BOT) -> Item:
    reading = read(value, identity)
    assert isinstance(reading, Reading), reading
    (found,) = reading.items
    return found


def inbound(message: Mapping[str, Any] | None = None, **changes: Any) -> Inbound:
    found = item(message_event(message, **changes))
    assert isinstance(found, Inbound), found
    return found
