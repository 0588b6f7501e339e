"""The arguments of a server's tool: its JSON schema, hostile until it is looked at, and a check against it.

The schema goes to the model as it is. Of arguments only what can be told cheaply is checked here, since the
server checks them, too: no pattern is tried, and nothing takes more than a bounded number of steps.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from pydantic import ConfigDict, RootModel, model_validator
from pydantic_core import PydanticCustomError

from bridge.tools.mcp.text import plain

SCHEMA_BYTES = 32_768
DEPTH = 32
STEPS = 20_000
FAULTS = 8
WORD_BYTES = 1024  # of a description inside
MOST_NUMBER = 2**63
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "number": (int, float), "integer": (int, float),
}  # fmt: skip


class SchemaError(ValueError):
    """The schema cannot be used; the text says why and quotes nothing of it."""


class Arguments(RootModel[dict[str, Any]]):
    """Base of the models that ``arguments_model`` makes, each of one schema."""

    model_config = ConfigDict(frozen=True)
    schema_: ClassVar[dict[str, Any]] = {"type": "object"}

    @model_validator(mode="after")
    def _fits(self) -> "Arguments":
        if found := faults(self.schema_, self.root):
            raise PydanticCustomError("mcp_arguments", "{text}", {"text": "; ".join(found)})
        return self

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The schema as the server gave it."""
        copied: dict[str, Any] = json.loads(json.dumps(cls.schema_))
        return copied


def arguments_model(schema: Mapping[str, Any]) -> type[Arguments]:
    """A model of the arguments that a cleaned ``schema`` describes."""
    return type("McpArguments", (Arguments,), {"schema_": dict(schema), "__module__": __name__})


