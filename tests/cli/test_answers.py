"""Answers: a person is asked again until one will do; lines are taken or refused by their key."""

import getpass

import pytest

from bridge.cli.answers import Given, Person, one_of
from bridge.errors import ConfigError


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person types, in order."""
    waiting: list[str] = []

    def answer(_: str) -> str:
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr(getpass, "getpass", lambda prompt: f"hidden {answer(prompt)}")
    return waiting


def test_a_person_is_asked_again_and_a_secret_is_not_shown(
    typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    typed += ["c", "b", "x"]
    assert Person().to("key", "Which", "a", one_of(["a", "b"])) == "b"
    assert capsys.readouterr().out == "choose one of: a, b\n"
    assert Person().to("key", "Its key", "", str, hidden=True) == "hidden x"


def test_a_person_says_whether_to_go_on_and_may_leave(typed: list[str]) -> None:
    typed += ["", " Keep "]
    assert Person().once_more("again?")
    assert not Person().once_more("again?")
    with pytest.raises(ConfigError, match="nothing was written"):
        Person().once_more("again?")


def test_lines_are_taken_by_their_key_and_never_asked_again() -> None:
    given = Given("agent = echo\nowner=me\nodd")
    assert given.left == "\nowner=me\nodd"
    assert given.to("agent", "Which", "", one_of(["echo"]), hidden=True) == "echo"
    assert given.to("port", "Which", "1", str) == "1"
    assert not given.once_more("again?")
    with pytest.raises(ConfigError, match=r"^agent: choose one of: acp$"):
        given.to("agent", "Which", "", one_of(["acp"]))


def test_a_question_that_is_asked_anew_offers_what_was_typed_before_and_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed, prompts = iter(["no", "b", "sk-1", "", "", ""]), []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return next(typed)

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr(getpass, "getpass", answer)
    person = Person()
    for _ in range(2):
        assert person.to("agent", "Which", "a", one_of(["a", "b"])) == "b"
        assert person.to("agent_key", "The key", "", str, hidden=True) == "sk-1"
    assert person.to("port", "Which port", "1", str) == "1"
    assert prompts == [
        "Which [a]: ", "Which [a]: ", "The key: ", "Which [b]: ", "The key [as it was typed]: ",
        "Which port [1]: ",
    ]  # fmt: skip
