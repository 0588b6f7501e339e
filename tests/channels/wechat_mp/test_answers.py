import json
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import ChannelError, CredentialsError, HttpAnswer, OutcomeUnknownError, UnreachableError
from bridge.channel.testing.clock import START
from channels.wechat_mp.answers import Result, judge


def answer(body: Any, status: int = 200, method: str = "POST") -> HttpAnswer:
    raw = json.dumps(body).encode()
    return HttpAnswer(status, CIMultiDictProxy(CIMultiDict[str]()), body, raw, method, "host", START)


def test_success_and_refusal_are_told_by_the_code_in_the_body() -> None:
    assert judge(answer({"errcode": 0, "errmsg": "ok"}), START) == Result(
        0, "", "host", {"errcode": 0, "errmsg": "ok"}
    )
    refused = judge(answer({"errcode": 40003, "errmsg": 7}), START)
    assert (refused.code, refused.reason) == (
        40003,
        "the recipient's openid is not one of this account (code 40003)",
    )


@pytest.mark.parametrize("code", [None, "0", True, 0.0])
def test_a_code_that_is_none_is_no_success(code: object) -> None:
    assert judge(answer({"errcode": code}), START).code is None


def test_some_codes_are_about_now_or_about_the_account() -> None:
    with pytest.raises(UnreachableError) as later:
        judge(answer({"errcode": 45011}), START)
    assert later.value.retry_after_seconds == 60
    with pytest.raises(CredentialsError, match="40125"):
        judge(answer({"errcode": 40125, "errmsg": "invalid appsecret"}), START)


def test_what_the_platform_did_not_write_is_judged_by_its_status() -> None:
    with pytest.raises(OutcomeUnknownError):
        judge(answer(None), START)
    with pytest.raises(UnreachableError):
        judge(answer([], method="GET"), START)
    with pytest.raises(OutcomeUnknownError):
        judge(answer({"errcode": 0}, 502), START)
    with pytest.raises(ChannelError):
        judge(answer({"errcode": 0}, 404), START)


def test_a_failed_reading_says_why() -> None:
    assert str(Result(None, "", "h", {}).failed()) == "h: the answer cannot be read"
    assert str(Result(40007, "gone", "h", {}).failed()) == "h: gone"
    assert Result(0, "", "h", {"a": "b", "n": 1}).text("a") == "b"
    assert Result(0, "", "h", {"a": "b", "n": 1}).text("n") == ""
