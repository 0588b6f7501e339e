"""A child process that makes a picture fit to be shown to a model.

``python -m bridge.media.fitting FILE TARGET SIDE_PIXELS MOST_BYTES``; the exit codes are those of
``bridge.media.child``.
"""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

from PIL import Image, ImageOps

from bridge.media.child import FAILED, limit
from bridge.media.images import FORMATS, is_usable

_CPU_SECONDS, _MEMORY_MIB, _FILE_MIB = 25, 1536, 64
_QUALITIES: Final = (90, 70, 45)


def main(arguments: Sequence[str]) -> int:
    """0 where ``TARGET`` is there, whole."""
    limit(_CPU_SECONDS, _MEMORY_MIB, _FILE_MIB)
    source, target, side_pixels, most_bytes = arguments
    try:
        data = fit(source, int(side_pixels), int(most_bytes))
    except Exception:  # noqa: BLE001 - a decoder's errors on strangers' bytes are of any kind
        return FAILED
    if data is None:
        return FAILED
    Path(target).write_bytes(data)
    return 0


def fit(source: str, side_pixels: int, most_bytes: int) -> bytes | None:
    """The first frame, upright, as PNG where it is transparent, else as JPEG; nothing that it tells beside.

    None: it has too many pixels, or stays too large.
    """
    with suppress(ImportError):
        import_module("pillow_heif").register_heif_opener()
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file, Image.open(file, formats=_formats()) as image:
        if not is_usable(image.size):
            return None
        image.draft(None, (side_pixels, side_pixels))  # a JPEG is decoded no larger than it needs to be
        upright = _coloured(ImageOps.exif_transpose(image))
    upright.thumbnail((side_pixels, side_pixels))
    upright.info = {}
    return _saved(upright, most_bytes)


def _formats() -> list[str]:
    return [*FORMATS, *(["HEIF"] if "HEIF" in Image.OPEN else [])]


def _coloured(image: Image.Image) -> Image.Image:
    """In RGB, or RGBA where anything shines through."""
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        return image.convert("RGBA")
    if image.mode.startswith("I"):  # sixteen bits of grey
        return image.convert("I").point(lambda value: value / 256).convert("RGB")
    return image.convert("RGB")


def _saved(image: Image.Image, most_bytes: int) -> bytes | None:
    if image.mode == "RGBA":
        data = _as(image, "PNG")
        if len(data) <= most_bytes:
            return data
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image).convert("RGB")
    tried = (_as(image, "JPEG", quality=quality) for quality in _QUALITIES)
    return next((data for data in tried if len(data) <= most_bytes), None)


def _as(image: Image.Image, kind: str, **options: int) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


if __name__ == "__main__":  # pragma: no cover - tests run it as a process
    sys.exit(main(sys.argv[1:]))
