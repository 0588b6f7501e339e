"""The codec against the published vectors, and against lines that it must not be fooled by."""

from collections import Counter
from typing import Any

import pytest

from bridge.protocol.codec import read_client_message, read_server_event, reader, write
from bridge.protocol.errors import ProtocolError, Reason
from bridge.protocol.events import AssistantDelta, ServerEvent, ToolProposed
from bridge.protocol.messages import TurnStart
from bridge.protocol.shared import Attachment, Usage
from tests.protocol.wire_vectors import READERS, VECTORS, line_of, of_kind


def ids(vectors: list[dict[str, Any]]) -> list[str]:
    return [vector["id"] for vector in vectors]


def written(value: Any) -> bytes:
    return f'"{value}"'.encode() if isinstance(value, str) else write(value)


GOOD = of_kind("roundtrip", "parse")
BAD = of_kind("reject")


def test_no_vector_is_left_out() -> None:
    assert (len(GOOD) + len(BAD), len(READERS)) == (519, 16)
    assert Counter(vector["type"] for vector in VECTORS["vectors"]).keys() == READERS.keys()


@pytest.mark.parametrize("vector", GOOD, ids=ids(GOOD))
def test_a_good_line_is_read_and_written_as_published(vector: dict[str, Any]) -> None:
    value = READERS[vector["type"]](line_of(vector))
    assert written(value) == vector.get("encoded", vector["wire"]).encode()


