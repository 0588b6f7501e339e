"""The load, in a process of its own: ``python -m tests.bench.load`` takes orders as lines of JSON on stdin.

An order is ``{"port", "path", "connections", "requests", "prefix"}``; the requests are made before the clock
starts. Each connection is kept and sends its next request when the answer to the last one is whole. The
answer is a line of JSON with the seconds that all took, and how many were answered 200.
"""

import asyncio
import json
import sys
import time
from typing import Any, cast

import uvloop

from tests.bench import feishu


class Sender(asyncio.Protocol):
    """One connection. It takes the next request from ``rest``, which all connections share."""

    def __init__(self, rest: list[bytes], done: "Done") -> None:
        self._rest, self._done = rest, done
        self._transport: asyncio.Transport | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def next(self) -> None:
        assert self._transport is not None
        if self._rest:
            self._transport.write(self._rest.pop())
        else:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end and len(body) >= _length(head):
            self._done.one(self._received.startswith(b"HTTP/1.1 200"))
            self._received = b""
            self.next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._done.gone()


class Done:
    """Counts answers; ``all`` is set when every connection has ended."""

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self.ok = self.other = 0
        self.last = 0.0
        self.all = asyncio.Event()

    def one(self, ok: bool) -> None:
        self.ok += ok
        self.other += not ok
        self.last = time.perf_counter()

    def gone(self) -> None:
        self._connections -= 1
        if not self._connections:
            self.all.set()


def _length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"content-length:")
    return int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


async def send(port: int, path: str, connections: int, count: int, prefix: str) -> dict[str, Any]:
    rest = list(feishu.requests(count, prefix, path))
    rest.reverse()
    done = Done(connections)
    loop = asyncio.get_running_loop()
    senders = []
    for _ in range(connections):
        _, sender = await loop.create_connection(lambda: Sender(rest, done), "127.0.0.1", port)
        senders.append(sender)
    begin = time.perf_counter()
    for sender in senders:
        sender.next()
    await done.all.wait()
    return {"seconds": done.last - begin, "ok": done.ok, "other": done.other}


async def main() -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        fields = (order[name] for name in ("port", "path", "connections", "requests", "prefix"))
        answer = await send(*fields)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
