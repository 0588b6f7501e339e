from string import Formatter

import pytest

from bridge.relay.texts import _EN, _ZH, Language, Text, duration, language_of, say


def fields_of(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("text", Text)
def test_every_text_exists_in_both_languages_and_says_the_same_things(text: Text, language: Language) -> None:
    fields = fields_of(_EN[text])
    assert fields_of(_ZH[text]) == fields
    said = say(text, language, **dict.fromkeys(fields, "5"))
    assert said.strip()
    assert "{" not in said


def test_the_two_tables_hold_different_words() -> None:
    assert all(_EN[text] != _ZH[text] for text in Text)


def test_one_is_told_as_one() -> None:
    said = {count: say(Text.WAITS, Language.EN, count=count) for count in (0, 1, 2)}
    assert said == {0: "Waiting: 0 messages.", 1: "Waiting: 1 message.", 2: "Waiting: 2 messages."}
    assert say(Text.FILES, Language.EN, count=1) == "(1 file)"
    assert say(Text.QUESTION, Language.EN, question="(s)", time="1 h").count("(s)") == 1


def test_chinese_is_answered_in_chinese_unless_the_account_says_otherwise() -> None:
    assert language_of("你好，请看一下", "auto") is Language.ZH
    assert language_of("hello", "auto") is Language.EN
    assert language_of("", "auto") is Language.EN
    assert language_of("你好", "en") is Language.EN
    assert language_of("hello", "zh") is Language.ZH


def test_a_time_is_told_in_the_largest_unit_that_fits_twice() -> None:
    told = {seconds: duration(seconds, Language.EN) for seconds in (-1, 12, 90, 120, 600, 7199, 14_400)}
    assert list(told.values()) == ["0 s", "12 s", "90 s", "2 min", "10 min", "119 min", "4 h"]
    assert duration(12, Language.ZH) == "12 秒"
