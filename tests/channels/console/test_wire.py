"""The JSON of the console's socket."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import (
    FileKind,
    Inbound,
    LiveTurn,
    OutboundFile,
    OutboundPart,
    Recalled,
    RemoteFile,
    WaitingPart,
)
from channels.console import wire
from channels.console.wire import WrongError

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def body(**fields: Any) -> bytes:
    return json.dumps(
        {"type": "message", "id": "m1", "conversation": "main", "text": "hi", **fields}
    ).encode()


def inbound(**fields: Any) -> Inbound:
    item, _ = wire.read_item(body(**fields), "you", AT)
    assert isinstance(item, Inbound)
    return item


def test_a_message_is_the_owners_in_a_direct_chat() -> None:
    item, id_ = wire.read_item(body(text="看图"), "you", AT)
    assert id_ == "m1"
    assert isinstance(item, Inbound)
    assert (item.message_id, item.sender, item.chat, item.to, item.reply_to) == (
        "m1",
        "you",
        "main",
        "main",
        "m1",
    )
    assert (item.text, item.group, item.sent_at) == ("看图", False, AT)


def test_another_body_under_one_id_has_another_digest() -> None:
    assert inbound(text="a").body_digest != inbound(text="b").body_digest


def test_files_are_local_paths_and_their_kind_is_guessed_by_their_name() -> None:
    files = inbound(
        text="",
        files=[{"path": "/tmp/图 片.PNG", "size": 5}, {"path": "/tmp/x.mp4"}, {"path": "/tmp/Makefile"}],
    ).files
    assert files[0] == RemoteFile("/tmp/图 片.PNG", FileKind.IMAGE, "图 片.PNG", "image/png", 5)
    assert [file.kind for file in files] == [FileKind.IMAGE, FileKind.VIDEO, FileKind.FILE]
    assert files[2].mime == ""


def test_a_recall_names_the_message_and_who_wrote_it() -> None:
    item = wire.read_item(body(type="recall"), "you", AT)
    assert item == (Recalled("m1", "you", "main"), "m1")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"type": "order"}, "type"),
        ({"id": ""}, "id"),
        ({"id": " a"}, "id"),
        ({"id": "a\x1b"}, "id"),
        ({"id": "x" * 129}, "id"),
        ({"conversation": 7}, "conversation"),
        ({"text": " \n"}, "text"),
        ({"files": [{"path": "a.png"}]}, "path"),
        ({"files": [{"path": "/a\0.png"}]}, "path"),
        ({"files": [{"path": "/a", "size": -1}]}, "size"),
        ({"files": [{"path": "/a"}] * 65}, "files"),
    ],
)
def test_what_cannot_be_accepted_is_told_by_its_field_and_never_by_its_value(
    fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(WrongError, match=told) as error:
        wire.read_item(body(**fields), "you", AT)
    assert "order" not in str(error.value)


@given(st.binary(max_size=50))
def test_no_bytes_make_reading_fail_otherwise(data: bytes) -> None:
    with pytest.raises(WrongError):
        wire.read_item(data, "you", AT)


def test_a_part_says_what_it_answers_and_where_it_stands() -> None:
    part = OutboundPart("main", "m1", "c" * 32, "好", "r1", part=1, parts=3, notice="failure")
    assert wire.shown_part(WaitingPart(7, part)) == {
        "cursor": 7, "id": "c" * 32, "reply": "r1", "conversation": "main", "reply_to": "m1", "part": 2,
        "parts": 3, "text": "好", "notice": "failure",
    }  # fmt: skip


def test_a_file_is_told_by_the_path_of_its_copy() -> None:
    part = OutboundFile("main", "m1", "c", Path("/o/1-a.png"), "a.png", "image/png", FileKind.IMAGE, 9)
    shown = wire.shown_part(WaitingPart(8, part))
    assert shown["file"] == {"path": "/o/1-a.png", "name": "a.png", "mime": "image/png", "size": 9}
    assert (shown["text"], shown["notice"]) == ("", "")


def test_a_turn_is_told_whole() -> None:
    turn = LiveTurn(3, "so far", "read_file", "50 %", False)
    assert wire.shown_turn(turn) == {
        "version": 3, "text": "so far", "tool": "read_file", "progress": "50 %", "over": False,
    }  # fmt: skip


def test_half_a_surrogate_pair_breaks_no_answer() -> None:
    assert json.loads(wire.dump({"text": "a\ud800 好"})) == {"text": "a\ud800 好"}


def test_numbers_and_waits_are_bounded() -> None:
    assert (wire.number("18", "after"), wire.seconds("2.5"), wire.name_of("m", "message")) == (18, 2.5, "m")
    for wrong in (
        lambda: wire.number("-1", "after"),
        lambda: wire.number("٣", "after"),
        lambda: wire.seconds("26"),
        lambda: wire.seconds("nan"),
        lambda: wire.name_of("", "message"),
    ):
        with pytest.raises(WrongError):
            wrong()
