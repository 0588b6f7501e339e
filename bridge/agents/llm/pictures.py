"""The pictures of a conversation, as a model takes them: the newest eight, read anew from their files."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.agents.contract import HistoryEntry, TurnFile

MOST = 8
MOST_BYTES = 8 * 1_048_576
TOO_LARGE = "too large to be shown to you"
NOT_SHOWN = "shown to you earlier"
GONE = "its file is gone"
OTHER_KIND = "no kind of picture that can be shown to you"

_HEADS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


@dataclass(frozen=True, slots=True)
class Picture:
    data: bytes
    mime: str


Shown = dict[Path, Picture | str]
"""By its path, a picture, or a note that stands for it."""


def shown(entries: Sequence[HistoryEntry], known: Shown) -> Shown:
    """What to show of the pictures in ``entries``, newest first; blocking. ``known`` were read before."""
    found: Shown = {}
    for path, file in _newest_first(entries):
        if sum(isinstance(one, Picture) for one in found.values()) == MOST:
            found.setdefault(path, NOT_SHOWN)
        elif path not in found:
            found[path] = known.get(path) or _read(path, file)
    return found


def _newest_first(entries: Sequence[HistoryEntry]) -> Iterable[tuple[Path, TurnFile]]:
    for entry in reversed(entries):
        for file in reversed(entry.files):
            if file.picture is not None:
                yield file.picture, file


def _read(path: Path, file: TurnFile) -> Picture | str:
    """The picture at ``path``, which is no link; or why there is none. Its kind is what its bytes say.

    One whose size could not be read when it came is broken.
    """
    try:
        data = _bytes(path)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return GONE
    if len(data) > MOST_BYTES:
        return TOO_LARGE
    mime = _mime(data) if file.pixels else ""
    return Picture(data, mime) if mime else OTHER_KIND


def _bytes(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with open(handle, "rb", closefd=False) as stream:  # which refuses a folder
            return stream.read(MOST_BYTES + 1)
    finally:
        os.close(handle)


def _mime(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for head, mime in _HEADS.items() if data.startswith(head)), "")
