"""How much of the disk is free: below a floor nothing is saved, until it is a little above it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

MARGIN_PERCENT: Final = 2.0  # above the floor, so that nothing swings to and fro about it


class Usage(Protocol):
    """Bytes in use and bytes that may still be used, as ``shutil.disk_usage`` tells them."""

    @property
    def used(self) -> int: ...
    @property
    def free(self) -> int: ...


class Disk:
    """The disk that ``folder`` is on. It is full below ``min_free_percent``, 0 for never."""

    def __init__(
        self,
        folder: Path,
        min_free_percent: float,
        usage: Callable[[Path], Usage] = shutil.disk_usage,
    ) -> None:
        self._folder, self._usage = folder, usage
        self.min_free_percent = min_free_percent
        self._full = False

    def is_full(self) -> bool:
        """Look; blocks for a moment. A disk that cannot be looked at is as it was."""
        floor = self.min_free_percent
        if floor <= 0:
            self._full = False
        elif (free := self._free_percent()) is not None:
            self._full = free < floor + (MARGIN_PERCENT if self._full else 0)
        return self._full

    def _free_percent(self) -> float | None:
        """Of what may be used at all: what is kept for the system is neither."""
        try:
            now = self._usage(self._folder)
        except OSError:
            return None
        return 100 * now.free / max(now.used + now.free, 1)
