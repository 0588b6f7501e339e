"""The suite's own reader is as strict as it says, and its table agrees with the published vectors."""

import json
from typing import Any

import pytest

from tests.conformance.faults import BrokenError
from tests.conformance.sections.s06_messages import VECTORS
from tests.conformance.wire import EVENTS, MOST_NESTING, check_event, read

WHOLE: dict[str, Any] = json.loads(VECTORS.read_text(encoding="utf-8"))
WRITTEN = [one for one in WHOLE["vectors"] if one["type"] == "ServerEvent" and one["kind"] == "roundtrip"]


@pytest.mark.parametrize("vector", WRITTEN, ids=lambda vector: vector["id"])
def test_every_event_of_the_vectors_is_well_written(vector: dict[str, Any]) -> None:
    check_event(read(vector["wire"].encode() + b"\n"))


def test_the_vectors_show_every_event_of_the_table() -> None:
    assert {json.loads(vector["wire"])["type"] for vector in WRITTEN} == EVENTS.keys()


@pytest.mark.parametrize(
    "frame",
    [
        b'{"type":"x"}',
        b'{"type":"x"}\r\n',
        b'{"type": "x"}\n',
        b'{"type":"x",}\n',
        b'{"type":"x","type":"x"}\n',
        b'{"type":"\xff"}\n',
        b'{"type":"\\u00e9"}\n',
        b'{"type":"\\u001F"}\n',
        b'{"type":"\\u000a"}\n',
        b'{"type":"\\/"}\n',
        b'{"type":"\\ud800"}\n',
        b'{"type":"x","n":NaN}\n',
        b'{"type":"x","n":-0}\n',
        b'{"type":"x","n":1e999}\n',
        b'{"n":' + b"[" * MOST_NESTING + b"]" * MOST_NESTING + b"}\n",
        b'["x"]\n',
        b"x\n",
        b"\n",
    ],
)
def test_what_is_not_written_in_the_one_form_is_noticed(frame: bytes) -> None:
    with pytest.raises(BrokenError):
        read(frame)


def test_a_frame_over_the_limit_is_noticed() -> None:
    frame = b'{"type":"' + b"x" * 100 + b'"}\n'
    assert read(frame, len(frame) - 1)
    with pytest.raises(BrokenError):
        read(frame, len(frame) - 2)


def test_every_form_that_is_allowed_is_read() -> None:
    frame = '{"type":"\\"\\\\\\b\\f\\n\\r\\t\\u0000 / é 中 \x7f","a":{"n":1.5,"l":[1,true,null]}}\n'.encode()
    assert read(frame)["a"]["l"] == [1, True, None]


@pytest.mark.parametrize(
    "event",
    [
        {"code": "x"},
        {"type": 1},
        {"code": "x", "type": "error", "message": "x", "fatal": False},
        {"type": "error", "message": "x", "code": "x", "fatal": False},
        {"type": "error", "code": "x", "message": "x"},
        {"type": "error", "code": "x", "message": "x", "fatal": 0},
        {"type": "error", "code": "x", "message": None, "fatal": False},
        {"type": "error", "request_id": None, "code": "x", "message": "x", "fatal": False},
        {"type": "session.cleared", "request_id": "a", "session_id": "s", "seq": -1},
        {"type": "session.cleared", "request_id": "a", "session_id": "s", "seq": True},
        {"type": "initialized", "request_id": "a", "protocol_version": 2**32, "server": {}},
        {"type": "initialized", "request_id": "a", "protocol_version": 3, "server": "x"},
        {"type": "queue.snapshot", "session_id": "s", "seq": 1, "entries": [], "paused": False},
        {
            "type": "queue.snapshot",
            "request_id": None,
            "session_id": "s",
            "seq": 1,
            "entries": 1,
            "paused": False,
        },
    ],
)
def test_an_event_that_is_not_in_the_table_as_it_is_is_noticed(event: dict[str, Any]) -> None:
    with pytest.raises(BrokenError):
        check_event(event)


def test_what_a_newer_server_adds_is_no_mistake() -> None:
    check_event({"type": "background.updated", "anything": [1]})
    check_event({"type": "error", "code": "x", "hint": "y", "message": "x", "fatal": False})
