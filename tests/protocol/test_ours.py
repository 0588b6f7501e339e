"""Our set of types: what it adds, and that it is the published set to whoever does not use the additions."""

from typing import Any

import pytest

from bridge.protocol import commands, events, messages, ours, shared
from bridge.protocol.codec import read_client_message, read_server_event, reader, write
from bridge.protocol.errors import ProtocolError
from tests.protocol.wire_vectors import line_of, of_kind

OURS: dict[str, Any] = {"ClientMessage": ours.read_client_message, "ServerEvent": ours.read_server_event}
PLAIN = [vector for vector in of_kind("roundtrip") if vector["type"] in OURS]


@pytest.mark.parametrize("vector", PLAIN, ids=[vector["id"] for vector in PLAIN])
def test_a_published_line_is_read_and_written_unchanged(vector: dict[str, Any]) -> None:
    assert write(OURS[vector["type"]](line_of(vector))) == line_of(vector)


SWITCH = (
    b'{"type":"daemon.control","request_id":"r","command":{"action":"channel_set","channel":"c",'
    b'"account":"a","enabled":true,"workspace":null%b}}'
)
RESOLVE = b'{"type":"approval.resolve","request_id":"r","session_id":"s","approval_id":"a","approved":true%b}'
START = b'{"type":"session.start","request_id":"r","cwd":"/w","channel":"Lark"%b}'


@pytest.mark.parametrize(
    ("message", "added"),
    [
        (SWITCH, b',"senders":"list"'),
        (START, b',"chat":{"channel":"feishu","account":"main","conversation":"oc_1"}'),
        (RESOLVE, b',"option":"once"'),
        (START, b',"agent":"fast","mode":"plan"'),
    ],
)
def test_an_added_field_of_a_message_is_read_by_us_and_dropped_by_older_readers(
    message: bytes, added: bytes
) -> None:
    assert write(ours.read_client_message(message % added)) == message % added
    assert write(read_client_message(message % added)) == message % b""


HEALTH = (
    b'{"id":"feishu:main","channel":"feishu","account":"main","bot_id":null,"user_id":null,"enabled":true,'
    b'"state":"backoff","last_success_unix_seconds":null,"error":null,"restarts":2,"remote_tools":"none"'
)
ADDED = (
    b',"reason":"no answer","since_unix_seconds":0,"next_try_unix_seconds":9,"queue_depth":0,'
    b'"oldest_waiting_unix_seconds":7,"dead_letters":1,"senders":"owner","unproven_requests":3,'
    b'"last_unproven_unix_seconds":8'
)


def test_added_health_is_read_by_us_and_dropped_by_older_readers() -> None:
    tail = b'],"delegations":{"active":0,"reaped":0}}}'
    head = b'{"type":"daemon.status","request_id":"r","status":{"version":"v","pid":1,"components":['
    line = head + HEALTH + ADDED + b"}" + tail
    read = ours.read_server_event(line)
    assert isinstance(read, ours.DaemonStatusEvent)
    assert read.status.components[0].queue_depth == 0
    assert write(read) == line
    assert write(read_server_event(line)) == head + HEALTH + b"}" + tail


def test_added_health_that_is_absent_is_not_written() -> None:
    health = reader(ours.ComponentHealth)(HEALTH + b"}")
    assert (health.reason, health.dead_letters, health.senders) == (None, None, None)
    assert write(health) == HEALTH + b"}"


def test_settings_that_are_not_in_effect_are_read_by_us_and_dropped_by_older_readers() -> None:
    head = b'{"type":"daemon.status","request_id":"r","status":{"version":"v","pid":1,"components":[],'
    head += b'"delegations":{"active":0,"reaped":0}'
    line = head + b',"settings_error":"missing","waits_for_restart":["web"]}}'
    assert write(ours.read_server_event(line)) == line
    assert write(read_server_event(line)) == head + b"}}"


def test_what_a_reload_did_is_read_by_us_and_dropped_by_older_readers() -> None:
    head = b'{"type":"daemon.status","request_id":"r","status":{"version":"v","pid":1,"components":[],'
    head += b'"delegations":{"active":0,"reaped":0}'
    line = head + b',"reloaded":{"started":["a:b"],"stopped":["a:c"]}}}'
    assert write(ours.read_server_event(line)) == line
    assert write(read_server_event(line)) == head + b"}}"


def test_sending_is_an_action_of_ours_alone() -> None:
    send = ours.Send(account="feishu:main", to="ou_1", files=("/tmp/a.pdf",))
    line = write(ours.DaemonControl(request_id="r", command=send))
    assert line == (
        b'{"type":"daemon.control","request_id":"r","command":{"action":"send","account":"feishu:main",'
        b'"to":"ou_1","files":["/tmp/a.pdf"]}}'
    )
    assert ours.read_client_message(line) == ours.DaemonControl(request_id="r", command=send)
    with pytest.raises(ProtocolError, match=r"^unknown_variant: daemon\.control\.command\.action$"):
        read_client_message(line)


