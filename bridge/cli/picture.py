"""A picture to try things with, drawn without any library."""

from __future__ import annotations

import struct
import zlib

NAME = "晚霞.png"
WIDTH, HEIGHT = 480, 300
SKY = ((29, 32, 77), (122, 57, 112), (236, 118, 84), (255, 205, 122))  # from above to the horizon
SUN, SUN_RADIUS = (255, 244, 214), 34


def sunset() -> bytes:
    """A PNG of a few KiB. Source: the PNG specification (third edition), chapter 5."""
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + _row(y) for y in range(HEIGHT))
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _row(y: int) -> bytes:
    sky = bytes(_sky(y))
    half = int(max(0, SUN_RADIUS**2 - (y - HEIGHT * 2 // 3) ** 2) ** 0.5)
    if y > HEIGHT * 2 // 3:
        half = half // 2 if y % 6 < 3 else half  # its reflection
    side = WIDTH // 2 - half
    return sky * side + bytes(SUN) * (2 * half) + sky * (WIDTH - side - 2 * half)


def _sky(y: int) -> tuple[int, ...]:
    at = (
        min(y, 2 * HEIGHT // 3 - 1 if y < 2 * HEIGHT // 3 else (HEIGHT - y) * 2)
        * (len(SKY) - 1)
        * 3
        / (2 * HEIGHT)
    )
    low = min(int(at), len(SKY) - 2)
    part = min(at - low, 1.0)
    return tuple(round(a + (b - a) * part) for a, b in zip(SKY[low], SKY[low + 1], strict=True))
