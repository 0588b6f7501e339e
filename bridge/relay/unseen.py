"""Characters that a reader does not see, or takes for another, written as their codes."""

from __future__ import annotations

import unicodedata
from itertools import chain

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_BLANK = frozenset(  # Default_Ignorable_Code_Point beyond those categories, and signs without a shape
    chain(
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x1D159),
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xE0000, 0xE1000),
    )
)


def visible(text: str) -> str:
    """``text`` with the codes of what does not show, or shows elsewhere; U+0020 and line ends stay."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return "".join(_code(each) if _is_unseen(each) else each for each in joined)


def _is_unseen(each: str) -> bool:
    return each not in " \n" and (ord(each) in _BLANK or unicodedata.category(each) in _UNSEEN)


def _code(each: str) -> str:
    return f"\\u{ord(each):04x}" if ord(each) < 0x10000 else f"\\U{ord(each):08x}"
