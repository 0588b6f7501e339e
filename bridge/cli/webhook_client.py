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

INLINE_BYTES = 262_144  # a larger file travels by an address
MESSAGE_BYTES = 524_288  # of files inside one message, which is at most 1 MiB with them in base64
FILE_BYTES = 268_435_456  # read here; what an account takes in is its own matter
POLL_SECONDS = 25.0
PAUSE_SECONDS = 0.2  # between asking, while replies of others wait: then each asking is answered at once
HTTP_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class File:
    """``url`` is where the account may fetch it; "": it travels inside the message."""

    name: str
    mime: str
    data: bytes
    url: str = ""

    @classmethod
    def read(cls, path: Path) -> File:
        """The file at ``path``.

        Raises:
            BridgeError: it is over 256 MiB.
        """
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise BridgeError(f"{path} is over {FILE_BYTES // 1_048_576} MiB: choose a smaller one")
        return cls(path.name, guess_type(path.name)[0] or "application/octet-stream", data)

    def attachment(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mime_type": self.mime,
            "size": len(self.data),
            **({"url": self.url} if self.url else {"content_base64": b64encode(self.data).decode()}),
            "sha256": sha256(self.data).hexdigest(),
        }


def too_large(files: list[File]) -> list[File]:
    """Those that do not fit into one message."""
    room, outside = MESSAGE_BYTES, []
    for file in files:
        if len(file.data) > min(INLINE_BYTES, room):
            outside.append(file)
        else:
            room -= len(file.data)
    return outside


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
    """Asks for replies, and settles those alone that were taken: what waits for others is left waiting.

    Asking settles all up to a cursor, so a reply behind somebody else's stays waiting, too.
    """

    def __init__(
        self, host: str, port: int, path: str, secret: str, token: str, *, start: str = "turnbridge run"
    ) -> None:
        """``start`` is the command that starts the daemon."""
        self._host, self._port, self._path, self._start = host, port, path, start
        self._secret, self._token = secret, token
        self.conversation = "try"
        self._cursor = 0
        self._taken: set[int] = set()

    def waiting(self) -> list[dict[str, Any]]:
        """The oldest parts that wait, whoever they are for; it settles none."""
        return self._ask(0.0)

    def all_replies(self) -> Iterator[dict[str, Any]]:
        """Every part that waits, whoever it is for. Those that were taken are settled."""
        while page := self._ask(0.0):
            for part in page:
                yield part
                self._cursor = part["cursor"]

    def send(self, sender: str, text: str, files: list[File]) -> str:
        """Send a message and return its id.

        Raises:
            BridgeError: it was not accepted.
        """
        message_id = f"try-{token_hex(8)}"
        data = {
            "conversation_id": self.conversation,
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
        """The parts of the reply to ``message_id`` as they come, up to the last, or a question.

        What else comes in its conversation that answers no other message, such as a question, is given too.

        Raises:
            BridgeError: it did not end in ``wait_seconds``.
        """
        until = time.monotonic() + wait_seconds
        page: list[dict[str, Any]] = []
        while (left := until - time.monotonic()) > 0:
            page = self._ask(min(left, POLL_SECONDS))
            own = [part for part in page if self._is_new(part) and self._is_for(part, message_id)]
            for part in own:
                yield part
                self._taken.add(part["cursor"])
            self._advance(page)
            if any(_ends(part, message_id) for part in own):
                self._ask(0.0)  # settles what was received
                return
            if page and not own:
                time.sleep(PAUSE_SECONDS)
        others = f", and {len(page)} or more parts wait for others: show them with --waiting" if page else ""
        raise BridgeError(
            f"no answer in {wait_seconds:g} seconds: look at turnbridge status and the log{others}"
        )

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
        parts: list[dict[str, Any]] = answer["replies"]
        return parts

    def _is_for(self, part: dict[str, Any], message_id: str) -> bool:
        answered = part.get("in_reply_to")
        return answered == message_id or (not answered and part.get("conversation_id") == self.conversation)

    def _is_new(self, part: dict[str, Any]) -> bool:
        return part["cursor"] not in self._taken

    def _advance(self, page: list[dict[str, Any]]) -> None:
        """Settle, with the next asking, what was taken and has nothing of others before it."""
        for part in page:
            if self._is_new(part):
                return
            self._cursor = part["cursor"]

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
            raise NotRunningError(f"nobody listens on {where}: start it with: {self._start}") from error
        except (OSError, HTTPException) as error:
            raise BridgeError("the daemon hung up: look at its log") from error
        finally:
            connection.close()


def _ends(part: dict[str, Any], message_id: str) -> bool:
    is_question = part.get("notice") == "approval"
    return bool(part["final"]) and (is_question or part.get("in_reply_to") == message_id)


def _body(response: HTTPResponse) -> bytes:
    body = response.read()
    if response.status >= 300:
        text = body.decode(errors="replace")[:200]
        raise BridgeError(f"the daemon answered with status {response.status}: {text}")
    return body
