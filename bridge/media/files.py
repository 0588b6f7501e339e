"""Received files on disk: stored as they arrive, and removed when they are old."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable, Container
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from bridge.channel.contract import FileKind
from bridge.channel.http import TooLargeError
from bridge.ids import new_hex
from bridge.media.images import MAX_PIXELS, image_size, is_read, is_usable
from bridge.media.newfile import NewFile
from bridge.media.sniff import UNKNOWN, kind_of, sniff_file

__all__ = ["Found", "Saved", "TooLargeError", "found_in", "judge", "remove", "save", "sweep", "to_the_end"]

T = TypeVar("T")
_WRITE_BYTES: Final = 262_144  # gathered before a thread is asked to write
_UNFINISHED: Final = timedelta(hours=1)  # without a byte more: whoever wrote it is dead


@dataclass(frozen=True, slots=True)
class Saved:
    """A stored file. ``pixels`` is the width and height of a picture whose header could be read."""

    path: Path
    size: int
    mime: str
    kind: FileKind
    pixels: tuple[int, int] | None = None


async def save(
    chunks: AsyncIterator[bytes],
    path: Path,
    *,
    limit_bytes: int,
    declared: str = "",
    max_pixels: int = MAX_PIXELS,
) -> Saved:
    """Store what comes as ``path``: whole or not at all, durable on return, for the owner alone.

    It is written under another name, hidden, and gets its own once it is whole. On any failure, cancellation
    included, nothing is left behind.

    Raises:
        TooLargeError: more than ``limit_bytes`` came.
        OSError: the disk does not take it.
    """
    file, size, done = NewFile(path.with_name(f".{new_hex(12)}")), 0, False
    try:
        await to_the_end(file.create)
        waiting = bytearray()
        async for chunk in chunks:
            size += len(chunk)
            if size > limit_bytes:
                raise TooLargeError(f"a file is over {limit_bytes} bytes")
            waiting += chunk
            if len(waiting) >= _WRITE_BYTES:
                await to_the_end(partial(file.write, bytes(waiting)))
                waiting.clear()
        await to_the_end(partial(file.write, bytes(waiting)))
        await to_the_end(partial(file.finish, path.name))
        saved = await to_the_end(partial(judge, path, declared, max_pixels))
        done = True
    finally:
        if not done:
            await to_the_end(file.discard)
    return saved


def judge(path: Path, declared: str = "", max_pixels: int = MAX_PIXELS) -> Saved:
    """What the stored file ``path`` is; blocks.

    A picture with too many pixels, or with a header that cannot be read, counts as bytes of unknown type; one
    of a type that is not read here keeps its type and is a mere file.

    Raises:
        OSError: it cannot be read.
    """
    size, mime = path.stat().st_size, sniff_file(path, declared, path.name)
    if not mime.startswith("image/"):
        return Saved(path, size, mime, kind_of(mime))
    if not is_read(mime):
        return Saved(path, size, mime, FileKind.FILE)
    pixels = image_size(path)
    usable = is_usable(pixels, max_pixels)
    return Saved(path, size, *((mime, FileKind.IMAGE) if usable else (UNKNOWN, FileKind.FILE)), pixels)


def remove(path: Path) -> None:
    """Remove a file, or the link in its place; blocks. One that is gone is fine.

    Raises:
        OSError: it stays.
    """
    path.unlink(missing_ok=True)


def sweep(root: Path, older_than: timedelta, now: datetime, spared: Container[Path] = ()) -> int:
    """Remove the files under ``root`` that were last written before, and directories left empty; blocks.

    What a crash left unfinished goes sooner. ``root`` stays, and so do ``spared`` files. Returns how many
    files went. What cannot be removed stays until the next time.
    """
    before, removed = (now - older_than).timestamp(), 0
    unfinished_before = (now - min(older_than, _UNFINISHED)).timestamp()
    emptied: set[str] = set()
    for folder, _, names in os.walk(root, topdown=False):
        paths = [Path(folder, name) for name in names]
        gone = sum(
            _remove_old(path, unfinished_before if path.name[0] == "." else before)
            for path in paths
            if path not in spared
        )
        removed += gone
        if folder != os.fspath(root) and (gone or folder in emptied) and _remove_empty(folder):
            emptied.add(os.path.dirname(folder))
    return removed


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file under a folder. ``changed`` is its time of last change, in seconds since 1970."""

    path: Path
    size: int
    changed: float


def found_in(root: Path) -> list[Found]:
    """The files under ``root``, the oldest first, without those that are being written; blocks."""
    paths = [Path(folder, name) for folder, _, names in os.walk(root) for name in names if name[0] != "."]
    return sorted(filter(None, map(_found, paths)), key=lambda one: one.changed)


def _found(path: Path) -> Found | None:
    try:
        at = os.lstat(path)
    except OSError:
        return None
    return Found(path, at.st_size, at.st_mtime) if stat.S_ISREG(at.st_mode) else None


async def to_the_end(call: Callable[[], T]) -> T:
    """Run ``call`` in a thread; when cancelled, wait for it before passing that on, so nothing races it."""
    running = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        await asyncio.wait([running])
    except asyncio.CancelledError:
        await asyncio.wait([running])
        running.exception()  # looked at: the cancellation says more
        raise
    return running.result()


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
