"""What ``turnbridge doctor`` finds: one thing each, whether it is well, and what to do about it if not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Level(Enum):
    """How a thing is. Only a fault makes the doctor's answer no."""

    GOOD = "ok"
    UNKNOWN = "-"  # it could not be looked at, which need not be a fault
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """``check`` is what was looked at, in a word; ``text`` and ``cure`` are for a person, without secrets."""

    check: str
    level: Level
    text: str
    cure: str = ""

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "level": self.level.name.lower()}


def good(check: str, text: str) -> Finding:
    return Finding(check, Level.GOOD, text)


def unknown(check: str, text: str) -> Finding:
    return Finding(check, Level.UNKNOWN, text)


def warning(check: str, text: str, cure: str) -> Finding:
    return Finding(check, Level.WARNING, text, cure)


def fault(check: str, text: str, cure: str) -> Finding:
    return Finding(check, Level.FAULT, text, cure)


def lines(findings: Sequence[Finding]) -> Iterator[str]:
    """One line each, the cure below it, and the sum."""
    for each in findings:
        yield f"{each.level.value:<8} {each.check:<12} {each.text}"
        if each.cure:
            yield f"{'':<8} {'':<12} -> {each.cure}"
    faults = sum(each.level is Level.FAULT for each in findings)
    warnings = sum(each.level is Level.WARNING for each in findings)
    if not faults and not warnings:
        yield "all is well"
    else:
        yield f"{_counted(faults, 'fault')}, {_counted(warnings, 'warning')}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
