"""How platforms count the length of a text. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

Render = Callable[[str], str]

MIN_LIMIT: Final = 4  # the most that one character takes, in UTF-8 bytes


class Unit(StrEnum):
    """What a platform counts."""

    BYTES = "bytes"  # of UTF-8
    CODEPOINTS = "codepoints"
    UTF16 = "utf16"  # code units


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that one message takes: ``size`` counted in ``unit``."""

    size: int
    unit: Unit = Unit.BYTES


def measure(text: str, unit: Unit) -> int:
    """How long ``text`` is, counted in ``unit``."""
    match unit:
        case Unit.BYTES:
            return len(text.encode("utf-8", "surrogatepass"))
        case Unit.UTF16:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        case Unit.CODEPOINTS:
            return len(text)
        case _:
            assert_never(unit)
