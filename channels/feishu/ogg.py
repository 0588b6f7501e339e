"""Whether a file is Opus in Ogg, which the platform plays as a voice message, and how long it lasts. Pure.

Source: RFC 3533 and RFC 7845 (read 2026-11-30)
"""

import struct

EDGE_BYTES = 65_536  # of a file's start and end: no page is longer
_PAGE = b"OggS"
_FIRST = b"OpusHead"
_HEAD_BYTES = 27  # of a page, before the lengths of its segments
_SKIPPED_AT = 10  # in the first packet: samples to leave out
_PER_MS = 48  # samples, whatever the recording had
_MAX_MS = 86_400_000


def is_opus(start: bytes) -> bool:
    """By the file's first bytes."""
    return start.startswith(_PAGE) and _FIRST in start[: _HEAD_BYTES + 255 + len(_FIRST)]


def opus_ms(start: bytes, end: bytes) -> int:
    """How long it lasts in ms, from its first and last ``EDGE_BYTES``; 0 where that cannot be told."""
    first, last = start.find(_FIRST), end.rfind(_PAGE)
    try:
        (skipped,) = struct.unpack_from("<H", start, first + _SKIPPED_AT)
        (samples,) = struct.unpack_from("<q", end, last + 6)
    except struct.error:
        return 0
    ms = (samples - skipped) // _PER_MS
    return int(ms) if first >= 0 and last >= 0 and 0 < ms < _MAX_MS else 0
