"""Which words are an answer."""

import pytest

from bridge.relay.yes_no import is_casual, yes_or_no


@pytest.mark.parametrize(
    "text",
    ["yes", "Y", " YES! ", "是", "是的。", "确认！", "同意", "批准", "允许", "approve", "yes..", "yes ."],
)
def test_yes(text: str) -> None:
    assert yes_or_no(text) is True


@pytest.mark.parametrize(
    "text",
    ["no", "N.", "否", "不", "不要！", "不行", "不可以", "拒绝", "deny", "取消", "算了。", "Stop!", "\nno\n"],
)
def test_no(text: str) -> None:
    assert yes_or_no(text) is False


@pytest.mark.parametrize(
    "text", ["", "ok", "好", "好的", "可以", "yes please", "nope", "不是", "...", "/stop", "y n"]
)
def test_anything_else_is_no_answer(text: str) -> None:
    assert yes_or_no(text) is None


@pytest.mark.parametrize("text", ["ok", " OK! ", "好", "好的。", "可以", "行", "sure"])
def test_a_casual_word_may_be_meant_as_an_answer_and_is_none(text: str) -> None:
    assert is_casual(text)
    assert yes_or_no(text) is None


@pytest.mark.parametrize("text", ["", "yes", "不", "好看", "ok go on"])
def test_what_is_clear_or_says_more_is_not_casual(text: str) -> None:
    assert not is_casual(text)
