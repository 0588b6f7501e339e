"""Files that the echo agent makes: a picture, a text, a table, a document. Always the same bytes."""

import re
import struct
import zlib
from collections.abc import Callable
from pathlib import PurePath

MOST_BYTES = 32 * 1_048_576  # over every limit of a chat, so that the refusal of an attachment can be seen
MOST_PIXELS = 2000  # of a side


def make(name: str, size: str) -> bytes:
    """The bytes of a file called ``name``; its ending says which kind. Blocking for large ones.

    ``size`` is ``WIDTHxHEIGHT`` in pixels for a picture, else bytes, also as ``20k`` or ``3m``; ``""`` for a
    small file.

    Raises:
        ValueError: ``size`` is none, or over the limits.
    """
    ending = PurePath(name).suffix.lower()
    if ending == ".png":
        return _png(*_pixels(size or "320x200"))
    return _KINDS.get(ending, _text)(_bytes(size or "1k"))


def _pixels(size: str) -> tuple[int, int]:
    width, _, height = size.lower().partition("x")
    sides = _number(width), _number(height or width)
    if not all(1 <= side <= MOST_PIXELS for side in sides):
        raise ValueError(f"a picture's sides have 1 to {MOST_PIXELS} pixels")
    return sides


def _bytes(size: str) -> int:
    digits, factor = size.lower(), 1
    for unit, worth in (("k", 1024), ("m", 1_048_576)):
        if digits.endswith(unit):
            digits, factor = digits[:-1], worth
    count = _number(digits) * factor
    if count > MOST_BYTES:
        raise ValueError(f"a file has 0 to {MOST_BYTES} bytes")
    return count


def _number(digits: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", digits):
        raise ValueError("its size is WIDTHxHEIGHT for a picture, else bytes, such as 500 or 20k")
    return int(digits)


def _png(width: int, height: int) -> bytes:
    """Colours that run from corner to corner."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            rows += bytes((x * 255 // width, y * 255 // height, 160))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _text(size: int) -> bytes:
    return _filled(b"", lambda n: f"Line {n} of a file that the echo agent made.\n", size)


def _csv(size: int) -> bytes:
    return _filled(b"number,square,word\n", lambda n: f"{n},{n * n},echo\n", size)


def _filled(head: bytes, line: Callable[[int], str], size: int) -> bytes:
    data = bytearray(head)
    number = 0
    while len(data) < size:
        number += 1
        data += line(number).encode()
    return bytes(data[:size])


def _pdf(size: int) -> bytes:
    """One page with one line, padded by a comment; never under its own least size."""
    stream = b"BT /F1 24 Tf 72 720 Td (Made by the echo agent) Tj ET"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources 6 0 R >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Font << /F1 5 0 R >> >>",
    )
    data, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    if size > len(data):
        data += b"%" + b"." * (size - len(data)) + b"\n"
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(data)


_KINDS: dict[str, Callable[[int], bytes]] = {".csv": _csv, ".pdf": _pdf}
