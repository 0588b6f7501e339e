import pytest

from bridge.relay.texts import _EN, _ZH, Language, Text, language_of, say


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("text", Text)
def test_every_text_exists_in_both_languages(text: Text, language: Language) -> None:
    said = say(text, language, limit=5, count=2, name="a.txt", reason="too large", percent=20, tools="t")
    assert said.strip()
    assert "{" not in said


def test_the_two_tables_hold_different_words() -> None:
    assert all(_EN[text] != _ZH[text] for text in Text)


def test_chinese_is_answered_in_chinese_unless_the_account_says_otherwise() -> None:
    assert language_of("你好，请看一下", "auto") is Language.ZH
    assert language_of("hello", "auto") is Language.EN
    assert language_of("", "auto") is Language.EN
    assert language_of("你好", "en") is Language.EN
    assert language_of("hello", "zh") is Language.ZH
