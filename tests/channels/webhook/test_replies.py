from datetime import datetime, timedelta, timezone
from pathlib import Path

from bridge.channel import FileKind, OutboundFile, OutboundPart
from channels.webhook.replies import dump, event, iso, place, reply
from channels.webhook.wire import lane


def test_a_reply_counts_from_one_and_says_which_part_is_the_last() -> None:
    text = OutboundPart(
        to=lane("c1", "t1"), reply_to="m1", client_id="a" * 32, text="hi", reply_id="r1", part=0, parts=2
    )
    assert reply(text) == {
        "conversation_id": "c1",
        "thread_id": "t1",
        "in_reply_to": "m1",
        "reply_id": "r1",
        "part": 1,
        "parts": 2,
        "final": False,
        "text": "hi",
        "attachments": [],
    }
    file = OutboundFile(
        to=lane("c1", ""),
        reply_to="",
        client_id="b" * 32,
        path=Path("x"),
        name="x",
        mime="",
        kind=FileKind.FILE,
        size=1,
        reply_id="r1",
        part=1,
        parts=2,
    )
    assert reply(file, [{"id": "b"}]) == {
        "conversation_id": "c1",
        "reply_id": "r1",
        "part": 2,
        "parts": 2,
        "final": True,
        "text": "",
        "attachments": [{"id": "b"}],
    }
    assert place(lane("c", ""), "") == {"conversation_id": "c"}


def test_an_event_is_compact_json_in_utf8() -> None:
    at = datetime(2026, 1, 2, 11, 4, 5, 999, tzinfo=timezone(timedelta(hours=8)))
    assert event("x", at, {"t": "é\ud800"}) == (
        '{"type":"x","timestamp":"2026-01-02T03:04:05Z","data":{"t":"é?"}}'.encode()
    )
    assert iso(at) == "2026-01-02T03:04:05Z"
    assert dump([1, "a"]) == b'[1,"a"]'
