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
