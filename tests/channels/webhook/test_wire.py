import contextlib
import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import Edited, Ignored, Inbound, Item, Recalled
from channels.webhook.attached import SemanticError
from channels.webhook.signature import Signed
from channels.webhook.wire import MalformedError, lane, made_id, read_event, unlane
from tests.channels.webhook.tools import event

SIGNED = Signed("msg_1", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def read(body: bytes, signed: Signed = SIGNED) -> Item:
    return read_event(body, signed, lambda url: True)


def inbound(**fields: Any) -> Inbound:
    found = read(event(**fields))
    assert isinstance(found, Inbound)
    return found


def test_a_message_becomes_an_inbound_with_the_webhook_id_as_its_id() -> None:
    body = event(thread_id="t1", text="你好 😀\r\n", locale="zh", metadata={"x": [1]}, unknown=None)
    assert read(body) == Inbound(
        message_id="msg_1",
        sender="u1",
        chat="c1",
        to='["c1", "t1"]',
        reply_to="m1",
        text="你好 😀\r\n",
        thread="t1",
        sent_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        body_digest=hashlib.sha256(body).hexdigest(),
    )


def test_only_what_says_so_is_a_group() -> None:
    assert not inbound().group
    assert not inbound(is_direct=True, mentioned=False).group
    assert not inbound(is_direct=None).group
    assert inbound(is_direct=False).group
    assert inbound(is_direct=False, mentioned=True).group


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kind": "message.reacted"}, "unknown_type"),
        ({"kind": "message.updated", "sender": {"id": "u1", "is_bot": True}}, "bot"),
        ({"kind": "ping", "sender": 3}, "unknown_type"),
        ({"sender": {"id": "u1", "is_bot": True}}, "bot"),
        ({"is_direct": False, "mentioned": False}, "not_mentioned"),
    ],
)
def test_what_needs_no_answer_is_ignored(fields: dict[str, Any], reason: str) -> None:
    assert read(event(**fields)) == Ignored(reason, "msg_1")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"\xff\xfe",
        b'{"type":"message.created"}',
        b'{"type":3,"data":{}}',
        b'{"type":"message.created","data":[]}',
        b'{"type":"message.created","data":{"x":NaN}}',
        b'{"type":"message.created","data":{"x":-Infinity}}',
        b"[" * 200_000,
        b'{"type":"x","data":{"n":' + b"9" * 5000 + b"}}",
    ],
)
def test_what_is_no_event_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError) as failed:
        read(body)
    assert len(str(failed.value)) < 100


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"conversation_id": ...}, "conversation_id"),
        ({"conversation_id": ""}, "conversation_id"),
        ({"conversation_id": "x" * 257}, "conversation_id"),
        ({"conversation_id": "a\nb"}, "conversation_id"),
        ({"conversation_id": 7}, "conversation_id"),
        ({"conversation_id": "\ud800"}, "conversation_id"),
        ({"message_id": ...}, "message_id"),
        ({"thread_id": "x" * 257}, "thread_id"),
        ({"sender": {}}, "sender.id"),
        ({"sender": {"id": "x" * 257}}, "sender.id"),
        ({"sender": {"id": "u\x7f"}}, "sender.id"),
        ({"text": ...}, "needs text or attachments"),
        ({"text": "", "attachments": []}, "needs text or attachments"),
        ({"text": ["SECRET"]}, "text"),
        ({"thread_id": "\udc00"}, "thread_id"),
        ({"mentioned": "yes"}, "mentioned"),
        ({"attachments": [{"name": "a"}] * 65}, "attachments"),
        ({"attachments": [{"name": "a"}]}, "either url or content_base64"),
        ({"attachments": [{"name": "a", "url": "x", "content_base64": ""}]}, "either url or content_base64"),
        ({"attachments": [{"content_base64": ""}]}, "attachments.0.name"),
        ({"attachments": [{"name": "a", "content_base64": "", "size": -1}]}, "attachments.0.size"),
        ({"attachments": [{"name": "a", "content_base64": "", "size": "1"}]}, "attachments.0.size"),
        ({"attachments": [{"name": "a", "content_base64": "", "sha256": "ab"}]}, "attachments.0.sha256"),
        ({"attachments": [{"name": "a", "content_base64": "SECRET!"}]}, "content_base64 is not base64"),
        ({"attachments": [{"name": "a", "content_base64": "QUI"}]}, "content_base64 is not base64"),
        ({"attachments": [{"name": "a", "content_base64": "QUI=", "size": 3}]}, "size is not"),
        ({"attachments": [{"name": "a", "content_base64": "QUI=", "sha256": "0" * 64}]}, "sha256 is not"),
        ({"attachments": [{"name": "a", "url": "file:///etc/passwd"}]}, "no https address"),
        ({"attachments": [{"name": "a", "url": "https://SECRET@x.example/"}]}, "no https address"),
        ({"attachments": [{"name": "a", "url": ""}]}, "no https address"),
    ],
)
def test_an_event_that_cannot_be_accepted_names_its_field_and_shows_no_value(
    fields: dict[str, Any], where: str
) -> None:
    with pytest.raises(SemanticError) as failed:
        read(event(**fields))
    assert where in str(failed.value)
    assert "SECRET" not in str(failed.value)


