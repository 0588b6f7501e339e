"""Markdown for chats that show plain text. Pure, total and linear in time."""

import re
from collections.abc import Iterator

from bridge.channel.fences import code_spans, find_fences
from bridge.channel.tables import cells_of, is_separator

_HELD = "\0"  # stands for a piece that nothing may change any more
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+")
_MARKED = re.compile(r"[-#*+=_`~\\\[<:]")  # what any of the marks below has
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}[ \t]*)\Z")
_BULLET = re.compile(r"([ \t]*(?:>[ \t]?)*)[-*+][ \t]+(\[[ xX]\][ \t]+)?")
_SPECIAL = re.compile(
    r"(?P<escape>\\[\\`*_{}\[\]()#+.!|~>-])"
    r"|(?P<link>!?\[(?P<text>[^\[\]\n]{0,500})\]\([ ]?<?"
    r"(?P<to>[^\s()<>]{1,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500}){0,4})>?(?:[ ]\"[^\"\n]{0,300}\")?[ ]?\))"
    r"|<(?P<auto>https?://[^\s<>]{1,2000})>"
    r"|(?P<bare>https?://[^\s<>*`\"]{1,2000})",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(
    r"(?<![A-Za-z0-9*])(\*{1,3})(?=[^\s*])([^*\n]+)(?<=[^\s*])\1(?![A-Za-z0-9*])"
    r"|(?<![A-Za-z0-9_])(_{1,3})(?=[^\s_])([^_\n]+)(?<=[^\s_])\3(?![A-Za-z0-9_])"
    r"|(~~)(?=[^\s~])([^~\n]+)(?<=[^\s~])~~"
)
_DUNDER = re.compile(r"__[A-Za-z0-9]+__")
_NESTED = 3  # emphasis in emphasis is undone so deep


def plain(markdown: str) -> str:
    """``markdown`` as text to read: no markers, bullets as ``•``, links as ``text (address)``.

    Code keeps its backticks and its content, as do HTML and its entities.
    """
    markdown = markdown.replace(_HELD, "")
    out, at = [], 0
    for fence in find_fences(markdown):
        out += [_prose(markdown[at : fence.start]), markdown[fence.start : fence.end]]
        at = fence.end
    return "".join([*out, _prose(markdown[at:])])


def _prose(text: str) -> str:
    return "\n".join(_lines(text.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    in_table = False
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if in_table and is_separator(line):
            continue
        in_table = "|" in line and (in_table or is_separator(following))
        yield _row(line) if in_table else _line(line)


def heading_of(line: str) -> str | None:
    """The words of a heading, without the marks around them; None for another line."""
    found = _HEADING.match(line)
    if not found:
        return None
    words = line[found.end() :].rstrip(" \t")
    bare = words.rstrip("#")
    return words if bare and bare[-1] not in " \t" else bare.rstrip(" \t")


def _row(line: str) -> str:
    return " | ".join(_inline(cell) for cell in cells_of(line))


def _line(line: str) -> str:
    if not _MARKED.search(line):
        return line
    if _RULE.match(line):
        return "———"
    if (heading := heading_of(line)) is not None:
        return _inline(heading)
    if bullet := _BULLET.match(line):
        box = {None: "", " ": "☐ "}.get(bullet.group(2) and bullet.group(2)[1], "☑ ")
        return f"{bullet.group(1)}• {box}{_inline(line[bullet.end() :])}"
    return _inline(line)


def _inline(text: str) -> str:
    held: list[str] = []
    text = "".join(_hold_specials(piece, code, held) for piece, code in _spans(text))
    for _ in range(_NESTED):
        text, changes = _EMPHASIS.subn(_bare, text)
        if not changes:
            break
    pieces = iter(held)
    return re.sub(_HELD, lambda _: next(pieces), text)


def _spans(text: str) -> Iterator[tuple[str, bool]]:
    """The text's pieces, and whether each is code."""
    at = 0
    for start, end in code_spans(text):
        yield text[at:start], False
        yield text[start:end], True
        at = end
    yield text[at:], False


def _hold_specials(piece: str, code: bool, held: list[str]) -> str:
    def hold(found: re.Match[str]) -> str:
        if found["link"] is None:
            held.append(found["auto"] or found["bare"] or found["escape"][1:])
            return _HELD
        words, to = found["text"], found["to"]
        held.append(to if words in ("", to) else f" ({to})")
        return _HELD if words in ("", to) else words + _HELD

    if code:
        held.append(piece)
        return _HELD
    return _SPECIAL.sub(hold, piece)


def _bare(found: re.Match[str]) -> str:
    if _DUNDER.fullmatch(found.group()):
        return found.group()
    return found[2] or found[4] or found[6] or ""
