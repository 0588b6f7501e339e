"""Decide from a line's bytes alone whether it surely holds nothing besides what was read from it.

Pydantic ignores repeated keys and whatever stands under an unknown one. Two looks show that there is none, so
that `json_rules` need not read the line once more:

- Either needs a string more than what was read, and a string has two quotes. So a line with just the quotes
  that its type must have holds neither, and no quote in a text. All that may break a rule then is ``-0``.
- A line that is, byte for byte, what would be written for the value read from it holds what is written and
  no more. The rules refuse nothing that is written, but for free-form values that are too deep or too large.

This is done for every message and written for speed; `codec` has the first look in its own function, since a
call costs as much as the look.
"""

from enum import StrEnum
from typing import Any, Literal, NamedTuple, get_origin

from bridge.protocol.wire import Wire

SHORT = 1024
"""Bytes under which count() is quicker than replace(), which is six times as fast on a long text."""

_FREE_LEVELS = 100
"""How deep free-form values may be: the messages around them need less than the rest of 127."""

_HARMLESS = 256
"""Bytes in which no free-form value is too deep, nor a number too large."""


class Shape(NamedTuple):
    """What lines of a type must hold."""

    quotes: int  # with the required fields and the tag alone; 0 where that does not tell enough
    integers: tuple[str, ...]
    free: tuple[str, ...]


class _Shapes(dict[type[Wire | StrEnum], Shape]):
    def __missing__(self, wire: type[Wire] | type[StrEnum]) -> Shape:
        self[wire] = _shape(wire)
        return self[wire]


SHAPES = _Shapes()


def is_as_written(line: bytes, model: Any, free: tuple[str, ...]) -> bool:
    """Whether ``line`` is what would be written for ``model``, and the values under ``free`` are harmless."""
    if model.__pydantic_serializer__.to_json(model) != line:
        return False
    return len(line) < _HARMLESS or all(_is_harmless(getattr(model, name), _FREE_LEVELS) for name in free)


def is_tagged(wire: Any) -> bool:
    """Whether it is a struct with a tag. Looks count on that being there, as it is inside a union."""
    if not isinstance(wire, type) or not issubclass(wire, Wire):
        return False
    return any(get_origin(field.annotation) is Literal for field in wire.model_fields.values())


def quotes_of(line: bytes) -> int:
    """Those of a long line, or -1 where counting is dear and of no use: code has many inside its text."""
    return -1 if b'\\"' in line[:SHORT] else len(line) - len(line.replace(b'"', b""))


def _shape(wire: type[Wire] | type[StrEnum]) -> Shape:
    if issubclass(wire, StrEnum):
        return Shape(2, (), ())  # a line that is one text
    kinds = {name: field.annotation for name, field in wire.model_fields.items()}
    tags = [name for name, kind in kinds.items() if get_origin(kind) is Literal]
    due = [kinds[name] for name, field in wire.model_fields.items() if field.is_required()]
    integers = tuple(
        name for name, field in wire.model_fields.items() if field.is_required() and kinds[name] is int
    )
    told = all(kind in (str, int, bool) for kind in due)
    quotes = 2 * (len(due) + due.count(str) + 2 * len(tags)) if told else 0
    return Shape(quotes, integers, tuple(name for name, kind in kinds.items() if kind is Any))


def _is_harmless(value: Any, levels: int) -> bool:
    """Whether a free-form value is not too deep, and all its numbers fit into a double."""
    match value:
        case None | bool() | str():
            return True
        case dict() if levels:
            return all(_is_harmless(item, levels - 1) for item in value.values())
        case list() if levels:
            return all(_is_harmless(item, levels - 1) for item in value)
        case int() | float():
            return abs(value) < 2**64
    return False
