"""Which tools a session gets."""

from collections.abc import Callable, Mapping

from bridge.clock import Clock
from bridge.paths import Home
from bridge.tools.chat_attach import ChatAttach
from bridge.tools.contract import Tool
from bridge.tools.files import ListFiles, ReadFile, WriteFile
from bridge.tools.skills_tool import SkillTool
from bridge.tools.wait import Wait


def tools_for(home: Home, clock: Clock, no_tools: bool, channel: str) -> Mapping[str, Tool]:
    """None with ``no_tools``; ``chat_attach`` only where a ``channel`` can deliver files."""
    if no_tools:
        return {}
    tools: list[Tool] = [ListFiles(home), ReadFile(home), WriteFile(home), Wait(clock), SkillTool(home)]
    if channel:
        tools.append(ChatAttach(home))
    return {tool.name: tool for tool in tools}


def with_more(
    more: Callable[[], Mapping[str, Tool]],
    own: Callable[[bool, str], Mapping[str, Tool]],
    no_tools: bool,
    channel: str,
) -> Mapping[str, Tool]:
    """Our ``own``, and ``more``, those that are known now of servers: none stands in for one of ours."""
    found = own(no_tools, channel)
    return found if no_tools else {**more(), **found}
