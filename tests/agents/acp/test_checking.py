"""What the doctor says of a profile."""

from pathlib import Path

import pytest

from bridge.agents.acp import checking
from tests.agents.acp.stage import stage


@pytest.mark.parametrize(
    ("fault", "text", "cure"),
    [
        ("", "1.0 starts and begins sessions, with 2 models to choose", ""),
        ("auth", "is not signed in", "sign in with the program's own command"),
        ("exit", "exit code 3; it said: Error: cannot read the settings", "yourself and see what it says"),
        ("mute", "does not answer within 0.3 s", "yourself and see what it says"),
    ],
)
async def test_it_starts_the_program_and_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, text: str, cure: str
) -> None:
    if fault == "mute":
        monkeypatch.setattr(checking, "CHECK_SECONDS", 0.3)
    async with stage(tmp_path, fault) as here:
        (finding,) = await here.agent.diagnose()
        assert text in finding.text
        assert cure in finding.cure
        assert bool(finding.cure) is bool(cure)
        assert here.told("session/prompt") == []


async def test_a_program_that_is_not_there_is_said_without_starting_anything(tmp_path: Path) -> None:
    async with stage(tmp_path, command=["/nonexistent/agent"]) as here:
        (finding,) = await here.agent.diagnose()
        assert "is not installed" in finding.text
        assert finding.cure == "correct [agents.coder] command"


async def test_a_sign_in_that_the_program_tells_only_later_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(tmp_path) as here:
        monkeypatch.setattr(type(here.agent._launch), "lacks_sign_in", lambda self: True)
        (finding,) = await here.agent.diagnose()
        assert "no sign-in of it was found" in finding.text
