"""Named agents: which there are, what they are made of, and what an account may name."""

from pathlib import Path
from typing import Any

import pytest

from bridge.agents.contract import AgentSettings, AgentSpec
from bridge.channel import ChannelSettings
from bridge.config import Config, DaemonTable
from bridge.errors import ConfigError
from bridge.paths import Home
from bridge.profiles import Profiles


class Fast(AgentSettings):
    words: int = 3


INSTALLED = {
    "echo": AgentSpec("echo", AgentSettings, lambda settings, place: settings),
    "llm": AgentSpec("llm", Fast, lambda settings, place: settings),
    "acp": AgentSpec("acp", AgentSettings, lambda settings, place: settings, own_tools=True),
}


class Installed:
    broken = ""

    def names(self) -> list[str]:
        return sorted(INSTALLED)

    def load(self, name: str) -> AgentSpec:
        if name == self.broken:
            raise ConfigError("cannot be loaded")
        return INSTALLED[name]


def profiles(default: str = "echo", **tables: dict[str, Any]) -> Profiles:
    config = Config(daemon=DaemonTable(agent=default), agents=tables)
    return Profiles(config, Home(Path("/h")), Installed())


def test_a_profile_is_a_table_and_its_type_the_agent() -> None:
    found = profiles(fast={"type": "llm", "words": 5}).read("fast")
    assert (found.name, found.spec.name, found.settings) == ("fast", "llm", Fast(words=5))


def test_without_a_type_the_name_is_the_agent_s_and_without_a_table_all_is_default() -> None:
    assert profiles(llm={"words": 1}).read("llm").settings == Fast(words=1)
    assert profiles().read("llm").settings == Fast()


def test_those_that_can_be_chosen_are_the_default_and_the_tables() -> None:
    assert profiles("acp", fast={"type": "llm"}, b={}).names() == ["acp", "b", "fast"]


@pytest.mark.parametrize(
    ("default", "tables", "name", "text"),
    [
        ("echo", {"fast": {}}, "fast", "agents.fast.type: must name an installed agent: acp, echo, llm"),
        ("echo", {"fast": {"type": 3}}, "fast", "agents.fast.type: must name an installed agent"),
        ("echo", {"fast": {"type": "llm", "x": 1}}, "fast", "agents.fast.x: no such setting"),
        ("no", {}, "no", "daemon.agent: there is no agent called 'no'"),
        ("echo", {}, "no", "agents.no: there is no agent called 'no'"),
    ],
)
def test_what_is_wrong_with_one_is_told_by_its_place(
    default: str, tables: dict[str, Any], name: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=r"/h/config.toml") as caught:
        profiles(default, **tables).read(name)
    assert text in str(caught.value)


def checked(default: str = "echo", tables: dict[str, Any] | None = None, **settings: Any) -> list[str]:
    given = ChannelSettings.model_validate(settings)
    return profiles(default, **(tables or {})).check(given, "channels.a.b")


def test_an_account_may_name_what_there_is() -> None:
    tables = {"fast": {"type": "llm"}}
    assert checked() == []
    assert checked(tables=tables, agent="fast", guest_agent="llm") == []
    assert checked("acp", remote_tools="owner", guest_agent="echo") == []
    assert checked("acp", guest_agent="echo") == []


def test_an_agent_that_is_none_is_told_with_those_that_are() -> None:
    (line,) = checked(guest_agent="nobody")
    assert line == (
        "channels.a.b.guest_agent: there is no agent called 'nobody': there are acp, echo, llm; "
        "name one, or add [agents.nobody] and restart"
    )
    (line,) = checked(tables={"odd": {"type": "llm", "x": 1}}, agent="odd")
    assert line == "/h/config.toml: agents.odd.x: no such setting: remove it"


def test_an_installed_agent_that_cannot_be_loaded_is_told_by_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Installed, "broken", "llm")
    with pytest.raises(ConfigError, match=r"agents.fast: cannot be loaded"):
        profiles(fast={"type": "llm"}).read("fast")


def test_an_agent_that_is_almost_named_is_told_and_profiles_are_listed_too() -> None:
    tables = {"fast": {"type": "llm"}}
    known = "there is no agent called 'fats': did you mean fast? There are acp, echo, fast, llm"
    assert checked(tables=tables, agent="fats") == [f"channels.a.b.agent: {known}"]
    for default, place in (("fats", "daemon.agent"), ("echo", "agents.fats")):
        with pytest.raises(ConfigError) as caught:
            profiles(default, **tables).read("fats")
        assert str(caught.value) == f"/h/config.toml: {place}: {known}"


def test_an_agent_with_tools_of_its_own_answers_only_where_there_are_tools() -> None:
    (line,) = checked(agent="acp", guest_agent="echo")
    assert line.startswith("channels.a.b.agent: acp has tools of its own, so it answers where remote_tools")
    (line,) = checked(agent="acp", remote_tools="owner")
    assert line.endswith(
        'so it answers nobody but the owner with tools: say who does, such as guest_agent = "echo"'
    )
    (line,) = checked("acp")
    assert line.startswith("channels.a.b.guest_agent: acp has tools of its own")
    (line,) = checked(guest_agent="acp", remote_tools="owner")
    assert line.endswith("name another")


def test_where_nobody_but_the_owner_can_write_nobody_else_needs_an_agent() -> None:
    class Alone(ChannelSettings):
        guests = False

    alone = profiles("acp")
    assert alone.check(Alone.model_validate({"remote_tools": "owner"}), "x") == []
    assert alone.check(Alone(), "x") != []


def test_every_account_is_told_though_its_agent_was_asked_before() -> None:
    found = profiles("acp")
    (first,) = found.check(ChannelSettings(), "channels.a.b")
    (second,) = found.check(ChannelSettings(), "channels.a.c")
    assert second == first.replace("channels.a.b", "channels.a.c")


def test_what_is_wrong_with_the_default_is_told_of_that_alone() -> None:
    assert checked("no") == []
