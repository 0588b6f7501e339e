"""A profile's key: where it is looked for, and what is said where there is none."""

from pathlib import Path
from typing import Any

import pytest

from bridge.agents.contract import AgentPlace
from bridge.agents.llm.key import find_key
from bridge.agents.llm.settings import LlmSettings
from bridge.channel.testing.clock import FakeClock
from bridge.errors import ConfigError
from bridge.logs import clean
from bridge.paths import Home, write_private


@pytest.fixture
def place(tmp_path: Path) -> AgentPlace:
    return AgentPlace("fast", Home(tmp_path), FakeClock())


def settings(**given: Any) -> LlmSettings:
    return LlmSettings.model_validate({"model": "m", **given})


def save(place: AgentPlace, text: str) -> None:
    path = place.home.credentials("agents", "fast")
    place.home.private_dir(path.parent)
    write_private(path, text.encode())


def test_the_variable_that_is_named_comes_before_the_file_and_the_usual_variable(place: AgentPlace) -> None:
    environ = {"MINE": " key-one ", "OPENAI_API_KEY": "key-three"}
    assert find_key(settings(), place, environ) == "key-three"
    save(place, '{"api_key": "key-two"}')
    assert find_key(settings(), place, environ) == "key-two"
    assert find_key(settings(api_key={"env": "MINE"}), place, environ) == "key-one"


def test_no_log_shows_a_key(place: AgentPlace) -> None:
    find_key(settings(), place, {"OPENAI_API_KEY": "plain-word-key"})
    assert "plain-word-key" not in clean("it was plain-word-key")


@pytest.mark.parametrize("given", [{"provider": "ollama"}, {"base_url": "http://127.0.0.1:9/v1"}])
def test_what_runs_at_home_needs_no_key(place: AgentPlace, given: dict[str, Any]) -> None:
    assert find_key(settings(**given), place, {"OPENAI_API_KEY": "key-three"}) == ""


def test_a_missing_key_is_told_with_both_places_for_it(place: AgentPlace) -> None:
    with pytest.raises(
        ConfigError, match=r"\[agents.fast\] has no key: set the variable OPENAI_API_KEY"
    ) as it:
        find_key(settings(), place, {})
    assert str(place.home.credentials("agents", "fast")) in str(it.value)


def test_a_variable_that_is_named_must_be_there(place: AgentPlace) -> None:
    with pytest.raises(ConfigError, match="the environment has no MINE"):
        find_key(settings(api_key={"env": "MINE"}), place, {"MINE": " "})


@pytest.mark.parametrize("text", ["{}", '{"api_key": 3}', '{"api_key": " "}'])
def test_a_file_without_a_key_is_told(place: AgentPlace, text: str) -> None:
    save(place, text)
    with pytest.raises(ConfigError, match="holds no key"):
        find_key(settings(), place, {})


@pytest.mark.parametrize("key", ["two words", "sk-\nx", "schlüssel"])
def test_a_key_that_cannot_be_one_is_told_and_not_shown(place: AgentPlace, key: str) -> None:
    with pytest.raises(ConfigError, match="copy it again") as caught:
        find_key(settings(), place, {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)


def test_a_key_travels_openly_only_near_by(place: AgentPlace) -> None:
    environ = {"MINE": "key-one"}
    near = settings(base_url="http://192.168.0.2/v1", api_key={"env": "MINE"})
    assert find_key(near, place, environ) == "key-one"
    with pytest.raises(ConfigError, match="would send its key openly: use an https address"):
        find_key(settings(base_url="http://api.example.org/v1", api_key={"env": "MINE"}), place, environ)
