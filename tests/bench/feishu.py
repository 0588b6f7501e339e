"""Feishu's pushes as bytes on the wire, sealed and signed here without the adapter's own code."""

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from bridge.clock import SystemClock, unix_ms

APP = "cli_bench"
TOKEN = "verification-token-of-the-bench"
KEY = "encrypt-key-of-the-bench"
PATH = "/channels/feishu/main"
CHATS = 64


def event(number: str, chat: int) -> dict[str, Any]:
    """A person's message of now in a direct chat, with all the fields that the platform sends along."""
    now_ms = str(unix_ms(SystemClock().now()))
    return {
        "schema": "2.0",
        "header": {
            "event_id": f"ev_{number}",
            "token": TOKEN,
            "create_time": now_ms,
            "event_type": "im.message.receive_v1",
            "tenant_key": "tenant_of_the_bench",
            "app_id": APP,
        },
        "event": {
            "sender": {
                "sender_id": {"open_id": f"ou_{chat}", "union_id": f"on_{chat}", "user_id": f"u{chat}"},
                "sender_type": "user",
                "tenant_key": "tenant_of_the_bench",
            },
            "message": {
                "message_id": f"om_{number}",
                "create_time": now_ms,
                "update_time": now_ms,
                "chat_id": f"oc_{chat}",
                "chat_type": "p2p",
                "message_type": "text",
                "content": json.dumps({"text": f"Please look at ticket {number} and tell me what is next."}),
            },
        },
    }


def sealed(value: object) -> bytes:
    plain = json.dumps(value).encode()
    fill = 16 - len(plain) % 16
    iv = os.urandom(16)
    cipher = Cipher(algorithms.AES(hashlib.sha256(KEY.encode()).digest()), modes.CBC(iv)).encryptor()
    closed = cipher.update(plain + bytes([fill]) * fill) + cipher.finalize()
    return json.dumps({"encrypt": base64.b64encode(iv + closed).decode()}).encode()


def request(body: bytes, path: str = PATH) -> bytes:
    """The whole HTTP request, for a connection that is kept."""
    signature = hashlib.sha256(b"1700000000" + b"nonce" + KEY.encode() + body).hexdigest()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Go-http-client/1.1\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n"
        "X-Lark-Request-Timestamp: 1700000000\r\nX-Lark-Request-Nonce: nonce\r\n"
        f"X-Lark-Signature: {signature}\r\nAccept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body


def requests(count: int, prefix: str, path: str = PATH) -> Iterator[bytes]:
    """``count`` requests, each with a message id of its own, over all chats in turn."""
    for n in range(count):
        yield request(sealed(event(f"{prefix}_{n}", n % CHATS)), path)
