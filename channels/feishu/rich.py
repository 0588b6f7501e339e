"""Markdown as the rows of a post: headings, lists, quotes, rules, code and tables. Pure, total and linear.

Source: https://open.feishu.cn/document/uAjLw4CM/ukTMukTMukTM/im-v1/message/create_json (read 2026-11-30)
"""

import re
from collections.abc import Iterator

from bridge.channel.fences import Fence, find_fences
from bridge.channel.markdown import heading_of
from bridge.channel.tables import is_separator
from channels.feishu.inline import Element, Styles, elements, merged, words
from channels.feishu.table import Table, read_table

Row = list[Element]

_BULLETS = "•◦▪"
_INDENT = "    "
_QUOTE = "│ "
_MAX_QUOTES = 8
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}[ \t]*)\Z")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|(\d{1,9}[.)]))[ \t]+(?:\[([ xX])\][ \t]+)?")
_QUOTED = re.compile(r" {0,3}>[ \t]?")
_LANGUAGES = frozenset(
    "python c cpp go java kotlin swift php ruby rust javascript typescript bash shell sql json xml yaml html"
    " thrift".split()
)
_CALLED = {
    "py": "python", "python3": "python", "js": "javascript", "jsx": "javascript", "ts": "typescript",
    "tsx": "typescript", "sh": "shell", "zsh": "shell", "console": "shell", "yml": "yaml", "jsonc": "json",
    "c++": "cpp", "golang": "go", "kt": "kotlin", "rs": "rust", "rb": "ruby", "svg": "xml",
}  # fmt: skip


def rows(markdown: str) -> list[Row]:
    """The rows of ``markdown``, of which the first and the last are not blank."""
    found: list[Row] = []
    at = 0
    for fence in find_fences(markdown):
        found += _prose(markdown[at : fence.start])
        found.append([_code(fence, markdown)])
        at = fence.end
    found += _prose(markdown[at:])
    return _spaced(found)


def gains(found: list[Row]) -> bool:
    """Whether these rows show more than a plain text would."""
    return any(_is_more(each) for row in found for each in row)


def _is_more(element: Element) -> bool:
    if element["tag"] == "a":
        return bool(element["text"] != element["href"])
    return element["tag"] != "text" or bool(element.get("style"))


def _prose(text: str) -> list[Row]:
    lines = text.removesuffix("\n").split("\n") if text else []
    return list(_Prose(lines).rows())


class _Prose:
    """Lines outside code. Lists are indented by their depth, however they were written."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._indents: list[int] = []  # of the lists around, outermost first

    def rows(self) -> Iterator[Row]:
        at = 0
        while at < len(self._lines):
            following = self._lines[at + 1] if at + 1 < len(self._lines) else ""
            if "|" in self._lines[at] and is_separator(following):
                table = read_table(self._lines, at)
                yield from _table(table)
                at = table.end
            else:
                yield self._row(self._lines[at].rstrip("\r"))
                at += 1

    def _row(self, line: str, quotes: int = 0) -> Row:
        if (quoted := _QUOTED.match(line)) and quotes < _MAX_QUOTES:
            inner = self._row(line[quoted.end() :], quotes + 1)
            return merged([words(_QUOTE), *([words("———")] if inner[0]["tag"] == "hr" else inner)])
        if _RULE.match(line):
            return [{"tag": "hr"}]
        if (heading := heading_of(line)) is not None:
            return elements(heading, ("bold",)) or [words("")]
        if item := _ITEM.match(line):
            return self._item(item, line[item.end() :])
        if line[:1] not in (" ", "\t", ""):
            self._indents.clear()
        return elements(line) or [words("")]

    def _item(self, item: re.Match[str], text: str) -> Row:
        depth = self._depth(len(item[1].expandtabs(4)))
        bullet = {None: _BULLETS[min(depth, len(_BULLETS) - 1)], " ": "☐"}.get(item[3], "☑")
        return merged([words(f"{_INDENT * depth}{item[2] or bullet} "), *elements(text)])

    def _depth(self, indent: int) -> int:
        while self._indents and indent < self._indents[-1]:
            self._indents.pop()
        if not self._indents or indent > self._indents[-1] + 1:
            self._indents.append(indent)
        return len(self._indents) - 1


def _code(fence: Fence, markdown: str) -> Element:
    """A code block; a language that the platform does not know would cost the whole message."""
    indent = len(fence.opener) - len(fence.opener.lstrip())
    lines = markdown[fence.inner : fence.outer].rstrip().split("\n")
    text = "\n".join(line[indent:] if not line[:indent].strip() else line for line in lines)
    info = fence.opener.strip().lstrip("`~").split()
    language = _CALLED.get(info[0].lower(), info[0].lower()) if info else ""
    block: Element = {"tag": "code_block", "text": text or " "}
    return block | {"language": language.upper()} if language in _LANGUAGES else block


def _table(table: Table) -> Iterator[Row]:
    """Lined up where it is not too wide for a screen, else its cells in rows."""
    if aligned := table.aligned():
        yield [{"tag": "code_block", "text": aligned}]
        return
    for number, cells in enumerate(table.cells):
        styles: Styles = ("bold",) if number == 0 else ()
        yield elements(" | ".join(cells), styles) or [words("")]


def _spaced(found: list[Row]) -> list[Row]:
    """One blank row at most between others, none at the ends and beside what has space of its own."""
    kept: list[Row] = []
    for at, row in enumerate(found):
        before, following = kept[-1] if kept else [], found[at + 1] if at + 1 < len(found) else []
        if not _is_blank(row) or not (_is_apart(before) or _is_apart(following) or _is_blank(before)):
            kept.append(row)
    return kept[:-1] if kept and _is_blank(kept[-1]) else kept


def _is_apart(row: Row) -> bool:
    return not row or row[0]["tag"] in ("hr", "code_block")


def _is_blank(row: Row) -> bool:
    return all(each["tag"] == "text" and not each["text"].strip() for each in row)
