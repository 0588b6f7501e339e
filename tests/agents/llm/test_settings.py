"""A profile's settings: what there is without any, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bridge.agents.llm.settings import PRESETS, LlmSettings, is_near
from bridge.errors import ConfigError
from bridge.tables import validate


def settings(**given: Any) -> LlmSettings:
    return LlmSettings.model_validate({"model": "m", **given})


@pytest.mark.parametrize("provider", sorted(set(PRESETS) - {"compatible"}))
def test_each_provider_has_an_address(provider: str) -> None:
    found = settings(provider=provider)
    assert found.address.startswith("http")
    assert found.usual_env == "" or found.usual_env.endswith("_API_KEY")
    assert (found.usual_env == "") == is_near(found.address)


def test_an_address_of_ones_own_is_sent_no_key_of_the_provider_s() -> None:
    found = settings(base_url="https://proxy.example.org/v1/")
    assert (found.address, found.usual_env) == ("https://proxy.example.org/v1", "")
    assert found.told_address == "https://proxy.example.org"


def test_the_default_model_is_the_first_to_choose() -> None:
    assert settings().all_models == ("m",)
    assert settings(models=("a", "m", "b")).all_models == ("m", "a", "b")


@pytest.mark.parametrize(
    ("given", "answer", "room"),
    [
        ({}, 0, 0),
        ({"max_output_tokens": 400}, 400, 0),
        ({"context_tokens": 2048}, 512, 1408),
        ({"context_tokens": 4096}, 1024, 2816),
        ({"context_tokens": 4096, "max_output_tokens": 400}, 400, 3440),
        ({"context_tokens": 131_072}, 8192, 120_832),
    ],
)
def test_a_small_context_is_shared_by_the_answer_and_what_is_read(given: Any, answer: int, room: int) -> None:
    found = settings(**given)
    assert (found.answer_tokens, found.room_tokens) == (answer, room)


@pytest.mark.parametrize(
    "given",
    [
        {"context_tokens": 2047},
        {"context_tokens": 4096, "max_output_tokens": 2049},
        {"model": ""},
        {"models": ("a", "a")},
        {"models": (" ",)},
        {"provider": "nobody"},
        {"provider": "compatible"},
        {"base_url": "ftp://x"},
        {"base_url": "https://user:word@x/v1"},
        {"base_url": "https://x/v1?key=1"},
        {"base_url": "https://[x/v1"},
        {"proxy": "socks5://x"},
        {"temperature": 3},
        {"temperature": "hot"},
        {"max_output_tokens": -1},
        {"thinking": "much"},
        {"images": "maybe"},
        {"price_input": 1},
        {"price_output": -1, "price_input": 1},
        {"tries": 0},
        {"silence_seconds": 0},
        {"surprise": 1},
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(**given)


def test_a_key_in_the_settings_is_refused_and_never_shown() -> None:
    table = {"model": "m", "api_key": "sk-secret"}
    with pytest.raises(ConfigError, match="no secret belongs into this file") as caught:
        validate(LlmSettings, table, Path("/c.toml"), "agents.fast")
    assert "sk-secret" not in str(caught.value)


def test_a_table_as_it_stands_in_a_file_is_read() -> None:
    table = {"model": "m", "api_key": {"env": "X"}, "temperature": 1, "images": False, "models": ["a"]}
    found = validate(LlmSettings, table, Path("/c.toml"), "agents.fast")
    assert (found.api_key.env, found.temperature, found.images, found.models) == ("X", 1.0, False, ("a",))


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://[::1]/v1", True),
        ("http://192.168.1.7/v1", True),
        ("http://gpu/v1", True),
        ("http://gpu.local/v1", True),
        ("http://localhost/v1", True),
        ("http://8.8.8.8/v1", False),
        ("http://api.example.org/v1", False),
    ],
)
def test_what_is_near_is_told_by_the_address_alone(address: str, near: bool) -> None:
    assert is_near(address) is near
