"""The chat's own texts: both languages say the same things, by the locale."""

import re

import pytest

from bridge.cli import chat_words
from bridge.cli.chat_words import Word, Words, words_for


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({}, "Stopped."),
        ({"LANG": "en_US.UTF-8"}, "Stopped."),
        ({"LANG": "zh_CN.UTF-8"}, "已停止。"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "Stopped."),
        ({"LANG": "C", "LC_MESSAGES": "ZH_TW"}, "已停止。"),
        ({"LANG": "zh", "LC_ALL": ""}, "已停止。"),
    ],
)
def test_the_locale_chooses_the_language(environ: dict[str, str], text: str) -> None:
    assert words_for(environ).say(Word.STOPPED) == text


@pytest.mark.parametrize("word", list(Word))
def test_each_text_is_there_in_both_languages_with_the_same_values(word: Word) -> None:
    found = [re.findall(r"\{\w+\}", texts[word]) for texts in (chat_words._EN, chat_words._ZH)]
    assert found[0] == found[1]


def test_values_are_put_in() -> None:
    assert Words(chinese=True).say(Word.QUEUED, count=2) == "还有 2 条在等"


def test_the_help_names_each_command_in_both_languages() -> None:
    for chinese in (False, True):
        text = Words(chinese).say(Word.HELP)
        for command in ("/file", "/stop", "/history", "/status", "/quit", "Ctrl-C", "Ctrl-D", "Ctrl-R"):
            assert command in text
