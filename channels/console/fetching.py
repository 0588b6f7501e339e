"""Reading a file that a message names, on this machine."""

import asyncio
import os
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from bridge.channel import ChannelError, Incoming, RemoteFile

CHUNK_BYTES: Final = 262_144
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # not held up by a pipe without a writer


class LocalFile:
    """A file that threads open and read, one at a time; ``close`` waits for none of them."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1
        self._lock, self._in_use, self._closed = threading.Lock(), False, False

    def open(self) -> int:
        """Open it, and return its size in bytes; blocks.

        Raises:
            ChannelError: it is a link, no regular file, or cannot be opened. The path is not told.
        """
        with self._used():
            try:
                self._handle = os.open(self._path, _FLAGS)
            except OSError as error:
                raise ChannelError(f"a local file cannot be opened: {error.strerror}") from error
            found = os.fstat(self._handle)
            if not stat.S_ISREG(found.st_mode):
                raise ChannelError("a local file is no regular file")
            return found.st_size

    def read(self) -> bytes:
        """The next bytes, b"" at the end; blocks. Raises ChannelError."""
        with self._used():
            try:
                return os.read(self._handle, CHUNK_BYTES)
            except OSError as error:
                raise ChannelError(f"a local file cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """No more of it is wanted. What is under way ends first: its handle would be another file's else."""
        with self._lock:
            self._closed = True
            self._end()

    @contextmanager
    def _used(self) -> Iterator[None]:
        self._in_use = True
        try:
            yield
        finally:
            with self._lock:
                self._in_use = False
                self._end()

    def _end(self) -> None:
        if self._closed and not self._in_use and self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


@asynccontextmanager
async def opened(file: RemoteFile) -> AsyncIterator[Incoming]:
    """The file's bytes while the block runs.

    Raises:
        ChannelError: it is a link, no regular file, or cannot be read.
    """
    local = LocalFile(file.key)
    try:
        size = await asyncio.to_thread(local.open)
        yield Incoming(_chunks(local), file.name, file.mime, size)
    finally:
        local.close()


async def _chunks(local: LocalFile) -> AsyncIterator[bytes]:
    while data := await asyncio.to_thread(local.read):
        yield data
