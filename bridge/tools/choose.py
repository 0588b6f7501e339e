"""Which tools a session gets."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from bridge import registry
from bridge.clock import Clock
from bridge.config import ToolsTable
from bridge.errors import ConfigError
from bridge.logs import get_logger
from bridge.paths import Home
from bridge.tools.chat_attach import ChatAttach
from bridge.tools.chat_history import ChatHistory
from bridge.tools.contract import Tool, ToolPlace
from bridge.tools.edit_file import EditFile
from bridge.tools.files import ListFiles, ReadFile, WriteFile
from bridge.tools.installed import Installed, installed
from bridge.tools.search_files import SearchFiles
from bridge.tools.shell import Shell
from bridge.tools.skills_tool import SkillTool
from bridge.tools.wait import Wait
from bridge.tools.web_fetch import WebFetch

log = get_logger(__name__)

Tools = Mapping[str, Tool]
ANY_CHANNEL = "a chat"
AS_IT_COMES = ToolsTable()
SERVERS = "__"  # what the name of a server's tool has in it, and no other's


def tools_for(
    home: Home,
    clock: Clock,
    no_tools: bool,
    channel: str,
    *,
    table: ToolsTable = AS_IT_COMES,
    others: Tools | None = None,
    more: Callable[[], Tools] = dict,
) -> Tools:
    """None with ``no_tools``; ``chat_attach`` only where a ``channel`` can deliver files.

    ``others`` are those of other packages, ``more`` gives those that servers have now: none of them stands in
    for one of ours, and none is there that the ``table`` disables.
    """
    if no_tools:
        return {}
    found = {tool.name: tool for tool in _ours(home, clock, channel, table)}
    for tools in (others or {}, more()):
        found = {**tools, **found}
    return {name: tool for name, tool in found.items() if name not in table.disabled}


def toolbox(
    home: Home, clock: Clock, table: ToolsTable, more: Callable[[], Tools] = dict
) -> Callable[[bool, str], Tools]:
    """``tools_for`` as the settings have it, with what is installed; what cannot be used of that is logged.

    Raises:
        ConfigError: ``disabled`` names a tool that there is not, so that the one that is meant would stay.
    """
    others = others_of(home, clock, table)
    for line in others.lacking:
        log.error("tools.not_loaded", error=line)
    return partial(tools_for, home, clock, table=table, others=others.tools, more=more)


def others_of(home: Home, clock: Clock, table: ToolsTable) -> Installed:
    """The tools of other packages; raises as ``toolbox``."""
    ours = {tool.name for tool in _ours(home, clock, ANY_CHANNEL, table)}
    found = installed(ToolPlace(home, clock), ours, table.disabled)
    _check(home, table.disabled, ours)
    return found


def _ours(home: Home, clock: Clock, channel: str, table: ToolsTable) -> list[Tool]:
    tools: list[Tool] = [
        ListFiles(home),
        ReadFile(home),
        SearchFiles(home),
        WriteFile(home),
        EditFile(home),
        Shell(clock, table.shell_seconds),
        WebFetch(table.private_hosts),
        ChatHistory(),
        SkillTool(home),
        Wait(clock),
    ]
    return [*tools, ChatAttach(home)] if channel else tools


def _check(home: Home, disabled: Iterable[str], ours: Iterable[str]) -> None:
    known = {*ours, *registry.tools().names()}
    if unknown := [name for name in disabled if name not in known and SERVERS not in name]:
        there = ", ".join(sorted(known))
        told = f"{home.config}: tools.disabled names {unknown[0]!r}"
        raise ConfigError(f"{told}, which is no tool here: there are {there}")
