"""Fenced code blocks of markdown, as far as cutting a text needs them. Pure, and linear in time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENER = re.compile(r"([ \t]*)(`{3,}(?=[^`\r\n]*$)|~{3,})[^\r\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """A block by positions: its first line, its code from ``inner`` to ``outer``, its last line to ``end``.

    A block that is never closed runs to the end of the text, where ``outer`` and ``end`` then are.
    """

    start: int
    inner: int
    outer: int
    end: int
    opener: str
    closer: str


def find_fences(text: str) -> Iterator[Fence]:
    """The blocks of ``text`` in order. An indented fence counts, as in lists; one without end does not."""
    at = 0
    while opened := _next_opener(text, at):
        inner = text.find("\n", opened.end()) + 1
        if not inner:
            return
        outer, end = _find_closer(text, inner, opened)
        yield Fence(
            opened.start(), inner, outer, end, opened.group().rstrip(), opened.group(1) + opened.group(2)
        )
        at = end


def _next_opener(text: str, at: int) -> re.Match[str] | None:
    while at < len(text):
        if opened := _OPENER.match(text, at):
            return opened
        at = text.find("\n", at) + 1 or len(text)
    return None


def _find_closer(text: str, at: int, opened: re.Match[str]) -> tuple[int, int]:
    """Where the closing line starts and ends, its line end included."""
    indent, marks = opened.group(1), opened.group(2)
    closer = re.compile(
        rf"[ \t]{{0,{len(indent) + 3}}}{re.escape(marks[0])}{{{len(marks)},}}[ \t\r]*(?:\n|\Z)"
    )
    while at < len(text):
        if closed := closer.match(text, at):
            return at, closed.end()
        at = text.find("\n", at) + 1 or len(text)
    return len(text), len(text)
