"""What a running call shows: lines, joined and paced, for display alone."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from bridge.clock import Clock
from bridge.protocol.limits import PROGRESS_LINE_BYTES, PROGRESS_TEXT_BYTES

PACE_SECONDS = 0.5
KEPT_LINES = PROGRESS_TEXT_BYTES + 2  # not even empty ones all fit, so that the loss of others shows

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # and what UTF-8 cannot hold


class Progress:
    """Collects a call's lines; ``run`` sends them, at most once in half a second."""

    def __init__(self, clock: Clock, send: Callable[[str], Awaitable[None]]) -> None:
        self._clock, self._send = clock, send
        self._lines: list[str] = []
        self._more = asyncio.Event()

    async def line(self, text: str) -> None:
        """Take a line without waiting for the client."""
        self._lines.append(one_line(text))
        del self._lines[:-KEPT_LINES]
        self._more.set()

    async def run(self) -> None:
        """Until cancelled; what is left then is not shown."""
        while True:
            await self._more.wait()
            self._more.clear()
            lines, self._lines = self._lines, []
            await self._send(join(lines))
            await self._clock.sleep(PACE_SECONDS)


def clean(text: str) -> str:
    """``text`` with spaces for its control characters and line ends."""
    return _CONTROL.sub(" ", text)


def one_line(text: str) -> str:
    """``text`` without control characters, in at most 200 bytes, ``…`` at its end when cut."""
    return cut(clean(text[: 2 * PROGRESS_LINE_BYTES]), PROGRESS_LINE_BYTES)


def join(lines: list[str]) -> str:
    """The newest ``lines`` that fit 512 bytes, behind a line ``…`` when some do not."""
    if _size(lines) <= PROGRESS_TEXT_BYTES:
        return "\n".join(lines)
    first = len(lines)
    while _size(["…", *lines[first - 1 :]]) <= PROGRESS_TEXT_BYTES:  # not all fit, so it ends
        first -= 1
    return "\n".join(["…", *lines[first:]])


def _size(lines: list[str]) -> int:
    return len("\n".join(lines).encode())


def cut(text: str, most_bytes: int) -> str:
    """``text`` in at most ``most_bytes`` bytes of UTF-8, cut between characters, with ``…`` when cut."""
    data = text.encode()
    if len(data) <= most_bytes:
        return text
    return data[: most_bytes - len("…".encode())].decode(errors="ignore") + "…"
