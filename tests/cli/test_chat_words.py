"""The chat's own texts: both languages say the same things, by the locale."""

import re

import pytest

from bridge.cli import chat_words
from bridge.cli.chat_words import Word, WordError, Words, words_for
from bridge.errors import BridgeError
from bridge.relay import choices
from bridge.relay.commands import IN_CHINESE


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


def test_an_error_of_ours_is_told_in_the_person_s_language_and_any_other_as_it_is() -> None:
    error = WordError(Word.FILE_MISSING, name="图.png")
    assert str(error) == Words(chinese=False).told(error) == "图.png: No such file or directory"
    assert Words(chinese=True).told(error) == "图.png：没有这个文件或目录"
    assert Words(chinese=True).told(BridgeError("it is asleep")) == "it is asleep"


def test_the_help_names_each_command_in_both_languages() -> None:
    for chinese in (False, True):
        text = Words(chinese).say(Word.HELP)
        for command in ("/file", "/stop", "/history", "/status", "/quit", "Ctrl-C", "Ctrl-D", "Ctrl-R"):
            assert command in text


def test_the_chinese_help_names_the_chinese_commands_since_they_are_answered_in_chinese() -> None:
    text = Words(chinese=True).say(Word.HELP)
    names = [*IN_CHINESE.values(), *choices.IN_CHINESE.values()]
    own = {"帮助", "停止", "状态", "队列", "我是谁"}  # the chat's own, and those for chats of several
    assert [name for name in names if f"/{name}（/" not in text and name not in own] == []
