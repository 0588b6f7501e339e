"""The other side of a webhook account: it signs by the standard, and its replies come in order."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from bridge.cli import webhook_client
from bridge.cli.common import NotRunningError
from bridge.cli.webhook_client import INLINE_BYTES, File, WebhookClient, sign, too_large
from bridge.errors import BridgeError
from tests.daemons import free_port

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
PATH = "/channels/webhook/demo"
Answer = Callable[[str, str, dict[str, str], bytes], tuple[int, bytes]]


@contextmanager
def server(answer: Answer) -> Iterator[WebhookClient]:
    """A client of a fake daemon that answers each request by ``answer(method, path, headers, body)``."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length", 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            status, body = answer(self.command, self.path, headers, self.rfile.read(length))
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer  # noqa: N815 - the library's names

        def log_message(self, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield WebhookClient("127.0.0.1", http.server_port, PATH, SECRET, "token")
        finally:
            http.shutdown()
            thread.join()


def part(message_id: str, final: bool = True, **fields: Any) -> dict[str, Any]:
    return {"in_reply_to": message_id, "final": final, "text": "", "attachments": [], **fields}


def test_a_signature_is_one_by_the_standards_own_library() -> None:
    import time

    now = int(time.time())  # noqa: TID251 - the library has no other clock
    headers = sign(SECRET, "msg-1", now, b'{"a":1}')
    assert Webhook(SECRET).verify(b'{"a":1}', headers) == {"a": 1}


def test_a_message_is_signed_and_holds_its_files(tmp_path: Path) -> None:
    (tmp_path / "图.png").write_bytes(b"picture")
    seen: list[dict[str, Any]] = []

    def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        assert (method, path) == ("POST", PATH)
        seen.append(dict(Webhook(SECRET).verify(body, headers)))
        return 202, b"{}"

    with server(answer) as client:
        sent = client.send("you", "hi", [File.read(tmp_path / "图.png")])
    data = seen[0]["data"]
    assert (seen[0]["type"], data["message_id"], data["sender"]["id"]) == ("message.created", sent, "you")
    (attachment,) = data["attachments"]
    assert (attachment["name"], attachment["mime_type"], attachment["size"]) == ("图.png", "image/png", 7)
    assert base64.b64decode(attachment["content_base64"]) == b"picture"


def test_a_file_that_is_over_all_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_client, "FILE_BYTES", 1_048_576)
    path = tmp_path / "big.bin"
    path.write_bytes(b"x" * 1_048_576)
    assert File.read(path).mime == "application/octet-stream"
    path.write_bytes(b"x" * 1_048_577)
    with pytest.raises(BridgeError, match="over 1 MiB"):
        File.read(path)


def test_what_does_not_fit_into_a_message_is_known() -> None:
    whole, over = File("a", "x/y", b"x" * INLINE_BYTES), File("b", "x/y", b"x" * (INLINE_BYTES + 1))
    assert too_large([whole, over, whole]) == [over]
    assert too_large([whole, whole, File("c", "x/y", b"x")]) == [File("c", "x/y", b"x")]


def test_a_file_with_an_address_travels_by_it() -> None:
    attachment = File("a.txt", "text/plain", b"hello", "http://127.0.0.1:8472/x").attachment()
    assert attachment["url"] == "http://127.0.0.1:8472/x"
    assert "content_base64" not in attachment
    assert len(attachment["sha256"]) == 64


class Waiting:
    """What waits at an account that is asked, as the channel does it: ``after`` settles all up to it."""

    def __init__(self, *parts: dict[str, Any]) -> None:
        self.parts = list(parts)
        self.asked: list[str] = []

    def __call__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        assert headers["authorization"] == "Bearer token"
        self.asked.append(path.partition("?")[2])
        after = int(self.asked[-1].partition("=")[2].partition("&")[0])
        self.parts = [part for part in self.parts if part["cursor"] > after]
        cursor = self.parts[-1]["cursor"] if self.parts else after
        return 200, json.dumps({"replies": self.parts, "cursor": cursor}).encode()

    @property
    def cursors(self) -> list[int]:
        return [part["cursor"] for part in self.parts]


def test_replies_come_as_they_are_asked_for_and_are_settled_at_the_end() -> None:
    waiting = Waiting(
        {"cursor": 6, **part("m1", final=False, text="one")}, {"cursor": 7, **part("m1", text="two")}
    )
    with server(waiting) as client:
        assert [reply["text"] for reply in client.replies("m1", 20)] == ["one", "two"]
    assert waiting.cursors == []
    assert waiting.asked[-1] == "after=7&wait=0.000"


def test_what_waits_for_others_is_left_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_client, "PAUSE_SECONDS", 0.001)
    mine = {"cursor": 6, **part("m1", text="mine")}
    waiting = Waiting(mine, {"cursor": 8, **part("other")})
    with server(waiting) as client:
        assert [reply["text"] for reply in client.replies("m1", 20)] == ["mine"]
        assert waiting.cursors == [8]
        waiting.parts.append({"cursor": 9, **part("m2", text="more")})
        assert [reply["text"] for reply in client.replies("m2", 20)] == ["more"]
        assert waiting.cursors == [8, 9]  # asking past 9 would settle 8 too
        with pytest.raises(BridgeError, match="2 or more parts wait for others"):
            list(client.replies("m3", 0.01))
        assert [each["cursor"] for each in client.waiting()] == [8, 9]


def test_all_that_waits_can_be_taken_and_is_settled_then() -> None:
    waiting = Waiting({"cursor": 5, **part("a")}, {"cursor": 9, **part("b")})
    with server(waiting) as client:
        for each in client.all_replies():
            assert each["cursor"] in waiting.cursors  # not before it was taken
    assert waiting.cursors == []


def test_no_answer_in_time_is_an_error() -> None:
    with server(lambda *_: (200, b'{"replies": [], "cursor": 0}')) as client:
        with pytest.raises(BridgeError, match=r"no answer in 0\.05 seconds"):
            list(client.replies("m1", 0.05))


def test_a_file_is_inline_or_behind_an_address_near_to_where_it_was_asked_for() -> None:
    with server(lambda method, path, headers, body: (200, path.encode())) as client:
        assert client.content({"content_base64": base64.b64encode(b"x").decode()}) == b"x"
        assert client.content({"url": "files/abc?x=1"}) == f"{PATH}/files/abc?x=1".encode()
        assert client.content({"url": f"https://bot.example{PATH}/files/abc"}) == f"{PATH}/files/abc".encode()
        with pytest.raises(BridgeError, match=r"a\.png is not kept any more"):
            client.content({"name": "a.png", "unavailable": True})


def test_a_refusal_is_told_with_its_status() -> None:
    with server(lambda *_: (401, b'{"error":"unauthorized"}')) as client:
        with pytest.raises(BridgeError, match=r"status 401.*unauthorized"):
            client.send("you", "hi", [])


def test_a_connection_that_breaks_is_told() -> None:
    with server(lambda *_: (0, b"")) as client:
        with pytest.raises(BridgeError, match="hung up"):
            client.send("you", "hi", [])


def test_where_nobody_listens_it_is_said_how_to_start() -> None:
    client = WebhookClient("127.0.0.1", free_port(), PATH, SECRET, "token")
    with pytest.raises(NotRunningError, match="turnbridge run"):
        client.send("you", "hi", [])
