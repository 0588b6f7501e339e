"""The outbox: private copies of the files that an agent wants to send. Everything here blocks."""

import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from bridge.media.names import safe_name, unique_name
from bridge.media.newfile import NewFile

MAX_BYTES: Final = 26_214_400
_READ_BYTES = 1_048_576
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # not held up by a pipe without a writer
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class CopyRefusal(StrEnum):
    """Why a file is not copied, as it may be shown."""

    UNREADABLE = "the file cannot be opened"
    NOT_REGULAR = "it is not a regular file"
    LINKED = "it has more than one name"
    EMPTY = "it is empty"
    TOO_LARGE = "it is too large"
    CHANGED = "it changed while it was read"


@dataclass(frozen=True, slots=True)
class NotCopied:
    """``text`` says why, with the figures, as it may be shown."""

    why: CopyRefusal
    text: str


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy in the outbox. ``name`` is safe to show, ``size`` in bytes."""

    path: Path
    name: str
    size: int


def copy(source: Path, outbox: Path, name: str = "", max_bytes: int = MAX_BYTES) -> Copied | NotCopied:
    """Copy ``source`` to a new file ``<12 hex>-<name>`` of ``outbox``, durable on return.

    ``source`` is absolute and has been resolved and judged. No link is followed on the way to it, so that
    the file which was judged is the file which is read, even when a folder was exchanged since. The rest is
    judged on the open file.

    Raises:
        OSError: the outbox cannot take it.
    """
    try:
        handle = _open_unlinked(source)
    except (OSError, ValueError):
        return _not(CopyRefusal.UNREADABLE)
    try:
        found = os.fstat(handle)
        if refusal := _judge(found, max_bytes):
            return _not(refusal, f"{found.st_size} bytes, of at most {max_bytes}")
        shown = safe_name(name or source.name)
        copied = _copy_open(handle, found.st_size, outbox / unique_name(shown), shown)
        return copied or _not(CopyRefusal.CHANGED)
    finally:
        os.close(handle)


def inside_outbox(path: Path, outbox: Path) -> bool:
    """Whether ``path`` is a regular file, no link, and lies inside ``outbox`` when all links are resolved."""
    try:
        regular = stat.S_ISREG(os.lstat(path).st_mode)
        return regular and path.resolve(strict=True).is_relative_to(outbox.resolve(strict=True))
    except (OSError, ValueError, RuntimeError):
        return False


def _open_unlinked(path: Path) -> int:
    """Open ``path`` step by step from the root.

    Raises:
        OSError: a step is a link or missing.
        ValueError: it is not absolute, or goes back up.
    """
    first, *folders = path.parts[:-1] or ("",)
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError("not a resolved path")
    here = os.open(first, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER, dir_fd=here)
            os.close(here)
            here = inner
        return os.open(path.name, _FILE, dir_fd=here)
    finally:
        os.close(here)


def _not(why: CopyRefusal, sizes: str = "") -> NotCopied:
    return NotCopied(why, f"{why.value}: {sizes}" if why is CopyRefusal.TOO_LARGE else why.value)


def _judge(found: os.stat_result, max_bytes: int) -> CopyRefusal | None:
    if not stat.S_ISREG(found.st_mode):
        return CopyRefusal.NOT_REGULAR
    if found.st_nlink != 1:
        return CopyRefusal.LINKED
    if found.st_size == 0:
        return CopyRefusal.EMPTY
    return CopyRefusal.TOO_LARGE if found.st_size > max_bytes else None


def _copy_open(handle: int, size: int, target: Path, shown: str) -> Copied | None:
    """None: what was read has another size."""
    file, done = NewFile(target), False
    try:
        file.create()
        left = size
        while left >= 0 and (data := os.read(handle, _READ_BYTES)):
            left -= len(data)
            file.write(data)
        if left:
            return None
        file.finish()
        done = True
    finally:
        if not done:
            file.discard()
    return Copied(target, shown, size)
