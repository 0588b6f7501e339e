"""Which words are an answer."""

import pytest

from bridge.relay.yes_no import yes_or_no


@pytest.mark.parametrize("text", ["yes", "Y", " YES! ", "是", "是的。", "确认！", "同意", "yes..", "yes ."])
def test_yes(text: str) -> None:
    assert yes_or_no(text) is True


@pytest.mark.parametrize("text", ["no", "N.", "否", "不", "不要！", "取消", "算了。", "Stop!", "\nno\n"])
def test_no(text: str) -> None:
    assert yes_or_no(text) is False


@pytest.mark.parametrize(
    "text", ["", "ok", "好", "好的", "可以", "yes please", "nope", "不是", "...", "/stop", "y n"]
)
def test_anything_else_is_no_answer(text: str) -> None:
    assert yes_or_no(text) is None
