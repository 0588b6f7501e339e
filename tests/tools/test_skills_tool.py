"""The tool ``skill``."""

from pathlib import Path

import pytest

from bridge.paths import Home
from bridge.tools.contract import ArgumentsError, Risk, read_arguments
from bridge.tools.skills_tool import SkillArguments, SkillTool
from tests.tools.place import Shown


@pytest.fixture
def tool(tmp_path: Path) -> SkillTool:
    package = tmp_path / "home" / "skills" / "one"
    package.mkdir(parents=True)
    (package / "SKILL.md").write_text("---\nname: one\ndescription: x\n---\nDo it.")
    (package / "more.md").write_text("more")
    return SkillTool(Home(tmp_path / "home"))


async def text(tool: SkillTool, place: Path, name: str, path: str = "") -> tuple[bool, str]:
    result = await tool.run(SkillArguments(name=name, path=path), Shown(place).place)
    return result.success, result.output


async def test_it_gives_the_instructions_and_the_other_files(tool: SkillTool, tmp_path: Path) -> None:
    told = "Do it.\n\nOther files of this skill:\n- more.md"
    assert await text(tool, tmp_path, "one") == (True, told)
    assert await text(tool, tmp_path, "one", "more.md") == (True, "more")
    (tmp_path / "home/skills/one/more.md").unlink()
    assert await text(tool, tmp_path, "one") == (True, "Do it.")


async def test_what_is_not_there_is_told_with_what_is(tool: SkillTool, tmp_path: Path) -> None:
    assert await text(tool, tmp_path, "two") == (False, "There is no such skill. There are: one.")
    success, why = await text(tool, tmp_path, "one", "../../config.toml")
    assert (success, why) == (False, "It did not work: that path is outside of the package.")


def test_it_changes_nothing_and_says_what_it_reads(tool: SkillTool) -> None:
    assert tool.risk is Risk.READ_ONLY
    assert tool.summary(SkillArguments(name="one")) == "Read the instructions of the skill one"
    assert tool.summary(SkillArguments(name="one", path="a")) == "Read a of the skill one"
    with pytest.raises(ArgumentsError):
        read_arguments(SkillArguments, {"name": ""})
