"""A QR code in a terminal, for a phone to read."""

from __future__ import annotations

import io
import sys


def drawn(text: str) -> str:
    """``text`` as a QR code of half blocks, a few lines high, with a quiet zone around it."""
    import segno

    out = io.StringIO()
    segno.make_qr(text, error="l").terminal(out, border=2, compact=True)
    return out.getvalue()


def show(text: str) -> None:
    """Draw it where somebody can look at it: on a terminal that has the characters for it."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if sys.stdout.isatty() and encoding.startswith("utf"):
        print(drawn(text))
