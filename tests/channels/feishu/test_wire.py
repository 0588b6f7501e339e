from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.feishu.wire import (
    Mention,
    RestMessage,
    envelope,
    file_key,
    file_parts,
    instant,
    line_of,
    mentions_in,
    message_event,
    milliseconds,
    read_object,
)


@given(st.text(), st.text(), st.sampled_from(["image", "file"]))
def test_a_files_key_holds_all_of_it(message: str, key: str, kind: str) -> None:
    assert file_parts(file_key(message, key, kind)) == (message, key, kind)
    assert file_key(message, key, kind).isascii()


@pytest.mark.parametrize("key", ["", "x", "[]", "[1]", "{}", "5"])
def test_another_key_is_refused(key: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        file_parts(key)


@pytest.mark.parametrize(
    ("stamp", "second"),
    [("1700000000000", 20), ("1700000000000000", 20), ("1700000000000000000", 20), ("1700000001.5", 21)],
)
def test_stamps_are_ms_or_finer_digits_or_seconds_with_a_point(stamp: str, second: int) -> None:
    found = instant(stamp)
    assert found is not None
    assert found.replace(microsecond=0) == datetime(2023, 11, 14, 22, 13, second, tzinfo=UTC)


@pytest.mark.parametrize("stamp", ["", "x", "-1", "1e9", "１２", "9" * 26, "1.", ".5"])
def test_what_is_no_stamp_is_none(stamp: str) -> None:
    assert instant(stamp) is None


@given(st.text(alphabet="0123456789.", max_size=30))
def test_no_digits_make_it_fail(stamp: str) -> None:
    assert instant(stamp) is None or instant(stamp) is not None


def test_json_that_is_no_object_is_none() -> None:
    assert read_object(b"[1]") is None
    assert read_object(b"{" * 200_000) is None
    assert read_object('{"a": ' + "1" * 5000 + "}") is None
    assert read_object(b'{"a": 1}') == {"a": 1}


def test_envelopes_are_told_by_their_schema() -> None:
    new = envelope({"schema": "2.0", "header": {"event_type": "e", "token": "t", "app_id": "a"}, "event": {}})
    assert (new.version, new.kind, new.token, new.app_id) == ("2", "e", "t", "a")
    old = envelope({"token": "t", "ts": "1.5", "event": {"type": "message", "app_id": "a"}})
    assert (old.version, old.kind, old.token, old.app_id, old.sent) == ("1", "message", "t", "a", "1.5")
    assert envelope({"schema": 2, "header": [], "event": []}).kind == ""
    assert "SECRET" not in repr(envelope({"token": "SECRET", "event": {"text": "SECRET"}}))


def test_mentions_are_read_in_both_shapes() -> None:
    assert Mention(key="k", id={"open_id": "ou_1"}).open_id == "ou_1"
    assert Mention(key="k", id="ou_1").open_id == "ou_1"
    assert Mention(key="k", id={"open_id": 5}).open_id == ""
    assert RestMessage.model_validate({"mentions": None, "msg_type": 5}).mentions == []


IDS = {"message_id": "om_1", "chat_id": "oc_1", "chat_type": "p2p"}


def test_a_message_and_its_sender_are_handed_on_as_they_are() -> None:
    sender: dict[str, Any] = {"sender_id": {}}
    message: dict[str, Any] = {**IDS, "anything": [1]}
    assert message_event({"sender": sender, "message": message}) == (sender, message)


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        {"sender": {}},
        {"message": IDS},
        {"sender": [], "message": IDS},
        {"sender": {}, "message": "x"},
        *(
            {"sender": {}, "message": {**IDS, key: odd}}
            for key in IDS
            for odd in (None, "", 5, "x" * 257, "a\n")
        ),
    ],
)
def test_an_event_without_what_every_message_has_is_none(event: object) -> None:
    assert message_event(event) is None


def test_mentions_of_a_message_are_read_where_there_are_any() -> None:
    assert mentions_in({}) == mentions_in({"mentions": None}) == ()
    (one,) = mentions_in({"mentions": [5, {"key": "@_user_1", "id": {"open_id": "ou_1"}}]})
    assert (one.key, one.open_id) == ("@_user_1", "ou_1")


def test_a_line_is_text_and_cleaned_where_it_must_be() -> None:
    assert line_of({"a": "é"}, "a") == "é"
    assert line_of({"a": "x\x00y\n"}, "a") == "xy\n"
    assert line_of({"a": 5}, "a") == line_of({}, "a") == ""


def test_a_stamp_as_ms_is_0_where_it_is_none() -> None:
    assert [milliseconds(stamp) for stamp in ("1700000000123", "1700000000.5", "soon", "")] == [
        1700000000123,
        1700000000500,
        0,
        0,
    ]
