"""The other side of a webhook account, by the standard library alone: signs, sends, asks for replies."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from hmac import digest
from http.client import HTTPConnection, HTTPException, HTTPResponse
from mimetypes import guess_type
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import urljoin, urlsplit

from bridge.cli.common import NotRunningError
from bridge.errors import BridgeError

INLINE_BYTES = 262_144
POLL_SECONDS = 25.0
HTTP_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class File:
    name: str
    mime: str
    data: bytes

    @classmethod
    def read(cls, path: Path) -> File:
        """The file at ``path``.

        Raises:
            BridgeError: it is too large to travel inside a message.
        """
        with path.open("rb") as file:
            data = file.read(INLINE_BYTES + 1)
        if len(data) > INLINE_BYTES:
            raise BridgeError(
                f"{path} is over {INLINE_BYTES // 1024} KiB: a webhook message holds no more; "
                "larger files go by an https address of yours, see docs/webhook.md"
            )
        return cls(path.name, guess_type(path.name)[0] or "application/octet-stream", data)

    def attachment(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mime_type": self.mime,
            "size": len(self.data),
            "content_base64": b64encode(self.data).decode(),
            "sha256": sha256(self.data).hexdigest(),
        }


def sign(secret: str, webhook_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of Standard Webhooks 1.0.0, under a ``whsec_`` secret."""
    key = b64decode(secret.removeprefix("whsec_"))
    signature = digest(key, f"{webhook_id}.{timestamp}.".encode() + body, "sha256")
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": "v1," + b64encode(signature).decode(),
    }


class WebhookClient:
    def __init__(self, host: str, port: int, path: str, secret: str, token: str) -> None:
        self._host, self._port, self._path = host, port, path
        self._secret, self._token = secret, token
        self._cursor = 0

    def skip_old(self) -> None:
        """Leave out what waits from before: it was for somebody else."""
        while self._ask(0.0):
            pass

    def send(self, sender: str, text: str, files: list[File]) -> str:
        """Send a message and return its id.

        Raises:
            BridgeError: it was not accepted.
        """
        message_id = f"try-{token_hex(8)}"
        data = {
            "conversation_id": "try",
            "message_id": message_id,
            "sender": {"id": sender},
            "text": text,
            "attachments": [file.attachment() for file in files],
            "is_direct": True,
        }
        now = int(time.time())  # noqa: TID251 - a command, which has no other clock
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        body = json.dumps({"type": "message.created", "timestamp": stamp, "data": data}).encode()
        headers = {"Content-Type": "application/json", **sign(self._secret, message_id, now, body)}
        self._request("POST", self._path, body, headers)
        return message_id

    def replies(self, message_id: str, wait_seconds: float) -> Iterator[dict[str, Any]]:
        """The parts of the reply to ``message_id`` as they come, up to the last.

        Raises:
            BridgeError: it did not end in ``wait_seconds``.
        """
        until = time.monotonic() + wait_seconds
        while (left := until - time.monotonic()) > 0:
            for part in self._ask(min(left, POLL_SECONDS)):
                if part.get("in_reply_to") != message_id:
                    continue
                yield part
                if part["final"]:
                    self._ask(0.0)  # settles what was received
                    return
        raise BridgeError(f"no answer in {wait_seconds:g} seconds: look at turnbridge status and the log")

    def content(self, attachment: dict[str, Any]) -> bytes:
        """A reply's file: inside the message, or behind an address of the daemon's.

        Raises:
            BridgeError: it is not kept any more.
        """
        if "content_base64" in attachment:
            return b64decode(attachment["content_base64"])
        if "url" not in attachment:
            raise BridgeError(f"{attachment['name']} is not kept any more")
        url = urlsplit(urljoin(f"{self._path}/replies", attachment["url"]))
        return self._request("GET", url.path + (f"?{url.query}" if url.query else ""))

    def _ask(self, wait_seconds: float) -> list[dict[str, Any]]:
        query = f"after={self._cursor}&wait={wait_seconds:.3f}"
        answer = json.loads(self._request("GET", f"{self._path}/replies?{query}"))
        self._cursor = answer["cursor"]
        parts: list[dict[str, Any]] = answer["replies"]
        return parts

    def _request(
        self, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> bytes:
        connection = HTTPConnection(self._host, self._port, timeout=HTTP_SECONDS)
        try:
            own = headers or {"Authorization": f"Bearer {self._token}"}
            connection.request(method, target, body, own)
            response = connection.getresponse()
            return _body(response)
        except ConnectionRefusedError as error:
            where = f"{self._host}:{self._port}"
            raise NotRunningError(f"nobody listens on {where}: start it with: turnbridge run") from error
        except (OSError, HTTPException) as error:
            raise BridgeError("the daemon hung up: look at its log") from error
        finally:
            connection.close()


def _body(response: HTTPResponse) -> bytes:
    body = response.read()
    if response.status >= 300:
        text = body.decode(errors="replace")[:200]
        raise BridgeError(f"the daemon answered with status {response.status}: {text}")
    return body
