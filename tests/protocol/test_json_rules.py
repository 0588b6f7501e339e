"""Strict JSON, where Python's own reader is laxer."""

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.errors import ProtocolError, Reason
from bridge.protocol.json_rules import JsonObject, parse

NESTED = "[" * 127 + "]" * 127


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xef\xbb\xbf1",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"-1e999",
        b"9" * 400,
        b"[" + b"9" * 5000 + b"]",
        b"01",
        b"+1",
        b"1.",
        b'"\t"',
        b'"\x00"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\xaf"',
        b'"\\ud800"',
        b'"\\uDC00"',
        b'"\\ud83d\\ud83d"',
        b'"\\ud83d\\\\ude42"',
        b'{"\\uDFff":1}',
        f"[{NESTED}]".encode(),
        b'{"a":' * 128 + b"1" + b"}" * 128,
        b"[" * 1_000_000,
        b"1 1",
        b"{'a':1}",
    ],
)
def test_what_the_protocol_refuses_is_not_json(line: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        parse(line)
    assert refused.value.reason is Reason.NOT_JSON


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b' {"a" : [1, true, null]}\r\n', {"a": [1, True, None]}),
        (b'"\\ud83d\\ude42"', "🙂"),
        (b'"\\uD83D\\uDE42\\u0041"', "🙂A"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'"[[[["', "[[[["),
        (b"18446744073709551616", 2**64),
        (b"9" * 301, int("9" * 301)),
        (b"1e308", 1e308),
    ],
)
def test_what_the_protocol_allows_is_read(line: bytes, value: Any) -> None:
    assert parse(line) == value


def test_brackets_inside_strings_are_no_nesting() -> None:
    text = '["' + '[{\\"' * 200 + '"]'
    assert parse(text.encode()) == ['[{"' * 200]
    assert parse(NESTED.encode())
    assert parse(f'{{"a":[{",".join(["[]"] * 200)}]}}'.encode())


def test_minus_zero_is_no_integer() -> None:
    assert [type(value) for value in parse(b"[-0, 0, -1, -0.0]")] == [float, int, int, float]


def test_an_object_knows_its_repeated_keys() -> None:
    found = parse(b'{"a":1,"b":{"c":1,"\\u0063":2},"a":3}')
    assert (found, found.repeated, found["b"].repeated) == ({"a": 3, "b": {"c": 2}}, {"a"}, {"c"})
    assert JsonObject().repeated == frozenset()


def test_many_repeated_keys_take_no_longer_than_others() -> None:
    pairs = ",".join(f'"{number}":1' for number in range(50_000))
    started = time.process_time()
    assert len(parse(f"{{{pairs},{pairs}}}".encode()).repeated) == 50_000
    assert time.process_time() - started < 5


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(line: bytes) -> None:
    with suppress(ProtocolError):
        parse(line)
