"""The pictures of a conversation, as a model takes them: the newest eight, read anew from their files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.agents.contract import HistoryEntry, TurnFile
from bridge.media.showing import SIDE_PIXELS, showable

MOST = 8
NOT_SHOWN = "shown to you earlier"
GONE = "its file is gone"
OTHER_KIND = "no kind of picture that can be shown to you"


@dataclass(frozen=True, slots=True)
class Picture:
    data: bytes
    mime: str


Shown = dict[Path, Picture | str]
"""By its path, a picture, or a note that stands for it."""


def shown(entries: Sequence[HistoryEntry], known: Shown, side_pixels: int = SIDE_PIXELS) -> Shown:
    """What to show of the pictures in ``entries``, newest first; blocking. ``known`` were read before.

    None is longer than ``side_pixels``.
    """
    found: Shown = {}
    for path, file in _newest_first(entries):
        if sum(isinstance(one, Picture) for one in found.values()) == MOST:
            found.setdefault(path, NOT_SHOWN)
        elif path not in found:
            found[path] = known.get(path) or _read(path, file, side_pixels)
    return found


def _newest_first(entries: Sequence[HistoryEntry]) -> Iterable[tuple[Path, TurnFile]]:
    for entry in reversed(entries):
        for file in reversed(entry.files):
            if file.picture is not None:
                yield file.picture, file


def _read(path: Path, file: TurnFile, side_pixels: int) -> Picture | str:
    """The picture at ``path``, which is no link; or why there is none. Its kind is what its bytes say.

    One whose size could not be read when it came is broken.
    """
    try:
        found = showable(path, side_pixels) if file.pixels else None
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return GONE
    return Picture(found.data, found.mime) if found else OTHER_KIND
