"""Which messages choose: by their words, and by who wrote them where."""

import pytest

from bridge.channel import FileKind, RemoteFile
from bridge.relay.choices import CHARACTERS, IN_CHINESE, ChoiceName, Command, choice_in, parse
from bridge.relay.intake import Policy
from tests.relay.harness import OWNER, message

POLICY = Policy(OWNER, "anyone", tools=True)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/agent", Command(ChoiceName.AGENT)),
        (" /Agent. ", Command(ChoiceName.AGENT)),
        ("／ＭＯＤＥＬ\u3000gpt-4.1", Command(ChoiceName.MODEL, "gpt-4.1")),
        ("/模型 big", Command(ChoiceName.MODEL, "big")),
        ("/智能体！", Command(ChoiceName.AGENT)),
        ("/mode plan", Command(ChoiceName.MODE, "plan")),
        ("/dir ..", Command(ChoiceName.DIR, "..")),
        ("/目录 my  work/ｆ ", Command(ChoiceName.DIR, "my  work/ｆ")),
        ("/compact", Command(ChoiceName.COMPACT)),
    ],
)
def test_what_is_one(text: str, command: Command) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "", "agent", "/", "/agents", "/model of a car", "/compact this", "/agent\nsecond", "a /model",
        "/stop", "/dir " + "x" * CHARACTERS, "/mode a\nb",
    ],
)  # fmt: skip
def test_what_is_an_ordinary_message(text: str) -> None:
    assert parse(text) is None


def test_every_one_has_a_chinese_name() -> None:
    assert set(IN_CHINESE) == set(ChoiceName)
    assert [parse(f"/{word}") for word in IN_CHINESE.values()] == [Command(name) for name in ChoiceName]


@pytest.mark.parametrize("word", ["default", "Default", "默认"])
def test_the_default_has_its_own_word(word: str) -> None:
    assert Command(ChoiceName.AGENT, word).wants_default
    assert not Command(ChoiceName.AGENT, "a").wants_default


def test_only_the_owner_chooses_in_a_direct_chat_with_tools_and_with_nothing_else_in_the_message() -> None:
    asked = message("m", "/model")
    assert choice_in(asked, POLICY) == Command(ChoiceName.MODEL)
    assert choice_in(asked, Policy(OWNER, "anyone", tools=False)) is None
    assert choice_in(message("m", "/model", "stranger"), POLICY) is None
    assert choice_in(message("m", "/model", group=True), POLICY) is None
    assert choice_in(message("m", "/model", reference="r"), POLICY) is None
    file = RemoteFile("k", FileKind.FILE, "f")
    assert choice_in(message("m", "/model", files=(file,)), POLICY) is None
