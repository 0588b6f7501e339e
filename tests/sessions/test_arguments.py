from typing import Any

import pytest

from bridge.agents.contract import AgentError
from bridge.sessions.arguments import ARGUMENT_BYTES, plain


@pytest.mark.parametrize("arguments", [None, 1, "a", [1, {"b": None}], {"a": ["ü"]}])
def test_any_json_is_told_as_it_is(arguments: Any) -> None:
    assert plain(arguments) == arguments


def test_what_utf_8_cannot_hold_becomes_a_question_mark() -> None:
    assert plain({"\udcff": "\ud800"}) == {"?": "?"}


def test_what_is_too_large_too_deep_or_no_number_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    deeper = deep
    for _ in range(100_000):
        deeper = [deeper]
    for arguments in ("x" * ARGUMENT_BYTES, deep, deeper, float("nan")):
        with pytest.raises(AgentError) as error:
            plain(arguments)
        assert error.value.code == "tool_limit"
