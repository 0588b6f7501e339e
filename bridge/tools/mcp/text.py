"""What a server wrote, made harmless for a model, a terminal and a log."""

import re
import unicodedata

_UNSEEN = frozenset(
    {"Cc", "Cf", "Cs", "Co", "Cn"}
)  # controls, marks that hide or turn text, what is no character
_TOOL = re.compile(r"[^A-Za-z0-9_-]")


def plain(text: str, most_bytes: int) -> str:
    """``text`` without what nobody sees, its lines kept, in at most ``most_bytes``; ``…`` when cut."""
    seen = "".join(
        each
        for each in text[: 2 * most_bytes].replace("\t", " ")
        if each == "\n" or unicodedata.category(each) not in _UNSEEN
    ).strip()
    data = seen.encode()
    if len(data) <= most_bytes and len(text) <= 2 * most_bytes:
        return seen
    return data[: max(0, most_bytes - len("…".encode()))].decode(errors="ignore") + "…"


def line(text: str, most_bytes: int = 200) -> str:
    """The same, in one line."""
    return plain(" ".join(text[: 2 * most_bytes].split()), most_bytes)


def safe(name: str) -> str:
    """``name`` with ``_`` for what models do not take in a tool's name."""
    return _TOOL.sub("_", name)
