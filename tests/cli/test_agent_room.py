"""A model's room for messages beside instructions and tools: too little is a warning, where it counts."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bridge.cli.agent_checks import profiles_of
from bridge.cli.agent_room import narrow
from bridge.cli.examination import enabled
from bridge.cli.findings import Finding, Level
from bridge.config import load
from bridge.paths import Home, write_private

PROFILE = """
[agents.{name}]
type = "llm"
provider = "ollama"
model = "small"
context_tokens = {tokens}
"""
OWNED = """
[channels.console.local]
remote_tools = "owner"
agent = "{agent}"
"""


async def found(tmp_path: Path, settings: str, names: Sequence[str] = ("small",)) -> list[Finding]:
    where = Home(tmp_path / "home")
    where.private_dir(where.root)
    write_private(where.config, settings.encode())
    config = load(where.config)
    return await narrow(profiles_of(config, where), names, where, config, enabled(where, config))


@pytest.mark.parametrize(("tokens", "left"), [(2048, "nothing"), (4096, "")])
async def test_an_owner_with_tools_has_no_room_in_a_small_context(
    tokens: int, left: str, tmp_path: Path
) -> None:
    settings = PROFILE.format(name="small", tokens=tokens) + OWNED.format(agent="small")
    (told,) = await found(tmp_path, settings)
    assert (told.level, told.check) == (Level.WARNING, "agent")
    assert f"small: instructions and tools leave {left}" in told.text
    assert "context_tokens of [agents.small]" in told.cure
    assert "tools.disabled" in told.cure


async def test_what_the_default_profile_lacks_counts_for_accounts_that_name_none(tmp_path: Path) -> None:
    default = '[daemon]\nagent = "small"\n' + PROFILE.format(name="small", tokens=4096)
    assert len(await found(tmp_path, default + OWNED.format(agent=""))) == 1


@pytest.mark.parametrize(
    "more",
    [
        '[channels.console.local]\nremote_tools = "none"\nagent = "small"\n',  # no tools
        OWNED.format(agent="echo"),
        OWNED.format(agent="small") + '[tools]\ndisabled = ["nothing"]\n',  # told with the settings
    ],
)
async def test_a_small_context_is_enough_where_nobody_it_answers_has_tools(more: str, tmp_path: Path) -> None:
    assert await found(tmp_path, PROFILE.format(name="small", tokens=4096) + more) == []


async def test_a_larger_one_is_enough_for_tools(tmp_path: Path) -> None:
    settings = PROFILE.format(name="small", tokens=16_384) + OWNED.format(agent="small")
    assert await found(tmp_path, settings) == []
    small = settings + "[sessions]\ncontext_max_tokens = 12288\n"  # which bounds all agents
    assert len(await found(tmp_path, small)) == 1


async def test_instructions_may_be_too_long_for_any_message(tmp_path: Path) -> None:
    long = PROFILE.format(name="small", tokens=4096) + f'instructions = "{"word " * 1200}"\n'
    (told,) = await found(tmp_path, long)
    assert "its instructions leave" in told.text
    assert told.cure.endswith("make its instructions shorter")


async def test_what_has_no_such_bounds_or_cannot_be_used_is_left_out(tmp_path: Path) -> None:
    broken = '[agents.broken]\ntype = "llm"\nmodel = ""\n'
    assert await found(tmp_path, broken, ["echo", "broken", "missing"]) == []
