"""A line of markdown as a post's elements: styled words, links, code spans. Pure, total and linear in time.

Source: https://open.feishu.cn/document/uAjLw4CM/ukTMukTMukTM/im-v1/message/create_json (read 2026-11-30)
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from bridge.channel.markdown import plain

Element = dict[str, Any]
Styles = tuple[str, ...]

_HELD = "\0"  # stands for a piece that has no marks inside
_PIECE = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`{1,8})(?!`).{1,1000}?(?<!`)(?P=ticks)(?!`))"
    r"|\\(?P<escape>[\\`*_{}\[\]()#+.!|~>-])"
    r"|(?P<link>!?\[(?P<words>[^\[\]\n]{0,500})\]\([ ]?<?"
    r"(?P<to>[^\s()<>]{1,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500}){0,4})>?(?:[ ]\"[^\"\n]{0,300}\")?[ ]?\))"
    r"|<(?P<auto>https?://[^\s<>]{1,2000})>"
    r"|(?P<bare>https?://(?:(?!~~)[!#-)+-;=?-_a-~]){1,2000})",  # no further than ASCII: 见https://x.example，然后
    re.IGNORECASE,
)
_EMPHASIS = re.compile(
    r"(?<![A-Za-z0-9*])(?P<stars>\*{1,3})(?=[^\s*])(?P<starred>.{1,1000}?)(?<=[^\s*])(?P=stars)(?![A-Za-z0-9*])"
    r"|(?<![A-Za-z0-9_])(?P<bars>_{1,3})(?=[^\s_])(?P<barred>.{1,1000}?)(?<=[^\s_])(?P=bars)(?![A-Za-z0-9_])"
    r"|~~(?=[^\s~])(?P<struck>.{1,1000}?)(?<=[^\s~])~~"
)
_DUNDER = re.compile(r"__[A-Za-z0-9]+__")
_BY_MARKS: dict[int, Styles] = {1: ("italic",), 2: ("bold",), 3: ("bold", "italic")}
_WEB = re.compile(r"https?://[^\s/?#@]+(?:[/?#]|\Z)", re.IGNORECASE)
_ZERO_WIDTH = "\u200b"
_NESTED = 4


def elements(line: str, styles: Styles = ()) -> list[Element]:
    """The elements of one line, which together read as it does without its marks."""
    held: list[Element] = []

    def hold(found: re.Match[str]) -> str:
        piece, rest = _piece(found)
        held.append(piece)
        return _HELD + rest

    text = _PIECE.sub(hold, line.replace(_HELD, ""))
    pieces = iter(held)
    return merged(_styled(text, styles, pieces, 0))


def words(text: str, styles: Styles = ()) -> Element:
    """``text`` as it is."""
    return {"tag": "text", "text": text, "style": list(styles)} if styles else {"tag": "text", "text": text}


def _piece(found: re.Match[str]) -> tuple[Element, str]:
    """What stands for it, and what follows an address without being of it."""
    if found["link"] is not None:
        return _link(plain(found["words"]), found["to"]), ""
    if found["auto"] is not None:
        return _link(found["auto"], found["auto"]), ""
    if found["bare"] is not None:
        address = _without_ending(found["bare"])
        return _link(address, address), found["bare"][len(address) :]
    return words(found["code"] or found["escape"]), ""


def _link(text: str, to: str) -> Element:
    """A link, where the platform takes its address; others are refused with all of the message."""
    href = to.replace(_ZERO_WIDTH, "")
    if _WEB.match(href):
        return {"tag": "a", "text": text or to, "href": href}
    return words(f"{text} ({to})" if text and text != to else text or to)


def _without_ending(address: str) -> str:
    """Without the sentence's own marks behind it."""
    while address.endswith((".", ",", ";", ":", "!", "?", "'", "_", ")")):
        if address.endswith(")") and address.count("(") >= address.count(")"):
            break
        address = address[:-1]
    return address


def _styled(text: str, styles: Styles, pieces: Iterator[Element], depth: int) -> Iterator[Element]:
    at = 0
    for found in _EMPHASIS.finditer(text) if depth < _NESTED else ():
        yield from _unmarked(text[at : found.start()], styles, pieces)
        if _DUNDER.fullmatch(found.group()):
            yield words(found.group(), styles)
        else:
            marks = len(found["stars"] or found["bars"] or "")
            inner = found["starred"] or found["barred"] or found["struck"]
            more = _BY_MARKS.get(marks, ("lineThrough",))
            yield from _styled(inner, tuple(dict.fromkeys((*styles, *more))), pieces, depth + 1)
        at = found.end()
    yield from _unmarked(text[at:], styles, pieces)


def _unmarked(text: str, styles: Styles, pieces: Iterator[Element]) -> Iterator[Element]:
    for number, part in enumerate(text.split(_HELD)):
        if number:
            piece = next(pieces)
            yield {**piece, "style": list(styles)} if styles else piece
        if part:
            yield words(part, styles)


def merged(found: Iterable[Element]) -> list[Element]:
    """Neighbours of one style as one element."""
    out: list[Element] = []
    for each in found:
        if each["tag"] == "text" and out and out[-1]["tag"] == "text" and _style(out[-1]) == _style(each):
            out[-1] = {**out[-1], "text": out[-1]["text"] + each["text"]}
        else:
            out.append(each)
    return out


def _style(element: Element) -> list[str]:
    return list(element.get("style", ()))
