"""The agent as it is registered: light until it is made, and clear about what is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import registry
from bridge.agents import llm
from bridge.agents.contract import AgentPlace
from bridge.agents.llm.settings import LlmSettings
from bridge.channel.testing.clock import FakeClock
from bridge.errors import ConfigError
from bridge.paths import Home

LOCAL = LlmSettings(model="small", provider="ollama")


@pytest.fixture
def place(tmp_path: Path) -> AgentPlace:
    return AgentPlace("fast", Home(tmp_path), FakeClock())


def test_it_is_found_by_its_entry_point_and_made(place: AgentPlace) -> None:
    spec = registry.agents().load("llm")
    assert (spec, spec.own_tools) == (llm.SPEC, False)
    assert spec.create(LOCAL, place).model == "small"


def test_a_missing_key_is_told_when_it_is_made(place: AgentPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        llm.create(LlmSettings(model="m"), place)


def test_missing_libraries_are_told_with_how_to_get_them(
    place: AgentPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bridge.agents.llm.agent", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[llm\]'"):
        llm.create(LOCAL, place)


def test_loading_its_settings_imports_no_library() -> None:
    heavy = "{'pydantic_ai', 'openai', 'anthropic', 'httpx2'}"
    code = f"import sys, bridge.agents.llm; print(sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


def test_it_says_what_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert llm.lacks() == ""
    monkeypatch.setattr(llm, "LIBRARIES", ("anthropic", "no_library_of_this_name"))
    assert llm.lacks() == llm.LACKING
