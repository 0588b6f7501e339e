"""Every message that can be made is read back the same, and no line does harm or slips through."""

import json
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, cast, get_args, get_origin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.protocol import codec, commands, events, json_rules, messages, ours, shared
from bridge.protocol.codec import read_client_message, read_server_event, write
from bridge.protocol.errors import ProtocolError
from bridge.protocol.wire import Wire
from tests.protocol.wire_vectors import READERS, line_of, of_kind

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=12) | st.sampled_from(['"', "\\", "-0", "\u2028"]),
    int: st.integers(0, 2**32 - 1) | st.just(0),
    bool: st.booleans(),
    type(None): st.none(),
    Any: JSON,
}


@cache
def made(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a wire type, or of the annotation of one of its fields."""
    if kind in SCALARS:
        return SCALARS[kind]
    if isinstance(kind, type) and issubclass(kind, Wire):
        fields = kind.model_fields.items()
        return st.builds(kind, **{name: made(cast(Any, field.annotation)) for name, field in fields})
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return st.lists(made(inner[0]), max_size=2).map(tuple)
    if origin is Literal:
        return st.just(inner[0])
    return st.one_of(*map(made, inner[:1] if origin is Annotated else inner))


def leaves(union: Any) -> list[type[Wire]]:
    return list(get_args(get_args(union)[0]))


@pytest.mark.parametrize("wire", leaves(messages.ClientMessage), ids=lambda wire: wire.__name__)
@given(data=st.data())
def test_a_client_message_is_read_as_it_was_written(wire: type[Wire], data: st.DataObject) -> None:
    message = data.draw(made(wire))
    assert read_client_message(write(message)) == message


@pytest.mark.parametrize("wire", leaves(events.ServerEvent), ids=lambda wire: wire.__name__)
@given(data=st.data())
def test_a_server_event_is_read_as_it_was_written(wire: type[Wire], data: st.DataObject) -> None:
    event = data.draw(made(wire))
    line = write(event)
    assert write(read_server_event(line)) == line
    assert read_server_event(line) == event


@given(made(ours.ClientMessage))
def test_a_message_of_ours_is_read_as_it_was_written(message: ours.ClientMessage) -> None:
    assert ours.read_client_message(write(message)) == message


@given(made(ours.DaemonStatusEvent))
def test_a_status_of_ours_is_read_as_it_was_written(event: ours.DaemonStatusEvent) -> None:
    assert ours.read_server_event(write(event)) == event


@given(made(shared.DaemonStatus) | made(commands.Command))
def test_what_is_written_is_compact_json_without_a_line_break(value: Wire) -> None:
    line = write(value)
    assert b"\n" not in line
    assert json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False) == line.decode()


LINES = [(vector["type"], line_of(vector)) for vector in of_kind("roundtrip", "parse", "reject")]
SPLINTERS = st.sampled_from(
    [
        *(b'"', b"\\", b"\\u0022", b"\\u0022\\u0022", b'\\"', b"-0", b"-", b"0", b"NaN", b"1e999", b"null"),
        *(b"{", b"}", b"[", b"]", b",", b":", b" ", b"\xff", b"\x00", b'"seq":1,', b',"seq":-0'),
        *(b',"request_id":"r"', b',"content":""', b',"":{"seq":1,"seq":2}', b"\\ud800", b'{"a":1,"a":2}'),
        b',"type":"error"',
    ]
)
EDIT = st.tuples(st.floats(0, 1), st.integers(0, 12), SPLINTERS | st.binary(max_size=3))
EDITS = st.lists(EDIT, max_size=4)


def mutated(line: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for place, gone, splinter in edits:
        at = int(place * len(line))
        line = line[:at] + splinter + line[at + gone :]
    return line


@given(st.sampled_from(LINES), EDITS)
def test_a_spoiled_line_is_refused_or_holds_nothing_that_the_rules_forbid(
    given_line: tuple[str, bytes], edits: list[tuple[float, int, bytes]]
) -> None:
    kind, line = given_line[0], mutated(given_line[1], edits)
    try:
        value = READERS[kind](line)
    except ProtocolError:
        return
    codec._check(json_rules.parse(line), value)  # what the quick look trusted, the slow way accepts


@given(st.binary(max_size=60))
@example(b'{"type":"","":{}}')
def test_noise_is_refused(line: bytes) -> None:
    for name, reader in READERS.items():
        if name == "Usage" and line.strip().startswith(b"{"):
            continue  # unknown keys are no error, and it needs none
        with pytest.raises(ProtocolError):
            reader(line)
    try:
        event = ours.read_server_event(line)
    except ProtocolError:
        return
    assert isinstance(event, ours.UnknownEvent)  # an object with a type may be a newer server's
