"""What agents are told of skills, and who is never told of any."""

from pathlib import Path

from bridge.agents.contract import Turn
from bridge.agents.skills import HEAD, MOST_BYTES, for_turn, instructions
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.tools.choose import tools_for
from bridge.tools.skills import Origin, Skill


def skill(name: str, description: str = "What for.") -> Skill:
    return Skill(name, description, Origin.HOME, Path("/"))


def test_skills_are_listed_by_name_and_what_they_are_for() -> None:
    assert instructions([]) == ""
    assert instructions([skill("a"), skill("b", "More.")]) == f"{HEAD}\n- a: What for.\n- b: More."


def test_a_long_list_ends_in_names_alone() -> None:
    text = instructions([skill(f"s{number}", "é" * 500) for number in range(20)])
    assert len(text.encode()) <= MOST_BYTES + 300
    assert text.endswith("s17, s18, s19")
    assert text.splitlines()[-1].startswith("- and: s")


async def test_case_74_no_skill_reaches_a_session_without_tools(tmp_path: Path) -> None:
    """A stranger's, and any in a group, also the owner's there."""
    for root in (tmp_path / "home" / "skills", tmp_path / "work" / ".turnbridge" / "skills"):
        package = root / f"in-{root.parent.name.strip('.')}"
        package.mkdir(parents=True)
        (package / "SKILL.md").write_text(f"---\nname: {package.name}\ndescription: Private.\n---\nSecret.")
    home, cwd = Home(tmp_path / "home"), tmp_path / "work"
    owners = Turn("s", "hi", (), tools_for(home, FakeClock(), False, "Feishu"), cwd, "Feishu")
    assert await for_turn(owners) == f"{HEAD}\n- in-home: Private.\n- in-turnbridge: Private."
    others = Turn("s", "hi", (), tools_for(home, FakeClock(), True, "Feishu"), cwd, "Feishu")
    assert await for_turn(others) == ""
    assert "skill" not in others.tools
