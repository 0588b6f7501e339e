"""A card as text: the digest that the platform gives of one, or its own JSON of either version.

Pure; never fails.

Source: https://open.feishu.cn/document/feishu-cards/card-json-v2-structure and …/card-json-structure
"""

from collections.abc import Iterator
from typing import Any

from channels.feishu.wire import read_object, text_of

Node = dict[str, Any]

WITHHELD = "(its content is shown to people only)"

_MAX_DEPTH = 24
_MAX_LINES = 200
_MAX_COLUMNS = 50
_LINE_CHARACTERS = 4000
_INSTEAD = ("请升级至最新版本客户端", "卡片内容不支持查看")  # what stands for a card that bots are not shown
_PRESSED = frozenset({"button", "overflow", "select_static", "multi_select_static", "picker_time"})
_INSIDE = (  # where words stand, in the order in which a reader meets them
    "header", "title", "subtitle", "text", "content", "property", "fields", "label", "placeholder", "alt",
    "options", "body", "elements", "columns", "actions", "extra",
)  # fmt: skip
_WRAPPED = ("json_card", "user_dsl")  # a card as text within JSON


def read_card(fields: Node) -> str:
    """``[Card: title]`` and below it a line for each part that holds words; buttons in brackets."""
    card = _unwrapped(fields)
    title = _title(card)
    body = {key: value for key, value in card.items() if key not in ("header", "title")}
    body.setdefault("elements", _first_language(card.get("i18n_elements")))
    lines = _bounded(_block(body, 0))
    if any(mark in line for line in lines for mark in _INSTEAD):
        lines = [WITHHELD]
    return "\n".join([f"[Card: {title}]" if title else "[Card]", *lines])


def _unwrapped(fields: Node) -> Node:
    for key in _WRAPPED:
        inner = read_object(text_of(fields, key)) if text_of(fields, key) else None
        if inner is not None:
            return inner
    data = fields.get("data")
    return data if fields.get("type") in ("template", "card") and isinstance(data, dict) else fields


def _title(card: Node) -> str:
    header = card.get("header")
    return ", ".join(_words(header if isinstance(header, dict) else {"title": card.get("title")}, 0))


def _first_language(value: object) -> object:
    return next(iter(value.values()), None) if isinstance(value, dict) else None


def _bounded(lines: Iterator[str]) -> list[str]:
    """Not all of a card that is meant to be endless, and no line twice in a row."""
    kept: list[str] = []
    for line in lines:
        if len(kept) >= _MAX_LINES:
            return [*kept, "…"]
        if line.strip() and kept[-1:] != [line]:
            kept.append(line[:_LINE_CHARACTERS])
    return kept


def _block(value: object, depth: int) -> Iterator[str]:
    """One line for each thing that stands by itself; a list within a list is a row of pieces."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, list):
        for each in value:
            yield from [_joined(each, depth + 1)] if isinstance(each, list) else _block(each, depth + 1)
    elif isinstance(value, dict):
        yield from _node(value, depth)


def _node(node: Node, depth: int) -> Iterator[str]:
    tag = text_of(node, "tag")
    if tag in _PRESSED:
        label = " / ".join(_words(node, depth))
        yield f"[{label}]" if label else ""
    elif tag == "a":
        yield _link(text_of(node, "text"), text_of(node, "href"))
    elif tag in ("img", "image"):
        yield " ".join(["[Image]", *_words({"alt": node.get("alt")}, depth)])
    elif tag == "at":
        yield f"@{text_of(node, 'user_name') or 'someone'}"
    elif tag == "hr":
        yield "---"
    elif tag == "table":
        yield from _table(node)
    else:
        yield from (line for key in _INSIDE for line in _block(node.get(key), depth + 1))


def _words(node: Node, depth: int) -> list[str]:
    return [line for key in _INSIDE for line in _block(node.get(key), depth + 1) if line]


def _joined(value: object, depth: int) -> str:
    return " ".join(line for line in _block(value if isinstance(value, list) else [value], depth) if line)


def _link(text: str, href: str) -> str:
    return f"[{text}]({href})" if text and href and text != href else text or href


def _table(node: Node) -> Iterator[str]:
    columns = [each for each in _listed(node.get("columns"))[:_MAX_COLUMNS] if isinstance(each, dict)]
    yield " | ".join(text_of(each, "display_name") or text_of(each, "name") for each in columns)
    for row in _listed(node.get("rows"))[: _MAX_LINES + 1]:
        if isinstance(row, dict):
            yield " | ".join(_cell(row.get(text_of(each, "name"))) for each in columns)


def _cell(value: object) -> str:
    return (
        f"{value:g}"
        if isinstance(value, float)
        else str(value)
        if isinstance(value, int)
        else _joined(value, 0)
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
