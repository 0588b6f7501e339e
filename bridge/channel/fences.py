"""Code in markdown, in blocks and in lines, as far as cutting a text needs it. Pure, and linear in time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENER = re.compile(
    r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]{1,4})*)"  # where it stands, behind a list's marks too
    r"(`{3,}(?=[^`\r\n]*$)|~{3,})([^\r\n]*)",
    re.MULTILINE,
)
_TICKS = re.compile(r"`+")
_NO_BLANK = re.compile(r"[^ \t]")


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
        indent, marks, language = _NO_BLANK.sub(" ", opened[1]), opened[2], opened[3]
        outer, end = _find_closer(text, inner, indent, marks)
        yield Fence(opened.start(), inner, outer, end, f"{indent}{marks}{language}".rstrip(), indent + marks)
        at = end


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """The code in lines, its backticks included: from a run of them to the next as long on the same line."""
    runs = list(_TICKS.finditer(text))
    later: dict[int, list[re.Match[str]]] = {}
    for run in reversed(runs):
        later.setdefault(len(run[0]), []).append(run)
    at = 0
    for run in runs:
        waiting = later[len(run[0])]
        waiting.pop()
        if run.start() >= at and waiting and text.find("\n", run.end(), waiting[-1].start()) < 0:
            at = waiting[-1].end()
            yield run.start(), at


def _next_opener(text: str, at: int) -> re.Match[str] | None:
    while at < len(text):
        if opened := _OPENER.match(text, at):
            return opened
        at = text.find("\n", at) + 1 or len(text)
    return None


def _find_closer(text: str, at: int, indent: str, marks: str) -> tuple[int, int]:
    """Where the closing line starts and ends, its line end included."""
    closer = re.compile(
        rf"[ \t]{{0,{len(indent) + 3}}}{re.escape(marks[0])}{{{len(marks)},}}[ \t\r]*(?:\n|\Z)"
    )
    while at < len(text):
        if closed := closer.match(text, at):
            return at, closed.end()
        at = text.find("\n", at) + 1 or len(text)
    return len(text), len(text)