def test_the_extended_types_are_still_the_published_ones() -> None:
    assert issubclass(ours.SessionStart, messages.SessionStart)
    assert issubclass(ours.ChannelSet, commands.ChannelSet)
    assert issubclass(ours.ComponentHealth, shared.ComponentHealth)
    assert issubclass(ours.DaemonStatusEvent, events.DaemonStatusEvent)


def test_the_options_of_a_question_are_read_by_us_and_dropped_by_older_readers() -> None:
    head = b'{"type":"approval.requested","request_id":"r","session_id":"s","turn_id":"t","seq":1,'
    head += b'"approval_id":"a","call_id":"c","name":"shell","risk":"process","cwd":"/w","summary":"x"'
    line = head + b',"options":[{"id":"1","label":"Yes","allows":true}]}'
    read = ours.read_server_event(line)
    assert isinstance(read, ours.ApprovalRequested)
    assert read.options == (ours.ApprovalOption(id="1", label="Yes", allows=True),)
    assert (write(read), write(read_server_event(line))) == (line, head + b"}")


def test_an_event_of_an_unknown_type_can_be_skipped() -> None:
    line = b'{"type":"background.reported","request_id":"r","session_id":"s","seq":3,"jobs":[]}'
    assert ours.read_server_event(line) == ours.UnknownEvent(type="background.reported")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"type":"session.cleared","request_id":"r","session_id":"s"}', "missing_field"),
        (b'{"type":7}', "wrong_type"),
        (b'{"type":"a","type":"b"}', "duplicate_field"),
        (b'{"type":"background.reported","seq":NaN}', "not_json"),
        (b"[]", "not_a_message"),
    ],
)
def test_what_is_no_event_is_not_taken_for_an_unknown_one(line: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=f"^{reason}"):
        ours.read_server_event(line)


def test_an_action_that_nobody_knows_is_refused_by_us_too() -> None:
    with pytest.raises(ProtocolError, match=r"^unknown_variant: daemon\.control\.command\.action$"):
        ours.read_client_message(b'{"type":"daemon.control","request_id":"r","command":{"action":"dance"}}')


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            ours.Pair(account="a:b", code="12345678", replace=True),
            b'"pair","account":"a:b","code":"12345678","replace":true',
        ),
        (ours.PairState(id="p1"), b'"pair_state","id":"p1","withdraw":false'),
        (ours.Confirm(text="sure?"), b'"confirm","text":"sure?"'),
        (ours.QuestionState(id="q1", withdraw=True), b'"question_state","id":"q1","withdraw":true'),
    ],
    ids=["pair", "pair_state", "confirm", "question_state"],
)
def test_what_is_asked_about_owners_is_ours_alone(command: ours.OwnerCommand, line: bytes) -> None:
    head = b'{"type":"daemon.control","request_id":"r","command":{"action":'
    assert write(ours.DaemonControl(request_id="r", command=command)) == head + line + b"}}"
    assert ours.read_client_message(head + line + b"}}") == ours.DaemonControl(
        request_id="r", command=command
    )
    with pytest.raises(ProtocolError, match=r"^unknown_variant: daemon\.control\.command\.action$"):
        read_client_message(head + line + b"}}")
    assert "12345678" not in repr(command)


STARTED = (
    b'{"type":"session.started","request_id":"r","session_id":"s","cwd":"/w","model":"m",'
    b'"context_max_tokens":1,"max_server_frame_bytes":1,"max_transcript_bytes":1,"max_transcript_items":1,'
    b'"max_prompt_history_bytes":1,"max_prompt_history_items":1%b}'
)
COMPLETED = (
    b'{"type":"turn.completed","request_id":"r","session_id":"s","turn_id":"t","seq":1,"steps":2,'
    b'"usage":{}%b}'
)


@pytest.mark.parametrize(
    ("event", "added"),
    [(STARTED, b',"chosen":{"agent":"fast","mode":"plan"}'), (COMPLETED, b',"cost_micros":1200')],
)
def test_an_added_field_of_an_event_is_read_by_us_and_dropped_by_older_readers(
    event: bytes, added: bytes
) -> None:
    assert write(ours.read_server_event(event % added)) == event % added
    assert write(ours.read_server_event(event % b"")) == event % b""
    assert write(read_server_event(event % added)) == event % b""


CONFIGURE = b'{"type":"session.configure","request_id":"r","session_id":"s"%b}'


@pytest.mark.parametrize("given", [b"", b',"agent":"","model":"big","mode":"plan","cwd":"/w"'])
def test_choosing_is_a_message_of_ours_alone(given: bytes) -> None:
    assert write(ours.read_client_message(CONFIGURE % given)) == CONFIGURE % given
    with pytest.raises(ProtocolError):
        read_client_message(CONFIGURE % given)


def test_what_was_configured_is_told_with_what_there_is() -> None:
    event = (
        b'{"type":"session.configured","request_id":"r","session_id":"s","seq":3,"agent":"a","model":"m",'
        b'"mode":"","cwd":"/w","agents":["a"],"models":[{"id":"m","name":"The model"}],"modes":[],'
        b'"chosen":{"agent":"a"},"problem":"no key"}'
    )
    assert write(ours.read_server_event(event)) == event
