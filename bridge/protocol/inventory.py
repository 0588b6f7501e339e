"""Decide from a line's quotes alone whether it holds anything besides what was read from it.

Pydantic ignores repeated keys and whatever stands under an unknown one. Either needs at least one string more
than the values that were read, so a line with just their number of quotes holds neither, and most other
refusals of `json_rules` (depth, NaN, numbers out of range) can only stand there or in free-form values.
What is left is looked at here: ``-0``, and the free-form values themselves.

This runs for every message and is written for speed: no ``isinstance`` with models, which is slow.
"""

from typing import Any, Literal, NamedTuple, get_origin

from bridge.protocol.wire import Wire

_DOUBT = -(2**63)
"""Added to a count, it fits no line."""

_SHORT = 1024
"""Bytes under which count() is quicker than replace(), which is six times as fast on a long text."""

_FREE_LEVELS = 100
"""How deep free-form values may be for a count: the messages around them need less than the rest of 127."""


class _Shape(NamedTuple):
    """What every line of a type must hold: its required fields and its tag."""

    names: frozenset[str]
    strings: int  # keys included, without what is inside `nested`
    integers: tuple[str, ...]
    nested: tuple[str, ...]


class _Shapes(dict[type[Wire], _Shape]):
    def __missing__(self, wire: type[Wire]) -> _Shape:
        kinds = {
            name: Literal if get_origin(field.annotation) is Literal else field.annotation
            for name, field in wire.model_fields.items()
            if field.is_required() or get_origin(field.annotation) is Literal
        }
        strings = len(kinds) + sum(kind in (str, Literal) for kind in kinds.values())
        integers = tuple(name for name, kind in kinds.items() if kind is int)
        nested = tuple(name for name, kind in kinds.items() if kind not in (str, int, bool, Literal))
        self[wire] = _Shape(frozenset(kinds), strings, integers, nested)
        return self[wire]


_SHAPES = _Shapes()


def nothing_else(line: bytes, model: Wire) -> bool:
    """Whether ``line``, from which ``model`` was read, surely holds nothing that the protocol refuses."""
    names, strings, integers, nested = _SHAPES[type(model)]
    if nested or model.__pydantic_fields_set__ != names:
        strings = _strings_of(model, line)
    else:
        fields = model.__dict__
        for name in integers:
            if not fields[name] and b"-0" in line:
                return False
    inside = _quotes(line) - 2 * strings
    return not inside or (inside > 0 and inside == _escaped_quotes(line))


def _quotes(line: bytes) -> int:
    if len(line) < _SHORT:
        return line.count(b'"')
    return len(line) - len(line.replace(b'"', b""))


def _escaped_quotes(line: bytes) -> int:
    return line.replace(b"\\\\", b"").count(b'\\"')


def _strings_of(model: Wire, line: bytes) -> int:
    """How many strings, keys included, a line needs for ``model``; ``_DOUBT`` if that does not settle it."""
    names, count, integers, nested = _SHAPES[type(model)]
    given, fields = model.__pydantic_fields_set__, model.__dict__
    for name in integers:
        if not fields[name] and b"-0" in line:
            return _DOUBT
    for name in nested:
        count += _strings(fields[name], line)
    if given != names:
        if not given >= names:
            return _DOUBT  # no tag, in a struct that is read on its own
        for name in given - names:
            count += 1 + _strings(fields[name], line)
    return count


def _strings(value: Any, line: bytes) -> int:
    kind = type(value)
    if kind is str:
        return 1
    if kind is int:
        return 0 if 0 < value < 2**64 or (not value and b"-0" not in line) else _DOUBT
    if kind in _SHAPES or hasattr(kind, "__pydantic_fields__"):
        return _strings_of(value, line)
    if kind is tuple:
        return sum([_strings(item, line) for item in value])
    if isinstance(value, str):
        return 1  # a member of an enum
    return _free_strings(value, _FREE_LEVELS)


def _free_strings(value: Any, levels: int) -> int:
    match value:
        case str():
            return 1
        case None | bool():
            return 0
        case dict() if levels:
            return len(value) + sum(_free_strings(item, levels - 1) for item in value.values())
        case list() if levels:
            return sum(_free_strings(item, levels - 1) for item in value)
        case int() | float() if abs(value) < 2**64:
            return 0
    return _DOUBT
