"""Yes and no in an owner's own words. Too casual ones ("ok", "好") are none: they are said to anything."""

from __future__ import annotations

_YES = frozenset("yes y 是 是的 确认 同意".split())
_NO = frozenset("no n 否 不 不要 取消 算了 stop".split())


def yes_or_no(text: str) -> bool | None:
    """What ``text`` alone says, whatever its case and the stops at its end; None for anything else."""
    word = text.strip().lower().rstrip(".!。！").rstrip()
    if word in _YES:
        return True
    return False if word in _NO else None
