#!/usr/bin/env python3
"""A client of a webhook account in one file, by the standard library alone: copy it and make it yours.

    webhook_client.py send "What is in this picture?" --file sunset.png
    webhook_client.py receive --port 9000

``send`` signs a message, sends it until it is accepted, and asks for the reply with long polls: for an
account without a ``callback_url``. ``receive`` is the other way: a server for the account's ``callback_url``
that verifies each event, knows repeats, and prints what it gets as lines of JSON.

The secrets are those of the account, read from its own file or from a copy of it (``--credentials``).
"""

import argparse
import base64
import hashlib
import hmac
import json
import mimetypes
import secrets
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

INLINE_BYTES = 262_144  # a larger file travels by an address that the account may fetch
POLL_SECONDS = 25  # the longest that one question is held
TOLERANCE_SECONDS = 300  # how far off a timestamp may be
RETRY_SECONDS = (1, 2, 5, 10, 30, 60)  # between tries; a real sender goes on for days
COME_AGAIN = (408, 425, 429, 500, 502, 503, 504)
KEPT_IDS = 10_000

Json = dict[str, Any]


class RefusedError(Exception):
    """The account will not take it however often it is tried."""


# --- signing, as Standard Webhooks 1.0.0 has it ----------------------------------------------------


def sign(secret: str, webhook_id: str, timestamp: str, body: bytes) -> str:
    """The signature of these very bytes. The key is what the secret's base64 decodes to."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{webhook_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(mac).decode()


def verify(accepted: Sequence[str], headers: Mapping[str, str], body: bytes) -> bool:
    """Whether one of the secrets signed it within the last minutes. Only then look into ``body``."""
    webhook_id, timestamp = headers.get("webhook-id") or "", headers.get("webhook-timestamp") or ""
    if not webhook_id or not timestamp.isascii() or not timestamp.isdigit():
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    shown = (headers.get("webhook-signature") or "").split(" ")
    good = [sign(secret, webhook_id, timestamp, body) for secret in accepted]
    return any(hmac.compare_digest(one.encode(), two.encode()) for one in shown for two in good)


# --- sending, and asking for the reply -------------------------------------------------------------


class Client:
    """One account. ``url`` is its route, such as ``http://127.0.0.1:8470/channels/webhook/demo``."""

    def __init__(self, url: str, secret: str, ask_token: str) -> None:
        self._url, self._secret, self._token = url.rstrip("/"), secret, ask_token
        self._cursor = 0

    def send(self, text: str, files: Sequence[Path], conversation: str, sender: str) -> str:
        """Send a message and return its id once it is accepted: then it is answered, or its failure reported.

        Raises:
            RefusedError: it is not accepted, or nobody answers.
        """
        message_id = f"msg_{secrets.token_hex(12)}"
        data = {
            "conversation_id": conversation,
            "message_id": message_id,
            "sender": {"id": sender},
            "text": text,
            "attachments": [attachment(path) for path in files],
        }
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {"type": "message.created", "timestamp": now, "data": data}
        self._deliver(message_id, json.dumps(event).encode())
        return message_id

    def _deliver(self, webhook_id: str, body: bytes) -> None:
        """Every try has the same id and the same bytes, and a time and a signature of its own."""
        for wait in (*RETRY_SECONDS, 0):
            now = str(int(time.time()))
            headers = {
                "Content-Type": "application/json",
                "webhook-id": webhook_id,
                "webhook-timestamp": now,
                "webhook-signature": sign(self._secret, webhook_id, now, body),
            }
            status, asked, answer = request("POST", self._url, headers, body)
            if 200 <= status < 300:
                return
            if status and status not in COME_AGAIN:
                raise RefusedError(f"status {status}: {answer.decode(errors='replace')[:200]}")
            time.sleep(max(wait, asked))
        raise RefusedError("nobody answers: is the daemon running?")

    def reply(self, message_id: str, seconds: float) -> Iterator[Json]:
        """The parts of the reply as they come, each settled when the caller is back for the next.

        Asking past a part says that it has arrived, and that of every part before it.

        Raises:
            RefusedError: it is not all there in ``seconds``.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for part in self._ask(min(left, POLL_SECONDS)):
                if part.get("in_reply_to") == message_id:
                    yield part
                self._cursor = part["cursor"]
                if part.get("in_reply_to") == message_id and part["final"]:
                    self._ask(0)
                    return
        raise RefusedError(f"no reply within {seconds:g} seconds")

    def _ask(self, wait: float) -> list[Json]:
        url = f"{self._url}/replies?after={self._cursor}&wait={wait:.1f}"
        status, _, answer = request("GET", url, {"Authorization": f"Bearer {self._token}"})
        if status in (404, 405):
            raise RefusedError("no reply can be asked for: an account with a callback_url posts them there")
        if status != 200:
            raise RefusedError(f"asking for replies ended with status {status}")
        parts: list[Json] = json.loads(answer)["replies"]
        return parts

    def content(self, file: Json) -> bytes:
        """A file of a reply: inside it, or behind an address that may be relative to where it was asked for.

        Raises:
            RefusedError: it is not kept any more, or not what it was said to be.
        """
        if "content_base64" in file:
            data = base64.b64decode(file["content_base64"])
        else:
            status, _, data = request("GET", urljoin(f"{self._url}/replies", file.get("url", "")), {})
            if status != 200:
                raise RefusedError(f"{file['name']} is not kept any more")
        if hashlib.sha256(data).hexdigest() != file.get("sha256"):
            raise RefusedError(f"{file['name']} is not what it was said to be")
        return data


def attachment(path: Path) -> Json:
    """The file inside the message.

    Raises:
        RefusedError: it is too large for that.
    """
    data = path.read_bytes()
    if len(data) > INLINE_BYTES:
        raise RefusedError(f"{path}: over {INLINE_BYTES // 1024} KiB: send an address in `url` instead")
    return {
        "name": path.name,
        "mime_type": mimetypes.guess_type(path.name)[0] or "application/octet-stream",
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "content_base64": base64.b64encode(data).decode(),
    }


def request(method: str, url: str, headers: Json, body: bytes | None = None) -> tuple[int, float, bytes]:
    """The answer's status (0 for none), the wait in seconds that it asks for, and its body."""
    asked = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=POLL_SECONDS + 15) as answer:
            return answer.status, 0.0, answer.read()
    except urllib.error.HTTPError as error:
        wait = error.headers.get("Retry-After", "")
        return error.code, float(wait) if wait.isdigit() else 0.0, error.read()
    except OSError:
        return 0, 0.0, b""


