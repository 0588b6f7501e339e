"""Cut a text into messages, losing nothing: at good places, whole characters, links and code blocks. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

from bridge.channel.clusters import inside_clusters
from bridge.channel.fences import Fence, code_spans, find_fences
from bridge.channel.tables import TableSpan, find_tables
from bridge.channel.units import MIN_LIMIT, Limit, Render, measure

_PIECE = r"[^()\s]{0,500}"
_LINK = re.compile(
    r"!?\[(?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){0,2000}\]"  # its words ...
    rf"\((?:<[^<>\n]{{1,16000}}>|[^()\s]{{1,16000}}(?:\({_PIECE}\){_PIECE}){{0,4}})"  # ... its address ...
    r"(?:[ ]\"[^\"\n]{0,300}\")?\)"  # ... its title
)
_ADDRESS = re.compile(
    r"https?://[^\s<>\"`\u3000-\u303f\uff00-\uff65]{1,16000}"
    r"|&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});",  # or an HTML entity
    re.IGNORECASE,
)
_ENDS = (  # good places to cut after, the best first
    re.compile(r"\n[ \t\r]*(?:\n[ \t\r]*)*\n"),  # paragraphs
    re.compile(r"\n"),
    re.compile(r"[.!?…][\"')\]*_]*\s+|[。！？；…][”’」』）]*\s*"),  # sentences
    re.compile(r"\s+|[，、：]"),  # words
)
_INK = re.compile(r"\S")
_KEPT_LINE = 200  # a code block's first and last line stay with its fences up to so many code points
_SHRINKS = 4  # rendering makes no text shorter than a quarter: what is longer is not rendered whole
_TRIES = 32  # good places that are measured before a plain cut


@dataclass(frozen=True, slots=True)
class Piece:
    """One part: ``text[start:end]`` between the lines that were added to it, of a block or a table."""

    start: int
    end: int
    before: str = ""
    after: str = ""


def split_text(text: str, limit: Limit, render: Render | None = None) -> list[str]:
    """Cut ``text`` into parts, each within ``limit`` once ``render``ed; they come back unrendered.

    Joined, the parts are the text, but for code blocks, which are closed at a cut and opened again with
    their language, and for tables, whose heads are repeated. White space at a cut stays with the part before.
    What a reader sees as one character is cut only when it is longer than a part; so is a link, an address or
    a table's row. An empty text has no parts, and a part is blank only where the text is blank for a part's
    length.

    Raises:
        ValueError: the limit is under 4, or one character is over it when rendered.
    """
    if limit.size < MIN_LIMIT:
        raise ValueError(f"a limit of {limit.size} cannot hold every character")
    return [
        piece.before + text[piece.start : piece.end] + piece.after for piece in pieces(text, limit, render)
    ]


def pieces(text: str, limit: Limit, render: Render | None = None) -> list[Piece]:
    """As ``split_text``, by positions, which follow each other without gaps."""
    return list(_Cutter(text, limit, render).cut()) if text else []


class _Cutter:
    def __init__(self, text: str, limit: Limit, render: Render | None) -> None:
        self._text, self._limit, self._render = text, limit, render
        self._last = len(text.rstrip())
        self._torn = inside_clusters(text)
        fences = list(find_fences(text))
        self._fences = [fence for fence in fences if self._is_small(f"{fence.opener}\n\n{fence.closer}")]
        self._starts = [fence.start for fence in self._fences]
        self._tables = [
            table for table in _tables(text, fences) if self._is_small(text[table.start : table.rows[0]])
        ]
        self._heads = [table.start for table in self._tables]
        self._locked = bytearray(self._torn)
        found = chain(_LINK.finditer(text), _ADDRESS.finditer(text))
        for start, end in chain(code_spans(text), map(re.Match.span, found)):
            self._lock(start, end)
        for fence in self._fences:
            self._lock_edges(fence)
        for table in self._tables:
            self._lock(table.start, table.rows[0] + 1)
            for row, after in pairwise((*table.rows, table.end)):
                self._lock(row, after)

    def cut(self) -> Iterator[Piece]:
        start = 0
        while start < len(self._text):
            end = self._next(start)
            yield self._piece(start, end)
            start = end

    def _next(self, start: int) -> int:
        rest = len(self._text) - start
        if rest <= _SHRINKS * self._limit.size and self._fits(start, len(self._text)):
            return len(self._text)
        reach = self._reach(start)
        content = _INK.search(self._text, start, reach)
        first = content.end() if content else start + 1
        tries = 0
        for end in self._good(start, reach):
            if first <= end < self._last and not self._locked[end]:
                if self._fits(start, end):
                    return end
                if (tries := tries + 1) >= _TRIES:
                    break
        return self._plain_cut(start, first, reach)

    def _good(self, start: int, reach: int) -> Iterator[int]:
        """Good places in the farther half of the window, by kind and then the farthest first."""
        half = start + (reach - start) // 2
        for kind in _ENDS:
            found = [match.end() for match in kind.finditer(self._text, half, reach)]
            yield from reversed(found)

    def _plain_cut(self, start: int, first: int, reach: int) -> int:
        """The farthest cut that spares links and clusters, or clusters, or at least characters."""
        for locked in (self._locked, self._torn, None):
            for end in range(reach, start, -1):
                spared = locked is None or not locked[end]
                blank_rest = locked is self._locked and not first <= end < self._last
                if spared and not blank_rest and self._fits(start, end):
                    return end
        raise ValueError("one character is over the limit when rendered")

    def _reach(self, start: int) -> int:
        """About the farthest end that fits: exact where longer texts render longer."""
        low, high = start, min(start + self._limit.size, len(self._text))
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits(start, middle):
                low = middle
            else:
                high = middle - 1
        return low

    def _fits(self, start: int, end: int) -> bool:
        piece = self._piece(start, end)
        part = piece.before + self._text[start:end] + piece.after
        shown = part if self._render is None else self._render(part)
        return measure(shown, self._limit.unit) <= self._limit.size

    def _piece(self, start: int, end: int) -> Piece:
        opened, closed = self._fence_at(start), self._fence_at(end)
        before = f"{opened.opener}\n" if opened else self._heads_at(start)
        gap = "" if self._text[end - 1] == "\n" else "\n"
        return Piece(start, end, before, f"{gap}{closed.closer}" if closed else "")

    def _fence_at(self, at: int) -> Fence | None:
        """The block that a cut at ``at`` would tear."""
        index = bisect_right(self._starts, at) - 1
        if index < 0:
            return None
        fence = self._fences[index]
        return fence if fence.inner <= at < fence.end else None

    def _heads_at(self, at: int) -> str:
        """The heads of the table that a cut at ``at`` would tear, with the line under them; else ""."""
        index = bisect_right(self._heads, at) - 1
        if index < 0:
            return ""
        table = self._tables[index]
        return self._text[table.start : table.rows[0]] if table.rows[0] <= at < table.end else ""

    def _is_small(self, lines: str) -> bool:
        """Whether a part has room for more than these lines, which are added to it."""
        shown = lines if self._render is None else self._render(lines)
        return max(measure(each, self._limit.unit) for each in (lines, shown)) <= self._limit.size // 2

    def _lock_edges(self, fence: Fence) -> None:
        """Keep a block's fences with some of its code, so that no cut leaves a block without any."""
        text, near = self._text, min(_KEPT_LINE, self._limit.size // 8)
        found = _INK.search(text, fence.inner, fence.outer)
        inked = found.start() if found else fence.inner
        first = text.find("\n", inked, fence.outer) + 1 or fence.outer
        self._lock(fence.start, first if first - fence.inner <= near else inked + 1)
        if fence.outer < fence.end:
            inked = fence.inner + len(text[fence.inner : fence.outer].rstrip())
            last = text.rfind("\n", fence.inner, inked) + 1 or fence.inner
            self._lock(last if fence.outer - last <= near else max(inked - 1, fence.inner), fence.end)

    def _lock(self, start: int, end: int) -> None:
        if measure(self._text[start:end], self._limit.unit) <= self._limit.size:
            self._locked[start + 1 : end] = b"\1" * (end - start - 1)


def _tables(text: str, fences: Iterable[Fence]) -> Iterator[TableSpan]:
    """The tables between the blocks of code."""
    at = 0
    for fence in fences:
        yield from find_tables(text, at, fence.start)
        at = fence.end
    yield from find_tables(text, at, len(text))
