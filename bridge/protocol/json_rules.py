"""JSON as the protocol allows it, read with care and without haste. `codec` comes here when in doubt."""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

from bridge.protocol.errors import ProtocolError, Reason

MAX_NESTING = 127
"""Containers inside each other, the outermost counted."""

_ESCAPES = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>u[dD][89a-fA-F])|.)")
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<open>[\[{])|(?P<close>[\]}])')


class JsonObject(dict[str, Any]):
    """An object that knows which of its keys were given more than once; the last value stands."""

    repeated: frozenset[str] = frozenset()


def parse(line: bytes) -> Any:
    """Read one JSON value. ``-0`` becomes the float that it is to the protocol, not an integer.

    Raises:
        ProtocolError: ``not_json``: also a byte order mark, NaN, a number that no double holds, a lone
            surrogate, more than ``MAX_NESTING`` containers inside each other.
    """
    try:
        text = line.decode()
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_double,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError):
        raise ProtocolError(Reason.NOT_JSON) from None  # the cause would show what the line holds
    if _lone_surrogate(text) or _nesting(text) > MAX_NESTING:
        raise ProtocolError(Reason.NOT_JSON)
    return value


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = JsonObject(pairs)
    if len(found) < len(pairs):
        seen = Counter(key for key, _ in pairs)
        found.repeated = frozenset(key for key, times in seen.items() if times > 1)
    return found


def _integer(digits: str) -> int | float:
    if digits == "-0":
        return -0.0
    if len(digits) > 300:  # before int(), which is slow on very long ones and refuses some
        _double(digits)
    return int(digits)


def _double(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)


def _refuse(word: str) -> NoReturn:
    raise ProtocolError(Reason.NOT_JSON)


def _lone_surrogate(text: str) -> bool:
    return "\\u" in text and any(escape["lone"] for escape in _ESCAPES.finditer(text))


def _nesting(text: str) -> int:
    """How deep the brackets of ``text``, which is JSON, go."""
    if text.count("[") + text.count("{") <= MAX_NESTING:
        return 0
    depth = deepest = 0
    for token in _BRACKETS.finditer(text):
        if token["open"]:
            depth += 1
            deepest = max(deepest, depth)
        elif token["close"]:
            depth -= 1
    return deepest
