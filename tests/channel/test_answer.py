"""What an answer means."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel.answer import HttpAnswer, failure, http_date, lost, parse_json, retry_after
from bridge.errors import ChannelError, CredentialsError, OutcomeUnknownError, UnreachableError

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def answer(status: int = 200, method: str = "POST", body: Any = None, **headers: str) -> HttpAnswer:
    named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    return HttpAnswer(status, CIMultiDictProxy(named), body, b"", method, "e.example", NOW)


@pytest.mark.parametrize(
    ("status", "method", "kind"),
    [
        (401, "POST", CredentialsError),
        (403, "GET", CredentialsError),
        (408, "POST", UnreachableError),
        (425, "POST", UnreachableError),
        (429, "POST", UnreachableError),
        (503, "POST", UnreachableError),
        (500, "POST", OutcomeUnknownError),
        (502, "PUT", OutcomeUnknownError),
        (599, "DELETE", OutcomeUnknownError),
        (500, "GET", UnreachableError),
        (200, "POST", OutcomeUnknownError),
        (200, "GET", UnreachableError),
        (404, "POST", ChannelError),
        (302, "GET", ChannelError),
    ],
)
def test_a_status_says_what_to_do_next(status: int, method: str, kind: type[ChannelError]) -> None:
    error = failure(answer(status, method))
    assert type(error) is kind
    assert str(error).startswith(f"{method} e.example: ")


def test_the_wait_that_was_asked_for_is_passed_on() -> None:
    error = failure(answer(429, retry_after="7"))
    assert isinstance(error, UnreachableError)
    assert error.retry_after_seconds == 7


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5), ("0.65", 0.65), ("-3", 0), ("99999999", 86400), ("nan", 0), ("inf", 86400), ("", 0),
        ("soon", 0),
        ("Mon, 30 Nov 2026 12:01:00 GMT", 60), ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
    ],
)  # fmt: skip
def test_a_wait_is_in_seconds_or_until_a_date(value: str, seconds: float) -> None:
    assert retry_after(value, NOW) == seconds
    assert answer(Retry_After=value).retry_after_seconds == seconds


@given(st.text())
def test_no_header_breaks_the_reading(value: str) -> None:
    assert 0 <= retry_after(value, NOW) <= 86400


def test_a_date_is_judged_by_the_platforms_clock() -> None:
    found = answer(Date="Mon, 30 Nov 2026 12:00:30 GMT", Retry_After="Mon, 30 Nov 2026 12:01:00 GMT")
    assert found.retry_after_seconds == 30


def test_without_a_readable_date_there_is_none() -> None:
    assert answer().date is None
    assert http_date("Mon, 30 Nov 2026 12:00:00 -0000") == NOW


def test_the_fields_are_an_objects() -> None:
    assert answer(body={"a": 1}).fields() == {"a": 1}
    with pytest.raises(OutcomeUnknownError):
        answer(body=[1]).fields()
    with pytest.raises(UnreachableError):
        answer(method="GET").fields()
    assert isinstance(lost("HEAD", "h", "why"), UnreachableError)


@pytest.mark.parametrize("raw", [b"", b"<html>", b"\xff\xfe{", b"[" * 200_000, b"1" * 5000])
def test_what_is_no_json_is_none(raw: bytes) -> None:
    assert parse_json(raw) is None


def test_what_an_answer_brought_is_not_in_its_repr() -> None:
    assert parse_json(b' {"a": "\xe4\xb8\xad"}') == {"a": "中"}
    assert "secret" not in repr(HttpAnswer(200, {}, "secret", b"secret", "GET", "h", NOW))