def test_halves_of_pairs_and_controls_never_get_into_a_text() -> None:
    attachment = {"name": "a\x00b", "content_base64": ""}
    found = inbound(text="a\ud83d\ude00\udc00\x00b", attachments=[attachment])
    assert (found.text, found.files[0].name) == ("a😀\ufffdb", "ab")


def test_null_is_the_same_as_left_out() -> None:
    nothing = {"thread_id": None, "attachments": None, "mentioned": None, "is_direct": None, "locale": None}
    assert inbound(**nothing, sender={"id": "u1", "name": None, "is_bot": None}).text == "hello"


@pytest.mark.parametrize(
    "timestamp", [None, 3, "yesterday", "2026-01-02T03:04:05", "0001-01-01T00:00:00+23:59", ["x"]]
)
def test_a_time_that_says_nothing_is_no_time(timestamp: object) -> None:
    body = json.loads(event())
    found = read(json.dumps({**body, "timestamp": timestamp}).encode())
    assert isinstance(found, Inbound)
    assert found.sent_at is None


@given(st.text(min_size=1), st.text())
def test_a_lane_holds_conversation_and_thread_apart(conversation: str, thread: str) -> None:
    assert unlane(lane(conversation, thread)) == (conversation, thread)


@given(st.binary(max_size=64) | st.from_type(dict).map(lambda value: repr(value).encode()))
def test_no_body_makes_it_raise_anything_else(body: bytes) -> None:
    for each in (body, event().replace(b'"hello"', body), event().replace(b'"u1"', body)):
        with contextlib.suppress(MalformedError, SemanticError):
            read(each)


@pytest.mark.parametrize("to", ["alice", "7", "[]", "[1]", '["a", 2]', '{"a": 1}', "[", ""])
def test_whatever_an_operator_types_is_a_conversation(to: str) -> None:
    assert unlane(to) == (to, "")


def edited(signed: Signed = SIGNED, **fields: Any) -> Edited:
    found = read(event("message.updated", **fields), signed)
    assert isinstance(found, Edited)
    return found


def test_an_update_is_the_message_itself_as_it_is_now() -> None:
    found = edited(text="better", revision=2)
    assert (found.message.message_id, found.message.text, found.revision) == ("m1", "better", 2)
    assert (found.message.reply_to, found.message.body_digest) == ("m1", "")


def test_an_update_names_the_message_by_the_id_under_which_it_came() -> None:
    assert edited(webhook_id="msg_0", revision=0).message.message_id == "msg_0"
    assert edited(revision=0).message.message_id == "m1"


def test_without_a_revision_the_time_of_the_event_is_one() -> None:
    assert edited().revision == int(datetime(2026, 1, 2, 3, 4, tzinfo=UTC).timestamp() * 1000)
    assert edited(revision=7).revision == 7
    for timestamp, complaint in (("soon", "revision: an update needs it"), (None, "revision")):
        body = json.dumps({**json.loads(event("message.updated")), "timestamp": timestamp}).encode()
        with pytest.raises(SemanticError, match=complaint):
            read(body)


def test_a_deletion_recalls_its_senders_message_and_needs_no_text() -> None:
    body = event("message.deleted", text=..., webhook_id="msg_0")
    assert read(body) == Recalled("msg_0", sender="u1", chat="c1")
    assert read(event("message.deleted", text=...)) == Recalled("m1", sender="u1", chat="c1")
    for fields in ({"sender": ...}, {"message_id": ""}, {"conversation_id": ...}):
        with pytest.raises(SemanticError):
            read(event("message.deleted", **fields))


def test_what_came_without_an_id_gets_one_of_its_own_and_its_changes_find_it() -> None:
    unnamed = Signed("")
    first = read(event(), unnamed)
    assert isinstance(first, Inbound)
    other = read(event(conversation_id="c2"), unnamed)
    assert isinstance(other, Inbound)
    assert first.message_id != other.message_id
    assert edited(unnamed, revision=1).message.message_id == first.message_id
    recalled = read(event("message.deleted"), unnamed)
    assert isinstance(recalled, Recalled)
    assert recalled.message_id == first.message_id
    assert len(first.message_id) == 32
    assert made_id.__doc__


def test_where_no_time_is_signed_the_messages_own_id_is_a_second_key() -> None:
    replayed = read(event(), Signed("another-delivery"))
    assert isinstance(replayed, Inbound)
    assert (replayed.message_id, replayed.stamp) == ("another-delivery", "m1")
    assert inbound().stamp == ""
