"""How a rule says that it is not kept."""

import json
from typing import Any

MOST_CHARACTERS = 100


class BrokenError(Exception):
    """The server did not do what the rule says; the text tells what it did instead."""


def check(kept: object, text: str) -> None:
    if not kept:
        raise BrokenError(text)


def same(got: object, wanted: object, what: str) -> None:
    if got != wanted:
        raise BrokenError(f"{what}: {brief(wanted)} was expected, and {brief(got)} came")


def brief(value: Any) -> str:
    """``value`` as JSON on one line, cut, and without what could play with a terminal."""
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    written = json.dumps(value, ensure_ascii=False, default=repr)
    text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in written)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}… ({len(text)} characters)"
