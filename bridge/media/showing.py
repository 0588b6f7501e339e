"""A received picture as a model takes it: PNG or JPEG, not too large, upright, and without its metadata.

The file itself stays as it is. What is fine already is read; the rest is decoded in a process of its own.
"""

import io
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from PIL import Image

from bridge.media.child import run_limited
from bridge.media.images import BROKEN

SIDE_PIXELS: Final = 2048  # the longer side
MOST_BYTES: Final = 8 * 1_048_576
SECONDS: Final = 30.0
_MODES: Final = frozenset({"L", "LA", "P", "RGB", "RGBA"})
_PNG, _JPEG = "image/png", "image/jpeg"
_HEADS: Final = {b"\x89PNG\r\n\x1a\n": _PNG, b"\xff\xd8\xff": _JPEG}
_METADATA: Final = (b"eXIf", b"tEXt", b"iTXt", b"zTXt", b"acTL")  # of PNG; the last says that it moves
_ABOUT: Final = frozenset(
    {"exif", "xmp", "comment", "photoshop", "mp"}
)  # of JPEG: such as where it was taken


@dataclass(frozen=True, slots=True)
class Showable:
    data: bytes = field(repr=False)
    mime: str


def showable(path: Path, side_pixels: int = SIDE_PIXELS) -> Showable | None:
    """The picture at ``path``, which is no link; None: it cannot be shown. Blocks, for a second or so.

    Raises:
        OSError: it cannot be read.
        ValueError: there is a NUL in the path.
    """
    data = _read(path)
    if is_plain(data, side_pixels):
        return Showable(data, _mime(data))
    with tempfile.TemporaryDirectory(prefix="turnbridge-picture-") as folder:
        target = Path(folder, "picture")
        words = [str(path), str(target), str(side_pixels), str(MOST_BYTES)]
        if run_limited("bridge.media.fitting", words, SECONDS):
            return None
        data = target.read_bytes()
        return Showable(data, _mime(data))


def is_plain(data: bytes, side_pixels: int) -> bool:
    """Whether it may be shown as it is, as far as its header tells: no pixel is decoded."""
    mime = _mime(data)
    if not mime or len(data) > MOST_BYTES or (mime == _PNG and any(one in data for one in _METADATA)):
        return False
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            return max(image.size) <= side_pixels and image.mode in _MODES and _ABOUT.isdisjoint(image.info)
    except BROKEN:
        return False


def _mime(data: bytes) -> str:
    return next((mime for head, mime in _HEADS.items() if data.startswith(head)), "")


def _read(path: Path) -> bytes:
    """At most a byte more than is shown."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with open(handle, "rb", closefd=False) as stream:  # which refuses a folder
            return stream.read(MOST_BYTES + 1)
    finally:
        os.close(handle)
