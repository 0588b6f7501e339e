"""Serves a few files on this machine while a message is answered: too large to travel inside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.cli.webhook_client import File

HOST = "127.0.0.1"
CHUNK_BYTES = 65_536


@contextmanager
def served(files: Sequence[File], port: int) -> Iterator[list[File]]:
    """``files`` with an address each, that nobody can guess and that is served while the block runs.

    Raises:
        BridgeError: the port is taken.
    """
    paths = {f"/{token_urlsafe(24)}": file for file in files}
    try:
        http = ThreadingHTTPServer((HOST, port), _handler(paths))
    except OSError as error:
        raise BridgeError(
            f"port {port}, by which larger files are sent, is taken: try again later"
        ) from error
    with http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            base = f"http://{HOST}:{http.server_port}"
            yield [replace(file, url=base + path) for path, file in paths.items()]
        finally:
            http.shutdown()
            thread.join()


def _handler(paths: dict[str, File]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            file = paths.get(self.path)
            if file is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("content-type", file.mime)
            self.send_header("content-length", str(len(file.data)))
            self.end_headers()
            for at in range(0, len(file.data), CHUNK_BYTES):
                self.wfile.write(file.data[at : at + CHUNK_BYTES])

        def log_message(self, *args: object) -> None:
            return

    return Handler