def cleaned(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` as a model may see it: an object's, bounded, its descriptions harmless.

    Raises:
        SchemaError: it is too large or too deep, no object's, or refers to what is not in it.
    """
    if schema.get("type", "object") != "object":
        raise SchemaError("its schema is no object's")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or not all(map(_ARGUMENT.fullmatch, properties)):
        raise SchemaError("its schema names an argument as models do not take it")
    found: dict[str, Any] = _clean({**schema, "type": "object"}, schema, DEPTH)
    size = len(json.dumps(found, ensure_ascii=False).encode(errors="replace"))
    if size > SCHEMA_BYTES:
        raise SchemaError(f"its schema is over {SCHEMA_BYTES} bytes")
    found.setdefault("properties", {})
    return found


def _clean(value: Any, root: Mapping[str, Any], depth: int) -> Any:
    if depth == 0:
        raise SchemaError("its schema is nested too deeply")
    if isinstance(value, list):
        return [_clean(each, root, depth - 1) for each in value]
    if not isinstance(value, dict):
        return _number(value)
    if isinstance(ref := value.get("$ref"), str) and _target(root, ref) is None:
        raise SchemaError("its schema refers to what is not in it")
    return {
        str(key): plain(each, WORD_BYTES)
        if key in ("description", "title") and isinstance(each, str)
        else _clean(each, root, depth - 1)
        for key, each in value.items()
    }


def _number(value: Any) -> Any:
    is_number = isinstance(value, int | float)
    if is_number and not (math.isfinite(value) if isinstance(value, float) else abs(value) < MOST_NUMBER):
        raise SchemaError("its schema has a number that JSON has not")
    return value


def _target(root: Mapping[str, Any], ref: str) -> Any:
    """What ``ref`` points to in ``root``; None: nothing there."""
    if not ref.startswith("#"):
        return None
    here: Any = root
    for part in ref[1:].split("/")[1:]:
        here = here.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(here, dict) else None
    return here


class _EnoughError(Exception):
    """The check took all its steps."""


def faults(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What is wrong with ``value``, the first few; nothing where that cannot be told in ``STEPS`` steps."""
    check = _Check(schema)
    found: list[str] = []
    try:
        for fault in check.of(schema, value, "", DEPTH):
            found.append(fault)
            if len(found) == FAULTS:
                break
    except _EnoughError:
        return found
    return found


class _Check:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = STEPS

    def of(self, schema: Any, value: Any, where: str, depth: int) -> Iterator[str]:
        """The faults of ``value``, which stands at ``where``."""
        self._left -= 1
        if self._left < 0 or depth == 0:
            raise _EnoughError
        if not isinstance(schema, dict):
            if schema is False:
                yield f"{where}: must not be there"
            return
        if isinstance(ref := schema.get("$ref"), str):
            yield from self.of(_target(self._root, ref), value, where, depth - 1)
        if fault := _plain_fault(schema, value):
            yield f"{where}: {fault}" if where else fault
            return
        if isinstance(value, dict):
            yield from self._object(schema, value, where, depth)
        if isinstance(value, list) and (items := schema.get("items")) is not None:
            for number, each in enumerate(value):
                yield from self.of(items, each, f"{where}[{number}]", depth - 1)
        yield from self._together(schema, value, where, depth)

    def _object(self, schema: dict[str, Any], value: dict[str, Any], where: str, depth: int) -> Iterator[str]:
        known = schema.get("properties")
        known = known if isinstance(known, dict) else {}
        inside = partial("{}.{}".format, where) if where else str
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and name not in value:
                yield f"{inside(name)}: missing"
        others = schema.get("additionalProperties") if "patternProperties" not in schema else None
        for name, each in value.items():
            if name in known:
                yield from self.of(known[name], each, inside(name), depth - 1)
            elif others is False:
                yield f"{inside(name)}: there is no such argument"
            elif isinstance(others, dict):
                yield from self.of(others, each, inside(name), depth - 1)

    def _together(self, schema: dict[str, Any], value: Any, where: str, depth: int) -> Iterator[str]:
        """What several schemas say of it."""
        for each in _several(schema, "allOf"):
            yield from self.of(each, value, where, depth - 1)
        for name in ("anyOf", "oneOf"):
            choices = _several(schema, name)
            found = [next(self.of(each, value, where, depth - 1), "") for each in choices]
            if found and all(found):
                yield (
                    found[0] if len(found) == 1 else f"{where or 'they'}: fits none of what is allowed there"
                )


def _several(schema: dict[str, Any], name: str) -> list[Any]:
    found = schema.get(name)
    return found if isinstance(found, list) else []


def _plain_fault(schema: dict[str, Any], value: Any) -> str:
    """What is wrong with ``value`` by itself, "" for nothing."""
    wanted = schema.get("type")
    types = [one for one in (wanted if isinstance(wanted, list) else [wanted]) if isinstance(one, str)]
    if types and not any(_is(one, value) for one in types):
        return f"must be {' or '.join(types)}"
    if isinstance(among := schema.get("enum"), list) and not any(_same(one, value) for one in among):
        return "is none of the values that are allowed there"
    if "const" in schema and not _same(schema["const"], value):
        return "must be the one value that is allowed there"
    return _bound_fault(schema, value)


def _bound_fault(schema: dict[str, Any], value: Any) -> str:
    if isinstance(value, str | list):
        least, most = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        return _outside(schema, len(value), least, most) and "has too much or too little in it"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _outside(schema, value, "minimum", "maximum") and "is too large or too small"
    return ""


def _outside(schema: dict[str, Any], size: float, least: str, most: str) -> str:
    low, high = schema.get(least), schema.get(most)
    below = isinstance(low, int | float) and size < low
    return "outside" if below or (isinstance(high, int | float) and size > high) else ""


def _is(name: str, value: Any) -> bool:
    """Whether ``value`` is of the type ``name``; one that nobody knows forbids nothing."""
    if isinstance(value, bool):
        return name == "boolean" or name not in _TYPES
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, (object,)))


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON has it, where true is not 1."""
    return (type(one) is type(other) and one == other) or (
        _is("number", one) and _is("number", other) and one == other
    )