# --- taking replies at a callback_url --------------------------------------------------------------


class Receiver(ThreadingHTTPServer):
    """Prints each event once. It wants a proxy with TLS before it, or to be one of ``private_hosts``."""

    daemon_threads = True

    def __init__(self, host: str, port: int, callback_secrets: Sequence[str]) -> None:
        super().__init__((host, port), Handler)
        self.callback_secrets = callback_secrets
        self._seen: dict[str, None] = {}  # in memory: a real receiver keeps the ids where it keeps the events

    def is_new(self, webhook_id: str) -> bool:
        """Events are repeated under their id when an answer was lost: do each once, and say 2xx to all."""
        if webhook_id in self._seen:
            return False
        self._seen[webhook_id] = None
        if len(self._seen) > KEPT_IDS:
            del self._seen[next(iter(self._seen))]
        return True


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """401 for what is not rightly signed, whatever the reason; 204 once the event is taken."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not verify(self.server.callback_secrets, headers, body):
            self._answer(401)
            return
        if self.server.is_new(headers["webhook-id"]):
            print(json.dumps(json.loads(body), ensure_ascii=False), flush=True)
        self._answer(204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what is printed are events."""


# --- the command line ------------------------------------------------------------------------------


def secret_texts(entries: Sequence[str | Json]) -> list[str]:
    """The current secret first. One that is being replaced stands in an object, with its end."""
    return [entry if isinstance(entry, str) else entry["secret"] for entry in entries]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Talk to a webhook account of Turnbridge.")
    usual = Path(".run/credentials/webhook/demo.json")
    parser.add_argument("--credentials", type=Path, default=usual, help="the account's secrets")
    commands = parser.add_subparsers(dest="command", required=True)
    send = commands.add_parser("send", help="send a message, wait for its reply and print it")
    send.add_argument("text")
    send.add_argument(
        "--url", default="http://127.0.0.1:8470/channels/webhook/demo", help="the account's route"
    )
    send.add_argument("--file", type=Path, action="append", default=[], help="may be repeated")
    send.add_argument(
        "--conversation", default="example", help="one conversation is one session of the agent"
    )
    send.add_argument("--sender", default="you", help="whoever writes, by a stable id")
    send.add_argument("--wait", type=float, default=120, help="seconds for the whole reply")
    send.add_argument("--save", type=Path, default=Path(), help="the folder for the reply's files")
    receive = commands.add_parser("receive", help="print what the account posts to its callback_url")
    receive.add_argument("--host", default="127.0.0.1")
    receive.add_argument("--port", type=int, default=9000)
    for command in (send, receive):  # whether it stands before or after them
        command.add_argument(
            "--credentials", type=Path, default=argparse.SUPPRESS, help="the account's secrets"
        )
    return parser.parse_args(arguments)


def talk(args: argparse.Namespace, account: Json) -> None:
    client = Client(args.url, secret_texts(account["secrets"])[0], account.get("ask_token", ""))
    sent = client.send(args.text, args.file, args.conversation, args.sender)
    for part in client.reply(sent, args.wait):
        if part["text"]:
            print(part["text"])
        for file in part["attachments"]:
            path = saved(args.save, Path(file["name"]).name, client.content(file))
            print(f"[saved as {path}, {file['size']} bytes]")


def saved(folder: Path, name: str, data: bytes) -> Path:
    """Where the file is now. One that is there is never overwritten: the new one gets a number."""
    stem, ending, count = Path(name).stem, Path(name).suffix, 1
    path = folder.resolve() / name
    while True:
        try:
            with path.open("xb") as new:
                new.write(data)
        except FileExistsError:
            count += 1
            path = path.with_name(f"{stem}-{count}{ending}")
        else:
            return path


def main(arguments: Sequence[str]) -> int:
    args = parse(arguments)
    try:
        account: Json = json.loads(args.credentials.read_text(encoding="utf-8"))
        if args.command == "send":
            talk(args, account)
        else:
            with Receiver(args.host, args.port, secret_texts(account["callback_secrets"])) as server:
                print(f"listening on http://{args.host}:{server.server_port}", file=sys.stderr, flush=True)
                server.serve_forever()
    except (RefusedError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
