"""Which models are shown pictures."""

import pytest

from bridge.agents.llm.settings import LlmSettings
from bridge.agents.llm.sight import Sight


def sight(images: object = "auto") -> Sight:
    return Sight(LlmSettings.model_validate({"model": "m", "images": images}))


@pytest.mark.parametrize(
    "model", ["gpt-5-mini", "claude-sonnet-5", "gemma3:4b", "qwen2.5-vl", "llava", "my-own", "deepseek-vl2"]
)
def test_whatever_is_not_known_to_be_blind_is_shown_pictures(model: str) -> None:
    assert sight().sees(model)


@pytest.mark.parametrize(
    "model",
    [
        "deepseek-chat",
        "deepseek-ai/deepseek-r1",
        "gpt-3.5-turbo",
        "qwen3-coder:30b",
        "llama3.1:8b",
        "o1-mini",
    ],
)
def test_families_of_words_alone_are_not(model: str) -> None:
    assert not sight().sees(model)


def test_the_profile_has_the_last_word() -> None:
    assert sight(True).sees("deepseek-chat")
    assert not sight(False).sees("gpt-5-mini")


@pytest.mark.parametrize("images", [True, "auto"])
def test_a_model_that_refused_them_is_shown_none_any_more(images: object) -> None:
    found = sight(images)
    found.blind("m")
    assert not found.sees("m")
    assert found.sees("other")
