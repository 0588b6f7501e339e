"""How large a picture is, from its header alone: nothing here decodes pixels. Blocks while reading."""

import io
import struct
import warnings
from pathlib import Path
from typing import Any, Final

from PIL import Image

MAX_PIXELS: Final = 50_000_000
HEIF: Final = frozenset({"image/heic", "image/heif"})  # read with the extra "heic" alone
READABLE: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")  # no more: each is a parser for strangers' bytes
BROKEN = (
    OSError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, struct.error, RuntimeError,
    AttributeError, MemoryError, Warning,
)  # fmt: skip # whatever Pillow's parsers raise on a broken header

Image.MAX_IMAGE_PIXELS = None  # sizes are judged here; Pillow's check raises before telling them
warnings.filterwarnings("ignore", category=UserWarning, module="PIL")  # strangers' bytes are often odd


def image_size(source: Path | bytes) -> tuple[int, int] | None:
    """Width and height in pixels as the header tells, or ``None`` for what is no picture we know."""
    try:
        with Image.open(_file(source), formats=FORMATS) as image:
            width, height = image.size
    except BROKEN:
        width, height = _heif_size(source)
    return (width, height) if width > 0 and height > 0 else None


def is_read(mime: str) -> bool:
    """Whether pictures of this type are read here."""
    return mime in READABLE or (mime in HEIF and _heif() is not None)


def is_usable(size: tuple[int, int] | None, max_pixels: int = MAX_PIXELS) -> bool:
    """Whether a picture of ``size`` may be shown to a model or decoded."""
    return size is not None and size[0] * size[1] <= max_pixels


def _file(source: Path | bytes) -> Path | io.BytesIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source


def _heif_size(source: Path | bytes) -> tuple[int, int]:
    heif = _heif()
    try:
        if heif is None or not heif.is_supported(_file(source)):
            return 0, 0
        width, height = heif.open_heif(_file(source)).size
    except BROKEN:
        return 0, 0
    return width, height


def _heif() -> Any:
    """The library for photos as some phones send them, or None where it is not installed."""
    try:
        import pillow_heif
    except ImportError:
        return None
    return pillow_heif
