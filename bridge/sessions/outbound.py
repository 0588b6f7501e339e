"""The frames that wait for one connection's client, and the session's numbers that they carry."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from bridge.errors import StoreError
from bridge.ids import SessionId
from bridge.logs import get_logger
from bridge.protocol.codec import write
from bridge.protocol.limits import OUTBOUND_FRAMES, SERVER_FRAME_BYTES, outbound_bytes
from bridge.protocol.wire import Wire
from bridge.sessions.errors import FrameTooLargeError, StalledError
from bridge.store.contract import ReserveSeq, Store

log = get_logger(__name__)

IDLE_RESERVE = 64  # numbers reserved at once for what is sent outside of turns
_IDLE_LEAST = 16  # more than may be drawn at the same time


class Outbound:
    """A bounded queue of encoded frames. A frame counts until it is handed to the kernel.

    ``stalled`` is set once somebody has waited too long for a client that does not read.
    """

    def __init__(self) -> None:
        self.stalled = False
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._muted = self._finished = False
        self.limit(SERVER_FRAME_BYTES)

    def limit(self, frame_bytes: int) -> None:
        """From now on, hold frames to ``frame_bytes``, the newline not counted."""
        self._frame_bytes, self._most_bytes = frame_bytes, outbound_bytes(frame_bytes)

    def encode(self, message: Wire) -> bytes:
        """``message`` as a frame with its newline.

        Raises:
            FrameTooLargeError: it is over the limit.
        """
        frame = write(message) + b"\n"
        if len(frame) > self._frame_bytes + 1:
            raise FrameTooLargeError(f"a frame of over {self._frame_bytes} bytes was not sent")
        return frame

    def has_room(self, size: int) -> bool:
        return self._muted or (len(self._frames) < OUTBOUND_FRAMES and self._bytes + size <= self._most_bytes)

    def append(self, frame: bytes) -> None:
        """Let ``frame`` follow the others; there must be room."""
        if not self._muted:
            self._frames.append(frame)
            self._bytes += len(frame)
            self._wake()

    async def room(self, size: int, seconds: float | None) -> None:
        """Wait until there is room.

        Raises:
            StalledError: not within ``seconds``, where given.
        """
        try:
            async with asyncio.timeout(seconds):
                while not self.has_room(size):
                    await self._changed.wait()
        except TimeoutError as error:
            self.stalled = True
            raise StalledError("the client did not read for too long: its connection was closed") from error

    async def send(self, message: Wire, seconds: float | None) -> None:
        """Queue a message that carries no number; raises as ``encode`` and ``room`` do."""
        frame = self.encode(message)
        await self.room(len(frame), seconds)
        self.append(frame)

    def mute(self) -> None:
        """Take no more frames; those that wait are still sent."""
        self._muted = True
        self._wake()

    def finish(self) -> None:
        """End ``run`` as soon as nothing waits."""
        self._muted = self._finished = True
        self._wake()

    async def run(self, writer: asyncio.StreamWriter) -> None:
        """Write what waits, until finished or the client is gone."""
        try:
            while frame := await self._next():
                if writer.is_closing():  # which uvloop's write meets with a RuntimeError
                    raise ConnectionResetError
                writer.write(frame)
                await writer.drain()
                self._frames.popleft()
                self._bytes -= len(frame)
                self._wake()
        except OSError:
            self._frames.clear()  # the reader notices the end, too, and ends the connection
            self._bytes = 0
            self.mute()

    async def _next(self) -> bytes | None:
        while not self._frames:
            if self._finished:
                return None
            await self._changed.wait()
        return self._frames[0]

    def _wake(self) -> None:
        """Let everybody who waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()


E = TypeVar("E", bound=Wire)

Make = Callable[[int], E]
"""An event, given its number."""


class Numbered:
    """Sends a session's events: the number is drawn at the moment in which the frame joins the queue.

    No number is used that the store does not know to be used, so none comes twice, also over a crash.
    """

    def __init__(
        self, outbound: Outbound, store: Store, session: SessionId, last: int, reserved: int
    ) -> None:
        self._outbound, self._store, self._session = outbound, store, session
        self._last, self._reserved = last, reserved
        self._lock = asyncio.Lock()  # held while a terminal event is recorded: its number is in the record

    @property
    def last(self) -> int:
        return self._last

    async def tell(self, message: Wire, seconds: float) -> None:
        """Send what carries no number; raises as ``Outbound.send``."""
        await self._outbound.send(message, seconds)

    def lead_to(self, outbound: Outbound) -> None:
        """From now on, send to another connection."""
        self._outbound = outbound

    def reserved(self, seq: int) -> None:
        """The store knows now that numbers up to ``seq`` may be used."""
        self._reserved = seq

    async def send(self, make: Make[E], seconds: float | None = None) -> None:
        """Wait for room (``seconds`` at most, where given), then queue ``make(number)``.

        Raises as ``Outbound.encode`` and ``room`` do; nothing was sent then, and no number used.
        """
        await self._reserve()
        while True:
            async with self._lock:
                frame = self._outbound.encode(make(self._last + 1))
                if self._outbound.has_room(len(frame)):
                    self._append(frame)
                    return
            await self._outbound.room(len(frame), seconds)

    async def send_recorded(
        self, makes: Sequence[Make[E]], record: Callable[[E], Awaitable[None]], seconds: float
    ) -> None:
        """As ``send``, for all; before, ``record`` stores the last. Nothing else is numbered in between."""
        async with self._lock:
            events = [make(self._last + nth) for nth, make in enumerate(makes, 1)]
            frames = [self._outbound.encode(event) for event in events]
            await record(events[-1])
            self._reserved = self._last + len(frames)
            for frame in frames:
                await self._outbound.room(len(frame), seconds)
                self._append(frame)

    def _append(self, frame: bytes) -> None:
        self._outbound.append(frame)
        self._last += 1

    async def _reserve(self) -> None:
        if self._reserved - self._last >= _IDLE_LEAST:
            return
        upto = self._last + IDLE_RESERVE
        try:
            await self._store.do(ReserveSeq(self._session, upto))
        except StoreError as error:
            log.warning("session.numbers_not_reserved", session=self._session, error=error)
            return  # the worst that can follow is a number that a later connection sees again
        self._reserved = max(self._reserved, upto)
