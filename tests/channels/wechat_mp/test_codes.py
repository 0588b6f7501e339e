from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.wechat_mp import codes


def test_a_reason_is_ours_with_the_code_and_the_requests_number_alone() -> None:
    told = codes.reason(45015, "response out of time limit, text 'secret' rid: 5f8fd8b7-0f8aa1a9-4b6215a5")
    assert told == (
        "the recipient wrote too long ago, or does not follow the account any more "
        "(code 45015, rid 5f8fd8b7-0f8aa1a9-4b6215a5)"
    )
    assert codes.reason(12345, "hello hint: x") == "refused (code 12345)"


def test_a_server_that_is_not_listed_is_named() -> None:
    told = codes.account_reason(
        40164, "invalid ip 203.0.113.9 ipv6 ::ffff:203.0.113.9, not in whitelist rid: 1"
    )
    assert "address 203.0.113.9: put that on the account's IP whitelist" in told
    assert told.endswith("then run turnbridge reload (code 40164)")
    assert "address: put that" in codes.account_reason(40164, "invalid ip 999.1.1.1.1, none")
    assert "app secret" in codes.account_reason(codes.WRONG_SECRET, "")


def test_what_is_not_now_says_when() -> None:
    now = datetime(2026, 1, 1, 15, 59, 0, tzinfo=UTC)
    assert codes.wait_seconds(codes.BUSY, now) == 2
    assert codes.wait_seconds(codes.TOO_FAST, now) == 60
    assert codes.wait_seconds(codes.QUOTA, now) == 60  # midnight in Beijing is 16:00 UTC
    assert codes.wait_seconds(45015, now) == 0


@given(st.integers(0, 10**9))
def test_midnight_in_beijing_is_within_a_day(seconds_on: int) -> None:
    now = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds_on)
    seconds = codes.seconds_to_midnight(now)
    assert 0 < seconds <= 86_400
    end = now + timedelta(seconds=seconds)
    assert (end.hour, end.minute, end.second) == (16, 0, 0)


@pytest.mark.parametrize("code", codes.ACCOUNT)
def test_what_the_operator_must_do_is_said_for_each(code: int) -> None:
    assert f"(code {code})" in codes.account_reason(code, "")
    assert "{" not in codes.account_reason(code, "")
