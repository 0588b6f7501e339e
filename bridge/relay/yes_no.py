"""Yes and no in an owner's own words. Casual ones ("ok", "好") are none: they are said to anything."""

from __future__ import annotations

_YES = frozenset("yes y 是 是的 确认 同意 批准 允许 approve allow".split())
_NO = frozenset("no n 否 不 不要 不行 不可以 不同意 拒绝 取消 算了 deny refuse stop".split())
_CASUAL = frozenset(
    "ok okay k yep yeah yup sure fine nope nah 好 好的 好吧 好啊 可以 可以的 行 行吧 嗯 嗯嗯 对 对的 "
    "没问题 不用 不了".split()
)


def yes_or_no(text: str) -> bool | None:
    """What ``text`` alone says, whatever its case and the stops at its end; None for anything else."""
    word = _word(text)
    if word in _YES:
        return True
    return False if word in _NO else None


def is_casual(text: str) -> bool:
    """Whether ``text`` alone may be meant as yes or no, and as well as anything else."""
    return _word(text) in _CASUAL


def _word(text: str) -> str:
    return text.strip().lower().rstrip(".!。！").rstrip()
