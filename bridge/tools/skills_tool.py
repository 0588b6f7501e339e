"""The tool ``skill``: the instructions of a package, and its other files."""

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bridge.paths import Home
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult
from bridge.tools.skills import SKILL_BYTES, Skill, SkillError, body, files, known, read

SKILL = "skill"


class SkillArguments(Arguments):
    name: Annotated[str, Field(min_length=1, description="The skill's name.")]
    path: Annotated[str, Field(description="A file of its package; none: its instructions.")] = ""


class SkillTool:
    """Only in sessions with tools: so no stranger and no group is ever told of a skill."""

    name, risk, arguments = SKILL, Risk.READ_ONLY, SkillArguments
    description = "Read the instructions of a skill, or one of the other files of its package by its path."

    def __init__(self, home: Home) -> None:
        self._home = home

    async def known(self, workspace: Path) -> tuple[Skill, ...]:
        """The skills that count in ``workspace``, for the agent to be told of."""
        return await asyncio.to_thread(known, self._home, workspace)

    def summary(self, arguments: SkillArguments) -> str:
        return f"Read {arguments.path or 'the instructions'} of the skill {arguments.name}"

    async def run(self, arguments: SkillArguments, place: CallPlace) -> ToolResult:
        skills = {skill.name: skill for skill in await self.known(place.cwd)}
        skill = skills.get(arguments.name)
        if skill is None:
            return ToolResult(False, f"There is no such skill. There are: {', '.join(skills) or 'none'}.")
        try:
            return ToolResult(True, await asyncio.to_thread(_text, skill, arguments.path))
        except SkillError as error:
            return ToolResult(False, f"It did not work: {error}.")


def _text(skill: Skill, path: str) -> str:
    if path:
        return read(skill.root, path, SKILL_BYTES)
    others = files(skill.root)
    listed = "\n".join(f"- {each}" for each in others)
    return body(skill) + (f"\n\nOther files of this skill:\n{listed}" if others else "")