@pytest.mark.parametrize("vector", BAD, ids=ids(BAD))
def test_a_bad_line_is_refused_for_the_published_reason(vector: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as refused:
        READERS[vector["type"]](line_of(vector))
    assert refused.value.reason == vector["reason"]


@pytest.mark.parametrize("vector", VECTORS["quirks"], ids=ids(VECTORS["quirks"]))
def test_shapes_that_only_the_reference_reads_are_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as refused:
        READERS[vector["type"]](line_of(vector))
    assert refused.value.reason in {Reason.NOT_A_MESSAGE, Reason.WRONG_TYPE}


def event(arguments: str, more: str = "") -> bytes:
    head = '{"type":"tool.proposed","request_id":"r","session_id":"s","turn_id":"t","seq":2,"call_id":"c"'
    return f'{head},"name":"n","arguments":{arguments}{more}}}'.encode()


def delta(content: str, seq: str = "1", more: str = "") -> bytes:
    head = '{"type":"assistant.delta","request_id":"r","session_id":"s","turn_id":"t"'
    return f'{head},"seq":{seq},"content":"{content}"{more}}}'.encode()


@pytest.mark.parametrize(
    ("line", "reason", "field"),
    [
        # repeated keys whose quotes are made up for by quotes that are spelled in hex
        (delta("\\u0022\\u0022", more=',"seq":1'), Reason.DUPLICATE_FIELD, "seq"),
        (delta('\\"\\u0022\\u0022', more=',"seq":1'), Reason.DUPLICATE_FIELD, "seq"),
        (delta("0022", more=',"content":"x"'), Reason.DUPLICATE_FIELD, "content"),
        (delta("x", more=',"s\\u0065q":2'), Reason.DUPLICATE_FIELD, "seq"),
        (delta("x", seq="-0"), Reason.WRONG_TYPE, "seq"),
        (delta("x", seq=" -0 "), Reason.WRONG_TYPE, "seq"),
        (delta("x", more=',"y":-1e999'), Reason.NOT_JSON, ""),
        (delta("x", more=f',"y":{"9" * 400}'), Reason.NOT_JSON, ""),
        (delta("x", more=',"y":"\\udc00"'), Reason.NOT_JSON, ""),
        (event("-Infinity"), Reason.NOT_JSON, ""),
        (event("9" * 400), Reason.NOT_JSON, ""),
        (event("-" + "9" * 400), Reason.NOT_JSON, ""),
        (event("[" + "9" * 5000 + "]"), Reason.NOT_JSON, ""),
        (event('{"a":1e999}'), Reason.NOT_JSON, ""),
        (event("[" * 127 + "]" * 127), Reason.NOT_JSON, ""),
        (event('{"a":' * 127 + "1" + "}" * 127), Reason.NOT_JSON, ""),
        (event("[" * 100_000 + "]" * 100_000), Reason.NOT_JSON, ""),
        (event("1", more=',"arguments":1'), Reason.DUPLICATE_FIELD, "arguments"),
        (event("1", more=',"type":"tool.proposed"'), Reason.DUPLICATE_FIELD, "type"),
    ],
)
def test_nothing_hides_from_the_quick_look(line: bytes, reason: Reason, field: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        read_server_event(line)
    assert refused.value.reason == reason
    assert refused.value.field.removeprefix(f"{refused.value.field.rpartition('.')[0]}.") == field


def test_a_minus_zero_inside_a_list_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"^wrong_type: turn\.start\.attachments\.0\.size$"):
        read_client_message(
            b'{"type":"turn.start","request_id":"r","session_id":"s","prompt":"p",'
            b'"attachments":[{"kind":"file","path":"/a","size":-0}]}'
        )


@pytest.mark.parametrize(
    "content",
    ['say \\"-0\\"', "\\u0022", "\\\\", '\\\\\\"', "0022", '\\"0022', "\\ud83d\\ude42", "\\u2028", "-0"],
)
def test_a_good_line_that_needs_a_second_look_is_read(content: str) -> None:
    line = delta(content, seq="0", more=',"newer":{"content":[-0,{"seq":1,"seq":2}]}')
    read = read_server_event(line)
    assert isinstance(read, AssistantDelta)
    assert read_server_event(delta(content, seq="0")) == read == read_server_event(write(read))


def test_repeated_free_form_keys_are_allowed_and_the_last_stands() -> None:
    read = read_server_event(event('{"a":1,"b":[{"seq":1,"seq":-0}],"a":-2.5}'))
    assert isinstance(read, ToolProposed)
    assert read.arguments == {"a": -2.5, "b": [{"seq": 0}]}


@pytest.mark.parametrize(
    "arguments",
    [
        "0",
        "-3",
        "1.5",
        "18446744073709551616",
        "null",
        '"x"',
        "[]",
        "{}",
        "[" * 126 + "]" * 126,
        "[-0.0,true]",
    ],
)
def test_any_json_may_be_free_form(arguments: str) -> None:
    read = read_server_event(event(arguments))
    assert write(read) == event(arguments)


def test_a_status_read_and_written_keeps_numbers_of_zero() -> None:
    line = b'{"queue_id":"q","revision":0,"prompt":"p","submitter":"r"}'
    assert write(READERS["QueueEntry"](line)) == line


def test_what_is_refused_is_named_by_its_path_and_never_by_its_value() -> None:
    start = (
        b'{"type":"turn.start","request_id":"secret","session_id":"secret","prompt":"secret",'
        b'"attachments":[{"kind":"file","path":"/secret","size":"secret"}]}'
    )
    with pytest.raises(ProtocolError) as refused:
        read_client_message(start)
    assert str(refused.value) == "wrong_type: turn.start.attachments.0.size"
    with pytest.raises(ProtocolError, match=r"^unknown_variant: type$"):
        read_client_message(b'{"type":"secret"}')
    with pytest.raises(ProtocolError, match=r"^unknown_variant: daemon\.control\.command\.action$"):
        read_client_message(b'{"type":"daemon.control","request_id":"r","command":{"action":"secret"}}')
    with pytest.raises(ProtocolError, match=r"^not_json$"):
        read_client_message(b"secret")


def test_a_long_list_of_bad_items_is_refused_by_its_first() -> None:
    items = b",".join([b"1"] * 100_000)
    with pytest.raises(ProtocolError, match=r"attachments\.0$"):
        read_client_message(
            b'{"type":"turn.start","request_id":"r","session_id":"s","prompt":"p","attachments":[%b]}' % items
        )


def test_a_struct_is_read_by_a_reader_of_its_own() -> None:
    assert reader(Usage)(b'{"input_tokens":0}') == Usage(input_tokens=0)
    with pytest.raises(ProtocolError, match=r"^not_a_message$"):
        reader(Usage)(b"[]")


def test_a_type_that_is_not_known_may_be_read_otherwise() -> None:
    read = reader(ServerEvent, otherwise=len)
    assert read(b'{"type":"newer"}') == 16
    assert read(delta("x")) == read_server_event(delta("x"))
    for line in (b'{"type":7}', b"[]", delta("x", seq="-1")):
        with pytest.raises(ProtocolError):
            read(line)


def test_a_struct_with_a_tag_is_read_inside_its_union_alone() -> None:
    with pytest.raises(TypeError, match="AssistantDelta has a tag"):
        reader(AssistantDelta)


def test_a_list_of_our_own_making_is_written_like_one_that_was_read() -> None:
    sent = TurnStart(
        request_id="r", session_id="s", prompt="价", attachments=(Attachment(kind="file", path="/a", size=0),)
    )
    assert (
        write(sent)
        == (
            '{"type":"turn.start","request_id":"r","session_id":"s","prompt":"价",'
            '"attachments":[{"kind":"file","path":"/a","size":0}]}'
        ).encode()
    )
    assert read_client_message(write(sent)) == sent
