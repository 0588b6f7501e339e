"""Read a line into a wire type, by the protocol's strict rules, and write one.

Pydantic reads first, fast and a little too lax. Only a line that may hold what it lets pass is read once
more, by `json_rules`. What pydantic read is the result in either case.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bridge.protocol import json_rules
from bridge.protocol.errors import ProtocolError, Reason
from bridge.protocol.events import ServerEvent
from bridge.protocol.inventory import SHAPES, SHORT, is_as_written, is_tagged, quotes_of
from bridge.protocol.messages import ClientMessage
from bridge.protocol.wire import Wire, write

__all__ = ["read_client_message", "read_server_event", "reader", "write"]


def reader(wire: Any, otherwise: Callable[[bytes], Any] | None = None) -> Callable[[bytes], Any]:
    """A function that reads one wire type, a union of them or an enum. Make it once, at import.

    It takes a line, with or without its ending, and raises ProtocolError if that is not of the type. A line
    of a type that the union does not know is read by ``otherwise``, where that is given. A struct with a tag
    is read inside its union alone.

    >>> from bridge.protocol.shared import Usage
    >>> reader(Usage)(b'{"input_tokens":7}')
    Usage(input_tokens=7, output_tokens=None)
    """
    if is_tagged(wire):
        raise TypeError(f"{wire.__name__} has a tag: read the union that it belongs to")
    validate = TypeAdapter(wire).validator.validate_json

    def read(line: bytes) -> Any:
        try:
            model = validate(line)
        except ValidationError as error:
            refusal = _refusal(line, error)
            if otherwise is None or (refusal.reason, refusal.field) != (Reason.UNKNOWN_VARIANT, "type"):
                raise refusal from None  # its text holds the values
            return otherwise(line)
        quotes, integers, free = SHAPES[type(model)]
        if (line.count(b'"') if len(line) < SHORT else quotes_of(line)) == quotes:
            fields = model.__dict__
            for name in integers:
                if not fields[name]:
                    break  # it may have been -0
            else:
                return model
        if not is_as_written(line, model, free):
            _check(json_rules.parse(line), model)
        return model

    return read


read_client_message: Callable[[bytes], ClientMessage] = reader(ClientMessage)
read_server_event: Callable[[bytes], ServerEvent] = reader(ServerEvent)


def _check(tree: Any, model: Any, path: tuple[str, ...] = ()) -> None:
    """Refuse what pydantic lets pass: a known key given twice, and ``-0`` as an integer."""
    if isinstance(model, Wire):
        path = (*path, *(getattr(model, tag) for tag in ("type", "action") if tag in model.model_fields_set))
        for name in sorted(tree.repeated & type(model).model_fields.keys()):
            raise ProtocolError(Reason.DUPLICATE_FIELD, ".".join((*path, name)))
        for name in model.model_fields_set:
            _check(tree[name], getattr(model, name), (*path, name))
    elif isinstance(model, tuple):
        for at, (branch, item) in enumerate(zip(tree, model, strict=True)):
            _check(branch, item, (*path, str(at)))
    elif isinstance(model, int) and isinstance(tree, float):
        raise ProtocolError(Reason.WRONG_TYPE, ".".join(path))


_WORD = {
    "json_invalid": Reason.NOT_JSON,
    "missing": Reason.MISSING_FIELD,
    "greater_than_equal": Reason.OUT_OF_RANGE,
    "less_than_equal": Reason.OUT_OF_RANGE,
    "union_tag_not_found": Reason.MISSING_TAG,
}
_NO_OBJECT = ("dict_type", "model_type")
_CHOICES = ("enum", "literal_error", "union_tag_invalid")


def _refusal(line: bytes, error: ValidationError) -> ProtocolError:
    tree = json_rules.parse(line)
    first = error.errors(include_url=False)[0]
    path = ".".join(map(str, first["loc"]))
    if not path and (tree == {} or first["type"] in _NO_OBJECT):
        return ProtocolError(Reason.NOT_A_MESSAGE)
    if "discriminator" in first.get("ctx", {}):
        tag = first["ctx"]["discriminator"].strip("'")
        path = f"{path}.{tag}" if path else tag
    return ProtocolError(_reason(first), path)


def _reason(error: Mapping[str, Any]) -> Reason:
    given = error["input"]
    if error["type"] == "union_tag_invalid":
        given = given[error["ctx"]["discriminator"].strip("'")]
    if error["type"] in _CHOICES and isinstance(given, str):
        return Reason.UNKNOWN_VARIANT
    return _WORD.get(error["type"], Reason.WRONG_TYPE)
