"""How a rule says that it is not kept."""

from typing import Any

MOST_CHARACTERS = 160


class BrokenError(Exception):
    """The server did not do what the rule says; the text tells what it did instead."""


def check(kept: object, text: str) -> None:
    if not kept:
        raise BrokenError(text)


def same(got: object, wanted: object, what: str) -> None:
    if got != wanted:
        raise BrokenError(f"{what}: {brief(got)} where {brief(wanted)} is due")


def brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}… ({len(text)} characters)"
