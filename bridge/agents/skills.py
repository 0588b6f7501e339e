"""What an agent is told of the skills there are: names, and what for. The tool ``skill`` gives the rest."""

from collections.abc import Iterable

from bridge.agents.contract import Turn
from bridge.tools.skills import Skill
from bridge.tools.skills_tool import SKILL, SkillTool

MOST_BYTES = 8192
HEAD = "Skills, instructions for certain tasks. Before a task that one is for, read it with the tool `skill`:"


def instructions(skills: Iterable[Skill]) -> str:
    """A part of a system prompt that lists ``skills``; "" for none. Past 8 KiB they are only named."""
    lines = [f"- {skill.name}: {skill.description}" for skill in skills]
    if not lines:
        return ""
    text, left = HEAD, []
    for line in lines:
        if len(f"{text}\n{line}".encode()) <= MOST_BYTES:
            text = f"{text}\n{line}"
        else:
            left.append(line.partition(":")[0].removeprefix("- "))
    return f"{text}\n- and: {', '.join(left)}" if left else text


async def for_turn(turn: Turn) -> str:
    """The part for ``turn``: "" where there is no tool that reads skills, as in every chat but an owner's."""
    tool = turn.tools.get(SKILL)
    return instructions(await tool.known(turn.cwd)) if isinstance(tool, SkillTool) else ""
