"""JSON-RPC messages over a program's stdin and stdout, whatever it writes there. The SDK's Transport."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any

from bridge.logs import get_logger
from bridge.protocol.frames import LineDecoder, TooLong
from bridge.tools.processes import Process

log = get_logger(__name__)

FRAME_BYTES = 8 * 1_048_576
READ_BYTES = 65_536
MOST_STRAY_LINES = 1000
"""Lines that are no message, as npm's programs print some; more of them are another protocol."""


class Frames:
    """``ended`` is called once nothing more is read; ``problem`` then says why, "" at the program's end."""

    def __init__(self, process: Process, name: str, ended: Callable[[], None]) -> None:
        self.problem = ""
        self._process, self._name, self._ended = process, name, ended
        self._decoder = LineDecoder(FRAME_BYTES)
        self._lines: deque[bytes | TooLong] = deque()
        self._stray = 0
        self._writing = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Raises ConnectionError: the program is gone."""
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        async with self._writing:
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next sound message; None at the end."""
        while (line := await self._line()) is not None:
            message = read(line)
            if message is not None:
                await asyncio.sleep(0)  # a flood of messages lets others go on
                return message
            self._strayed(line)
        self._ended()
        return None

    async def _line(self) -> bytes | None:
        while not self._lines and not self.problem:
            data = await self._process.stdout.read(READ_BYTES)
            if not data:
                return None
            self._lines += self._decoder.feed(data)
        if self.problem:
            return None
        line = self._lines.popleft()
        if isinstance(line, TooLong):
            self.problem = f"it sent a message of over {FRAME_BYTES} bytes"
            return None
        return line

    async def close(self) -> None:
        """The program's pipes are closed with it."""

    def _strayed(self, line: bytes) -> None:
        if not line.strip():
            return
        self._stray += 1
        if self._stray == 1:
            log.info("acp.stray_output", agent=self._name)
        if self._stray > MOST_STRAY_LINES:
            self.problem = "it writes what is no Agent Client Protocol"


def read(line: bytes) -> dict[str, Any] | None:
    """A message that the SDK can take; None for anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and _is_sound(message) else None


def _is_sound(message: dict[str, Any]) -> bool:
    request_id, method = message.get("id"), message.get("method")
    if isinstance(request_id, bool) or not isinstance(request_id, int | str | None):
        return False
    if method is not None:
        return isinstance(method, str)
    error = message.get("error")
    return isinstance(request_id, int) and (error is None or _is_error(error))


def _is_error(error: object) -> bool:
    return isinstance(error, dict) and isinstance(error.get("code"), int) and "message" in error
