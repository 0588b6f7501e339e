"""What is found of the agents: each fault with its cure, whatever an agent's check does."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from bridge.accounts import AccountSetup
from bridge.agents.contract import Agent, AgentPlace, AgentSettings, AgentSpec, Finding
from bridge.cli import agent_checks
from bridge.cli.agent_checks import checked, elsewhere, examined, named, profiles_of, skills, voice
from bridge.cli.examination import enabled
from bridge.cli.findings import Level
from bridge.config import load
from bridge.errors import ConfigError
from bridge.paths import Home, write_private
from bridge.profiles import Profile
from tests.agents.llm.server import JSON, ModelServer, Reply

SETTINGS = """
[daemon]
agent = "fast"
[agents.fast]
type = "llm"
model = "small"
api_key = { env = "FAST_KEY" }
[channels.console.local]
agent = "echo"
[channels.console.other]
guest_agent = "fast"
agent = "nobody"
enabled = false
"""


@pytest.fixture
def where(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.private_dir(home.root)
    write_private(home.config, SETTINGS.encode())
    return home


class Mute:
    model = "mute"


class Checked(Mute):
    def __init__(self, found: Sequence[Finding] | Exception) -> None:
        self._found = found

    async def diagnose(self) -> Sequence[Finding]:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def profile(agent: object) -> Profile:
    def create(settings: AgentSettings, place: AgentPlace) -> Agent:
        if isinstance(agent, Exception):
            raise agent
        return agent  # type: ignore[return-value]  # as much of one as is asked here

    return Profile("own", AgentSpec("own", AgentSettings, create), AgentSettings())


def test_the_default_is_looked_at_and_each_that_an_account_names(where: Home) -> None:
    config = load(where.config)
    accounts: list[AccountSetup] = enabled(where, config)
    assert named(profiles_of(config, where), accounts) == ["fast", "echo"]


async def test_a_key_that_this_shell_lacks_may_be_the_daemons(
    where: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAST_KEY", raising=False)
    profiles = profiles_of(load(where.config), where)
    found, other = await examined(profiles, ["fast", "missing", "echo"], where, runs=False)
    assert (found.level, other.level, other.text) == (Level.FAULT, Level.GOOD, "echo: echo is there")
    assert found.text == ("[agents.fast] api_key: the environment has no FAST_KEY: set it before the start")
    assert "agents check fast --home" in found.cure
    found, _ = await examined(profiles, ["fast", "echo"], where, runs=True)
    assert (found.level, found.cure[:17]) == (Level.WARNING, "unless the daemon")


@pytest.mark.parametrize(
    ("agent", "levels", "words"),
    [
        (Mute(), [Level.GOOD], "own: own is there"),
        (Checked([Finding("it answers"), Finding("no model x", "take y")]), [Level.GOOD, Level.FAULT], "it"),
        (Checked(RuntimeError("its own bug")), [Level.FAULT], "own: the agent broke off"),
        (ConfigError("it lacks a library"), [Level.FAULT], "own: it lacks a library"),
    ],
)
async def test_whatever_an_agent_does_comes_out_as_findings(
    agent: object, levels: list[Level], words: str, where: Home
) -> None:
    found = await checked(profile(agent), where)
    assert [each.level for each in found] == levels
    assert words in found[0].text
    assert all(each.cure for each in found if each.level is Level.FAULT)


async def test_a_check_that_hangs_is_left(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs(Mute):
        async def diagnose(self) -> Sequence[Finding]:
            import asyncio

            await asyncio.Event().wait()
            return []

    monkeypatch.setattr(agent_checks, "CHECK_SECONDS", 0.0)
    (found,) = await checked(profile(Hangs()), where)
    assert found.text == "own: the agent did not answer in time"


async def test_a_key_that_is_refused_and_a_model_that_is_not_there_are_told_without_the_key(
    where: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAST_KEY", "sk-s3cr3t")
    async with ModelServer().serving() as server:
        text = SETTINGS.replace('model = "small"', f'model = "tiny"\nbase_url = "{server.address}"')
        write_private(where.config, text.encode())
        profiles = profiles_of(load(where.config), where)
        *_, model = await examined(profiles, ["fast"], where, runs=True)
        assert (model.level, model.text) == (Level.FAULT, "fast: there is no model tiny")
        server.models = Reply([b"{}"], status=401, headers=JSON)
        found = await examined(profiles, ["fast"], where, runs=True)
    assert "refuses the key (401)" in found[-1].text
    assert "s3cr3t" not in repr(found)


def test_a_package_of_instructions_that_does_not_count_is_a_warning(where: Home) -> None:
    assert [*skills(where, load(where.config))] == []
    os.makedirs(where.root / "skills" / "broken")
    (found,) = skills(where, load(where.config))
    assert (found.level, found.check) == (Level.WARNING, "skills")
    assert "turnbridge skills --home" in found.cure


@pytest.mark.parametrize("decodes", [True, False])
def test_who_transcribes_voice_needs_a_key_and_what_decodes_it(
    decodes: bool, where: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: decodes or None)
    monkeypatch.delenv("VOICE_KEY", raising=False)
    assert [*voice(where, load(where.config))] == []
    table = '[voice]\nbase_url = "http://127.0.0.1:1/v1"\napi_key = { env = "VOICE_KEY" }\n'
    write_private(where.config, (SETTINGS + table).encode())
    found, *more = voice(where, load(where.config))
    assert (found.level, elsewhere(found).level) == (Level.FAULT, Level.WARNING)
    assert found.text == "voice.api_key: the environment has no VOICE_KEY: set it"
    assert [each.cure for each in more] == ([] if decodes else ["pip install '.[voice]' in a clone"])
    monkeypatch.setenv("VOICE_KEY", "sk-1")
    found, *_ = voice(where, load(where.config))
    assert (found.level, found.text) == (Level.GOOD, "transcribed at http://127.0.0.1:1/v1")
