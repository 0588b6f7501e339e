"""The daemon's side of the console's socket as a fake that speaks its JSON, and a home to chat in."""

from __future__ import annotations

import json
import shutil
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from bridge.cli.chat_client import ConsoleClient
from bridge.paths import Home, write_private

SETTINGS = "[web]\nport = 0\n[channels.console.local]\n"


@contextmanager
def console_home(settings: str = SETTINGS) -> Iterator[Home]:
    """A home whose sockets' paths are short enough anywhere."""
    folder = Path(tempfile.mkdtemp(prefix="tb-", dir="/tmp"))
    try:
        home = Home(folder / "home")
        home.private_dir(home.state)
        write_private(home.config, settings.encode())
        yield home
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def part(cursor: int, text: str = "", reply_to: str = "m1", **changes: Any) -> dict[str, Any]:
    """A part of a reply as the daemon tells it: a whole reply, unless ``changes`` say otherwise."""
    ids = {"cursor": cursor, "id": f"p{cursor}", "reply": f"r{cursor}", "conversation": "main"}
    told = {"reply_to": reply_to, "part": 1, "parts": 1, "text": text, "notice": ""}
    return {**ids, **told, **changes}


def turn(
    version: int = 1, text: str = "", tool: str = "", progress: str = "", over: bool = False
) -> dict[str, Any]:
    return {"version": version, "text": text, "tool": tool, "progress": progress, "over": over}


class FakeConsole:
    """Serves one conversation at ``path``. What waits is ``waiting``; asking settles as the daemon does.

    ``refusals`` are answered to the next requests instead: a status, or None for a hang-up. ``outcome`` is
    what becomes of messages; ``answers_with`` is called with each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.waiting: list[dict[str, Any]] = []
        self.turns: dict[str, dict[str, Any]] = {}
        self.posted: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.refusals: list[int | None] = []
        self.outcome = "accepted"
        self.changed = threading.Condition()
        self.answers_with: Any = None
        self.closed = False

    def reply(self, *parts: dict[str, Any]) -> None:
        with self.changed:
            self.waiting += parts
            self.changed.notify_all()

    def shows(self, message_id: str, told: dict[str, Any]) -> None:
        with self.changed:
            self.turns[message_id] = told
            self.changed.notify_all()

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        self.posted.append(body)
        if body["type"] == "message":
            self.turns[body["id"]] = turn(0)
            if self.answers_with is not None:
                self.answers_with(body)
        else:
            self.shows(body["id"], turn(over=True))
        return {"id": body["id"], "outcome": self.outcome}

    def replies(self, query: dict[str, str]) -> dict[str, Any]:
        after = int(query["after"])
        with self.changed:
            self.waiting = [each for each in self.waiting if each["cursor"] > after]
            self._wait(float(query["wait"]), lambda: bool(self.waiting))
            return {"replies": list(self.waiting)}

    def live(self, query: dict[str, str]) -> dict[str, Any]:
        over, version = turn(0, over=True), int(query["version"])
        with self.changed:

            def news() -> bool:
                now = self.turns.get(query["message"], over)
                return bool(now["over"]) or now["version"] > version

            self._wait(float(query["wait"]), news)
            return self.turns.get(query["message"], over)

    def _wait(self, seconds: float, done: Any) -> None:
        self.changed.wait_for(lambda: self.closed or done(), min(seconds, 30))


@contextmanager
def fake_console(home: Home) -> Iterator[FakeConsole]:
    fake = FakeConsole(home.console_socket)
    with _Server(fake) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield fake
        finally:
            with fake.changed:
                fake.closed = True
                fake.changed.notify_all()
            server.shutdown()
            thread.join(5)
    fake.path.unlink(missing_ok=True)


def client_of(home: Home, conversation: str = "main", most_bytes: int | None = None) -> ConsoleClient:
    return ConsoleClient(home.console_socket, "local", conversation, "turnbridge run", most_bytes)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, fake: FakeConsole) -> None:
        self.fake = fake
        super().__init__(str(fake.path), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        return


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    request: socket.socket

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._refused():
            self._told(202, self.server.fake.post(body))

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query, last = dict(parse_qsl(url.query)), url.path.rpartition("/")[2]
        fake = self.server.fake
        fake.asked.append((last, query))
        if not self._refused():
            self._told(200, fake.replies(query) if last == "replies" else fake.live(query))

    def _refused(self) -> bool:
        refusals = self.server.fake.refusals
        if not refusals:
            return False
        status = refusals.pop(0)
        if status is None:
            self.close_connection = True
            self.request.shutdown(socket.SHUT_RDWR)
        else:
            self._told(status, {"error": "no \x1b[2J"})
        return True

    def _told(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: Any) -> None:
        return
