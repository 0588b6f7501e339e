"""The schema of a server's tool, and arguments judged by it."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.tools.contract import ArgumentsError, read_arguments
from bridge.tools.mcp import schema as schemas
from bridge.tools.mcp.schema import SchemaError, arguments_model, cleaned, faults

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)

GROWING = {f"{n}": {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 9} for n in range(30)}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {"anything": 1}),
        (of(a={"type": "integer"}), {"a": 2.0}),
        (of(a={"type": ["string", "null"]}), {"a": None}),
        (of(a={"type": "unheard-of"}), {"a": True}),
        (of(a={"enum": [1, "x"]}), {"a": 1.0}),
        (of(a=True), {"a": 1}),
        (of(a={"anyOf": [{"type": "string"}, {"minimum": 3}]}), {"a": 3}),
        (of(a={"oneOf": []}), {"a": 3}),
        (of(a={"pattern": "^(b+)+$x"}), {"a": "b" * 40}),
        ({**of(), "additionalProperties": False, "patternProperties": {".": {}}}, {"x": 1}),
        ({**of(), "required": "not a list", "additionalProperties": {"type": "string"}}, {"x": "y"}),
        ({**of(a={"$ref": "#/properties/a"})}, {"a": 1}),
        ({"properties": 3, "allOf": 3, "type": 7, "enum": 2, "minimum": "x"}, {"a": [1]}),
    ],
)
def test_what_fits_or_cannot_be_told_is_left_to_the_server(schema: dict[str, Any], value: Any) -> None:
    assert faults(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({**of(), "required": ["a", 3]}, {}, "a: missing"),
        (of(a={"type": "string"}), {"a": 1}, "a: must be string"),
        (of(a={"type": "number"}), {"a": True}, "a: must be number"),
        (of(a={"type": "integer"}), {"a": 1.5}, "a: must be integer"),
        (of(a={"enum": [1]}), {"a": True}, "a: is none of the values that are allowed there"),
        (of(a={"const": "x"}), {"a": "y"}, "a: must be the one value that is allowed there"),
        (of(a={"maxLength": 1}), {"a": "yy"}, "a: has too much or too little in it"),
        (of(a={"minItems": 1}), {"a": []}, "a: has too much or too little in it"),
        (of(a={"minimum": 1}), {"a": 0}, "a: is too large or too small"),
        (of(a={"items": {"type": "null"}}), {"a": [None, 1]}, "a[1]: must be null"),
        (of(a=of(b={"type": "null"})), {"a": {"b": 1}}, "a.b: must be null"),
        (of(a=False), {"a": 1}, "a: must not be there"),
        ({**of(), "additionalProperties": False}, {"b": 1}, "b: there is no such argument"),
        ({**of(), "additionalProperties": {"type": "null"}}, {"b": 1}, "b: must be null"),
        (of(a={"allOf": [{"type": "null"}]}), {"a": 1}, "a: must be null"),
        (of(a={"anyOf": [{"type": "null"}]}), {"a": 1}, "a: must be null"),
        (
            of(a={"oneOf": [{"type": "null"}, {"type": "string"}]}),
            {"a": 1},
            "a: fits none of what is allowed there",
        ),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            "they: fits none of what is allowed there",
        ),
        ({**of(a={"$ref": "#/$defs/x~1y"}), "$defs": {"x/y": {"type": "null"}}}, {"a": 1}, "a: must be null"),
    ],
)
def test_what_does_not_fit_is_told_by_its_place_and_never_by_its_value(
    schema: dict[str, Any], value: Any, said: str
) -> None:
    assert faults(schema, value) == [said]
    with pytest.raises(ArgumentsError, match="the arguments: ") as refused:
        read_arguments(arguments_model(schema), value)
    assert said in str(refused.value)


def test_only_the_first_faults_are_told() -> None:
    assert len(faults({"required": [f"a{number}" for number in range(50)]}, {})) == schemas.FAULTS


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/0", "$defs": GROWING},
        {"$ref": "#"},
        {"properties": {"a": {"items": {"anyOf": [{"$ref": "#/properties/a"}] * 50}}}},
    ],
)  # fmt: skip
def test_a_schema_that_goes_round_in_circles_or_grows_takes_bounded_time(schema: dict[str, Any]) -> None:
    began = time.process_time()
    assert faults(schema, {"a": [[[[[1]]]]]}) == []
    assert time.process_time() - began < 2


def test_arguments_are_an_object_and_keep_the_servers_schema() -> None:
    model = arguments_model(cleaned(of(a={"type": "string", "description": "what"})))
    assert model.model_json_schema() == of(a={"type": "string", "description": "what"})
    assert json.dumps(read_arguments(model, {"a": "x"}).model_dump()) == '{"a": "x"}'
    with pytest.raises(ArgumentsError):
        read_arguments(model, ["a"])


def test_descriptions_are_made_harmless_and_what_is_missing_is_put_there() -> None:
    found = cleaned({"properties": {"a": {"description": "x\x1b[2J\u202ey" * 1000, "default": "\x1b"}}})
    assert found["type"] == "object"
    assert found["properties"]["a"]["description"].startswith("x[2Jyx[2Jy")
    assert len(found["properties"]["a"]["description"].encode()) <= schemas.WORD_BYTES
    assert cleaned({}) == {"type": "object", "properties": {}}


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"not": inner}
    return inner


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "string"}, "no object's"),
        ({"properties": []}, "names an argument"),
        (of(**{"a b": {}}), "names an argument"),
        (of(a={"$ref": "#/$defs/none"}), "refers to what is not in it"),
        (of(a={"$ref": "http://x.example/schema"}), "refers to what is not in it"),
        (of(a={"enum": ["x" * schemas.SCHEMA_BYTES]}), "is over"),
        (of(a={"minimum": float("nan")}), "a number that JSON has not"),
        (of(a={"minimum": 10**400}), "a number that JSON has not"),
        (deep(40), "too deeply"),
        (deep(5000), "too deeply"),
    ],
)
def test_a_schema_that_models_cannot_take_is_refused(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        cleaned(schema)


@given(JSON, JSON)
def test_whatever_a_schema_holds_it_is_refused_or_judged(schema: Any, value: Any) -> None:
    try:
        found = cleaned(schema if isinstance(schema, dict) else {"properties": {"a": schema}})
    except SchemaError:
        return
    faults(found, {"a": value})
