"""An account's received files: under a quota and for a time, but never taken from a turn that needs them."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from bridge.media import files
from bridge.media.disk import Disk
from bridge.media.files import Saved, to_the_end
from bridge.media.images import MAX_PIXELS
from bridge.media.names import prefix_of, safe_name, unique_name

_SPARE_PERCENT = 10  # of the quota is left free, once it was reached


class Shelf:
    """The files under ``root``, at most ``quota_bytes`` of them but for those in use.

    What ``save`` and ``find`` return is in use until it is let go of, once for each time.
    """

    def __init__(self, root: Path, quota_bytes: int, disk: Disk) -> None:
        self.root, self._quota_bytes, self._disk = root, quota_bytes, disk
        self._in_use: Counter[Path] = Counter()
        self._bytes = quota_bytes  # at most so many are there: counted when the first one comes
        self._lock = asyncio.Lock()  # nothing is found while things are being removed

    async def is_full(self) -> bool:
        """Whether the disk has no room for any file now."""
        return await asyncio.to_thread(self._disk.is_full)

    async def save(
        self,
        chunks: AsyncIterator[bytes],
        folder: Path,
        name: str,
        *,
        limit_bytes: int,
        declared: str = "",
        max_pixels: int = MAX_PIXELS,
        key: str = "",
    ) -> Saved:
        """Store what comes in ``folder``, under a name of its own; with ``key`` it can be found again.

        The oldest files that nobody uses go as far as the quota asks for it.

        Raises:
            TooLargeError: more than ``limit_bytes`` came.
            OSError: the disk does not take it.
        """
        path = folder / (prefix_of(key) + safe_name(name) if key else unique_name(name))
        self._in_use[path] += 1
        try:
            saved = await files.save(
                chunks, path, limit_bytes=limit_bytes, declared=declared, max_pixels=max_pixels
            )
            await self._make_room(saved.size)
        except BaseException:  # stopped, too: nobody will let it go
            self.let_go([path])
            raise
        return saved

    async def find(
        self, folder: Path, key: str, declared: str = "", max_pixels: int = MAX_PIXELS
    ) -> Saved | None:
        """The file that was saved in ``folder`` under ``key``, good as new again; None: it cannot be read."""
        async with self._lock:
            path = await asyncio.to_thread(_find, folder, prefix_of(key))
            if path is None:
                return None
            try:
                saved = await asyncio.to_thread(files.judge, path, declared, max_pixels)
            except OSError:
                return None
            self._in_use[path] += 1
            return saved

    def let_go(self, paths: Iterable[Path]) -> None:
        """They are not in use any more, as far as this user is concerned."""
        for path in paths:
            self._in_use[path] -= 1
            if self._in_use[path] <= 0:
                del self._in_use[path]

    async def remove(self, paths: Iterable[Path]) -> None:
        """Remove files that nothing names; one that cannot be removed stays until it is old."""
        for path in paths:
            with suppress(OSError):
                await asyncio.to_thread(files.remove, path)

    async def sweep(self, keep: timedelta, now: datetime) -> None:
        """Remove what is older than ``keep``, with folders left empty, and what is over the quota."""
        async with self._lock:
            await to_the_end(partial(files.sweep, self.root, keep, now, self._in_use))
            self._bytes = await to_the_end(self._evict)

    async def _make_room(self, added_bytes: int) -> None:
        self._bytes += added_bytes
        if self._bytes <= self._quota_bytes:
            return
        async with self._lock:
            self._bytes = await to_the_end(self._evict)

    def _evict(self) -> int:
        """Where there is more than the quota, remove the oldest files; blocks. Returns the bytes that stay.

        Small ones make a little room beside, so that not every file that comes has all others counted.
        """
        there = files.found_in(self.root)
        total = sum(one.size for one in there)
        spare = self._quota_bytes * _SPARE_PERCENT // 100 if total > self._quota_bytes else 0
        for one in there:
            room = self._quota_bytes - total
            if room >= spare or (room >= 0 and one.size > spare):
                break
            if one.path not in self._in_use:
                with suppress(OSError):
                    files.remove(one.path)
                    total -= one.size
                    one.path.parent.rmdir()  # where it was the last one
        return total


def _find(folder: Path, prefix: str) -> Path | None:
    """The whole, regular file in ``folder`` whose name begins with ``prefix``, marked as used now; blocks."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_file(follow_symlinks=False):
                os.utime(entry.path, follow_symlinks=False)
                return Path(entry.path)
    return None
