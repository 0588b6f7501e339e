"""What a program writes: its beginning and its end are kept, and its newest lines shown while it runs."""

from collections.abc import Awaitable, Callable

from bridge.clock import Clock
from bridge.tools.texts import OUTPUT_BYTES, cut_end_text, cut_text, from_terminal

KEPT_BYTES = OUTPUT_BYTES // 2  # at each end
SHOWN_LINES = 5  # of one piece
SHOWN_BYTES_A_SECOND = 262_144  # who writes more shows nothing: nobody could read it

Show = Callable[[str], Awaitable[None]]


class Output:
    """``written`` counts all bytes that came."""

    def __init__(self, clock: Clock, show: Show) -> None:
        self.written = 0
        self._clock, self._show = clock, show
        self._head, self._tail = bytearray(), bytearray()
        self._second, self._of_second = clock.monotonic(), 0
        self._line = b""  # that has not ended yet

    async def take(self, data: bytes) -> None:
        self.written += len(data)
        room = KEPT_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        del self._tail[:-KEPT_BYTES]
        for line in self._lines(data):
            await self._show(line)

    @property
    def is_cut(self) -> bool:
        return self.written > OUTPUT_BYTES

    def text(self) -> str:
        """All of it, or its beginning and its end with what is left out told between them."""
        if not self.is_cut:
            whole = from_terminal(bytes(self._head + self._tail))
            if len(whole.encode()) <= OUTPUT_BYTES:
                return whole
        head = cut_text(from_terminal(bytes(self._head)), KEPT_BYTES)
        tail = cut_end_text(from_terminal(bytes(self._tail)), KEPT_BYTES)
        left_out = self.written - len(self._head) - len(self._tail)
        return f"{head}\n[… {left_out} bytes are left out …]\n{tail}"

    def _lines(self, data: bytes) -> list[str]:
        """Those to be shown that ended with ``data``."""
        now = self._clock.monotonic()
        if now - self._second >= 1:
            self._second, self._of_second = now, 0
        self._of_second += len(data)
        *lines, self._line = (self._line + data).replace(b"\r", b"\n").split(b"\n")
        self._line = self._line[-KEPT_BYTES:]
        if self._of_second > SHOWN_BYTES_A_SECOND:
            return []
        return [from_terminal(line) for line in lines[-SHOWN_LINES:] if line.strip()]
