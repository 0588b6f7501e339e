"""Received files on disk: stored as they arrive, and removed when they are old."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from bridge.channel.contract import FileKind
from bridge.channel.http import TooLargeError
from bridge.media.images import MAX_PIXELS, READABLE, image_size, is_usable
from bridge.media.names import unique_name
from bridge.media.newfile import NewFile
from bridge.media.sniff import UNKNOWN, kind_of, sniff_file

__all__ = ["Saved", "TooLargeError", "remove", "save", "sweep"]

T = TypeVar("T")
_WRITE_BYTES: Final = 262_144  # gathered before a thread is asked to write


@dataclass(frozen=True, slots=True)
class Saved:
    """A stored file. ``pixels`` is the width and height of a picture whose header could be read."""

    path: Path
    size: int
    sha256: str
    mime: str
    kind: FileKind
    pixels: tuple[int, int] | None = None


async def save(
    chunks: AsyncIterator[bytes],
    directory: Path,
    name: str,
    *,
    limit_bytes: int,
    declared: str = "",
    max_pixels: int = MAX_PIXELS,
) -> Saved:
    """Store what comes as a new file ``<12 hex>-<safe name>``, durable on return, for the owner alone.

    A picture with too many pixels, or with a header that cannot be read, counts as bytes of unknown type; one
    of a type that is not read here keeps its type and is a mere file.
    On any failure, cancellation included, nothing is left behind.

    Raises:
        TooLargeError: more than ``limit_bytes`` came.
        OSError: the disk does not take it.
    """
    file, digest, size = NewFile(directory / unique_name(name)), hashlib.sha256(), 0
    done = False

    def write(data: bytes) -> None:
        digest.update(data)
        file.write(data)

    try:
        await _to_the_end(file.create)
        waiting = bytearray()
        async for chunk in chunks:
            size += len(chunk)
            if size > limit_bytes:
                raise TooLargeError(f"a file is over {limit_bytes} bytes")
            waiting += chunk
            if len(waiting) >= _WRITE_BYTES:
                await _to_the_end(partial(write, bytes(waiting)))
                waiting.clear()
        await _to_the_end(partial(write, bytes(waiting)))
        mime, pixels = await _to_the_end(partial(_judge, file.path, declared, name, max_pixels))
        await _to_the_end(file.finish)
        done = True
    finally:
        if not done:
            await _to_the_end(file.discard)
    kind = FileKind.FILE if pixels is None and mime.startswith("image/") else kind_of(mime)
    return Saved(file.path, size, digest.hexdigest(), mime, kind, pixels)


def remove(path: Path) -> None:
    """Remove a file, or the link in its place; blocks. One that is gone is fine.

    Raises:
        OSError: it stays.
    """
    path.unlink(missing_ok=True)


def sweep(root: Path, older_than: timedelta, now: datetime) -> int:
    """Remove the files under ``root`` that were last written before, and directories left empty; blocks.

    ``root`` stays. Returns how many files went. What cannot be removed stays until the next time.
    """
    before, removed = (now - older_than).timestamp(), 0
    emptied: set[str] = set()
    for folder, _, names in os.walk(root, topdown=False):
        gone = sum(_remove_old(Path(folder, name), before) for name in names)
        removed += gone
        if folder != os.fspath(root) and (gone or folder in emptied) and _remove_empty(folder):
            emptied.add(os.path.dirname(folder))
    return removed


async def _to_the_end(call: Callable[[], T]) -> T:
    """Run ``call`` in a thread; when cancelled, wait for it before passing that on, so nothing races it."""
    running = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        await asyncio.wait([running])
    except asyncio.CancelledError:
        await asyncio.wait([running])
        running.exception()  # looked at: the cancellation says more
        raise
    return running.result()


def _judge(path: Path, declared: str, name: str, max_pixels: int) -> tuple[str, tuple[int, int] | None]:
    mime = sniff_file(path, declared, name)
    if mime not in READABLE:
        return mime, None
    pixels = image_size(path)
    return (mime if is_usable(pixels, max_pixels) else UNKNOWN), pixels


def _remove_old(path: Path, before: float) -> bool:
    try:
        if os.lstat(path).st_mtime >= before:
            return False
        path.unlink()
    except OSError:
        return False
    return True


def _remove_empty(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True
