"""Small files of many kinds, and some that lie."""

import io
import struct
import zlib
from typing import Any

import pillow_heif
from PIL import Image


def picture(kind: str, size: tuple[int, int] = (3, 2), mode: str = "RGB", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size).save(out, kind, **options)
    return out.getvalue()


def animated(kind: str = "WEBP") -> bytes:
    out = io.BytesIO()
    frames = [Image.new("RGB", (3, 2), (shade, 0, 0)) for shade in (0, 200)]
    frames[0].save(out, kind, save_all=True, append_images=frames[1:])
    return out.getvalue()


def heic(size: tuple[int, int] = (3, 2)) -> bytes:
    """A photo as some phones send it."""
    out = io.BytesIO()
    pillow_heif.from_pillow(Image.new("RGB", size)).save(out)
    return out.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and has no pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(b"")), (b"IEND", b""))
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


PNG = picture("PNG")
HTML = b"<!DOCTYPE html><html><body>x</body></html>"
HEIC = b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic" + b"\x00" * 40
PDF = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
