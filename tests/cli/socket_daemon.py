"""A fake of the daemon's socket: it notes what it is asked, and answers as told."""

import json
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.paths import Home

MAIN = "import sys; from bridge.cli.main import main; sys.exit(main())"  # as the installed program does
STATUS: dict[str, Any] = {"version": "9.9.9", "pid": 4711, "components": []}


def status(*components: dict[str, Any]) -> dict[str, Any]:
    return {"type": "daemon.status", "request_id": "2", "status": {**STATUS, "components": list(components)}}


def refusal(text: str, code: str = "component_error") -> dict[str, Any]:
    return {"type": "error", "request_id": "2", "code": code, "message": text, "fatal": False}


@dataclass
class SocketDaemon:
    home: Home
    answers: list[Any] = field(default_factory=lambda: [status()])
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def command(self) -> dict[str, Any]:
        """What was asked last."""
        command: dict[str, Any] = self.asked[-1]["command"]
        return command


@contextmanager
def short_home() -> Iterator[Home]:
    folder = Path(tempfile.mkdtemp(prefix="tb-", dir="/tmp"))
    try:
        home = Home(folder)
        home.private_dir(home.state)
        yield home
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def socket_daemon(*answers: Any, each: bool = False) -> Iterator[SocketDaemon]:
    """Serve one client. An answer is an event, or raw bytes; after the last one the connection ends.

    With ``each``, every answer has a client of its own; when there are no more, nobody listens.
    """
    with short_home() as home, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.socket))
        server.listen(1)
        daemon = SocketDaemon(home, list(answers or (status(),)))
        thread = threading.Thread(target=_serve, args=(server, daemon, each), daemon=True)
        thread.start()
        yield daemon
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # wakes a thread that nobody connected to
        thread.join(5)


def _serve(server: socket.socket, daemon: SocketDaemon, each: bool) -> None:
    conversations = [[one] for one in daemon.answers] if each else [daemon.answers]
    for number, answers in enumerate(conversations, 1):
        try:
            client, _ = server.accept()
        except OSError:
            return
        if each and number == len(conversations):
            server.close()  # before the answer: whoever comes after it finds nobody
        _answer(client, daemon, answers)


def _answer(client: socket.socket, daemon: SocketDaemon, answers: list[Any]) -> None:
    with client, client.makefile("rb") as lines:
        daemon.asked.append(json.loads(lines.readline()))
        client.sendall(b'{"type":"initialized","request_id":"1","protocol_version":3}\n')
        daemon.asked.append(json.loads(lines.readline()))
        for answer in answers:
            client.sendall(answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n")
