"""The quick look: it may doubt a good line, but trusts no bad one."""

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace

import pytest

from bridge.protocol import codec, json_rules
from bridge.protocol.codec import reader, write
from bridge.protocol.errors import ProtocolError
from bridge.protocol.events import (
    AssistantDelta,
    ServerEvent,
    SessionCleared,
    ToolProposed,
    TurnCompleted,
)
from bridge.protocol.inventory import SHAPES, is_tagged
from bridge.protocol.ours import UnknownEvent
from bridge.protocol.shared import RemoteTools, Usage

READ: Callable[[bytes], ServerEvent] = reader(ServerEvent)


@pytest.fixture(autouse=True)
def _shapes_anew() -> None:
    """What lines of a type must hold is found out in each test."""
    SHAPES.clear()


def trusted_at_once(line: bytes, read: Callable[[bytes], object] = READ) -> bool:
    """Whether ``line``, which pydantic takes, is read without being looked at by `json_rules`, too."""
    looked = []

    def parse(doubtful: bytes) -> object:
        looked.append(doubtful)
        return json_rules.parse(doubtful)

    with pytest.MonkeyPatch.context() as patched, suppress(ProtocolError):
        patched.setattr(codec, "json_rules", SimpleNamespace(parse=parse))
        read(line)
    return not looked


CLEARED = b'{"type":"session.cleared","request_id":"r","session_id":"s-0","seq":%b}'
DELTA = b'{"type":"assistant.delta","request_id":"r","session_id":"s","turn_id":"t","seq":1,"content":"%b"}'
PROPOSED = (
    b'{"type":"tool.proposed","request_id":"r","session_id":"s","turn_id":"t","seq":1,"call_id":"c",'
    b'"name":"n","arguments":%b}'
)


def test_a_plain_line_is_trusted_whatever_its_text_holds() -> None:
    for text in (b"", b"plain", b"-0 and : {[", b'\\"quoted\\"', b"\\\\", b"\\n"):
        assert trusted_at_once(DELTA % text)
    assert trusted_at_once(CLEARED % b"7")


def test_a_plain_line_with_one_key_too_many_is_not_trusted() -> None:
    line = (DELTA % b"x")[:-1] + b',"seq":1}'
    assert not trusted_at_once(line)


@pytest.mark.parametrize("text", [b"\\u0022\\u0022", b'\\"', b"\\\\", b'\\\\\\"\\\\', b"0022", b"\\\\u0022"])
def test_quotes_inside_a_text_make_up_for_no_key(text: bytes) -> None:
    assert trusted_at_once(DELTA % text)
    line = (DELTA % text)[:-1] + b',"seq":1}'
    assert not trusted_at_once(line)


@pytest.mark.parametrize("text", [b"plain ", b'\\"quoted\\" '])
def test_a_long_line_is_looked_at_like_a_short_one(text: bytes) -> None:
    line = DELTA % (text * 1000)
    assert trusted_at_once(line)
    assert not trusted_at_once(line[:-1] + b',"seq":1}')


@pytest.mark.parametrize(("restarts", "trusted"), [(b"0", True), (b"-0", False)])
def test_numbers_of_zero_inside_a_status_are_looked_at(restarts: bytes, trusted: bool) -> None:
    line = (
        b'{"type":"daemon.status","request_id":"r","status":{"version":"v","pid":1,"components":[{"id":"a:b",'
        b'"channel":"a","account":"b","bot_id":null,"user_id":null,"enabled":false,"state":"stopped",'
        b'"last_success_unix_seconds":null,"error":null,"restarts":%b,"remote_tools":"none"}],'
        b'"delegations":{"active":0,"reaped":0}}}' % restarts
    )
    assert trusted_at_once(line) is trusted


def test_a_struct_with_a_tag_is_told_from_those_that_are_read_alone() -> None:
    assert is_tagged(SessionCleared)
    assert not any(is_tagged(wire) for wire in (Usage, UnknownEvent, ServerEvent, RemoteTools, str))
    with pytest.raises(TypeError, match="SessionCleared has a tag"):
        reader(SessionCleared)


def test_a_text_alone_is_trusted() -> None:
    assert trusted_at_once(b'"owner"', reader(RemoteTools))


def test_a_line_as_we_write_it_is_trusted_whatever_it_holds_and_no_other_is() -> None:
    events = [
        ToolProposed(
            request_id="r", session_id="s", turn_id="t", seq=0, call_id='"', name="-0", arguments={"a": [1]}
        ),
        TurnCompleted(request_id="-0", session_id="s", turn_id="t", seq=0, steps=0, usage=Usage()),
        AssistantDelta(request_id="r", session_id="s", turn_id="t", seq=1, content='\n"\\"' * 2000),
    ]
    for event in events:
        line = write(event)
        assert trusted_at_once(line)
        spaced = line.replace(b'"seq":', b'"seq": ').replace(b'"type"', b'"x":1,"type"')
        assert not trusted_at_once(spaced)


def test_deep_or_huge_values_are_looked_at_in_long_lines() -> None:
    for arguments, trusted in (
        (b"[" * 90 + b'"%b"' % (b"x" * 200) + b"]" * 90, True),
        (b"[" * 125 + b'"%b"' % (b"x" * 200) + b"]" * 125, False),
        (b'{"a":%b,"b":"%b"}' % (b"9" * 19, b"x" * 200), True),
        (b'{"a":%b,"b":"%b"}' % (b"9" * 30, b"x" * 200), False),
    ):
        assert trusted_at_once(PROPOSED % arguments) is trusted


def test_a_zero_is_trusted_unless_it_may_have_a_sign() -> None:
    assert SessionCleared.model_validate_json(CLEARED % b"-0").seq == 0
    assert not trusted_at_once(CLEARED % b"-0")
    plain = (CLEARED % b"0").replace(b"-0", b"x")
    assert trusted_at_once(plain)


@pytest.mark.parametrize(
    "arguments", [b"{}", b'{"a":["b",1,-2,0.5,true,null]}', b'"text"', b"[[[]]]", b"7", b"null"]
)
def test_ordinary_free_form_values_are_trusted(arguments: bytes) -> None:
    assert trusted_at_once(PROPOSED % arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        b"NaN",
        b"[Infinity]",
        b"9" * 400,
        b"[-" + b"9" * 400 + b"]",
        b"[" * 126 + b"]" * 126,
        b'{"a":' * 120 + b"1" + b"}" * 120,
        b'{"a":1,"a":1}',
        b'{"b":1,"a":1}',
    ],
)
def test_extreme_free_form_values_are_not_trusted(arguments: bytes) -> None:
    line = PROPOSED % arguments
    assert not trusted_at_once(line)


@pytest.mark.parametrize(
    ("line", "trusted"),
    [
        (b'"usage":{"input_tokens":5}', True),
        (b'"usage":{"input_tokens":null}', False),
        (b'"usage":{},"origin":{"kind":"background","jobs":["a","b"]}', True),
        (b'"usage":{"input_tokens":0}', True),
        (b'"usage":{"input_tokens":-0}', False),
        (b'"usage":{"input_tokens":5,"input_tokens":5}', False),
        (b'"usage":{},"newer":1', False),
    ],
)
def test_structs_and_lists_inside_are_counted(line: bytes, trusted: bool) -> None:
    head = b'{"type":"turn.completed","request_id":"r","session_id":"s","turn_id":"t","seq":9,"steps":1,'
    whole = head + line + b"}"
    assert trusted_at_once(whole) is trusted
