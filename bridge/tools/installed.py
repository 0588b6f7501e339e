"""The tools that other packages bring, found by their entry points: made once, when the daemon starts."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bridge import registry
from bridge.errors import ConfigError
from bridge.tools.contract import Tool, ToolPlace, ToolSpec

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Installed:
    """``tools`` by name, whose each of them is, and a line for each that cannot be used."""

    tools: Mapping[str, Tool]
    origins: Mapping[str, str]
    lacking: tuple[str, ...] = ()


def installed(place: ToolPlace, ours: Collection[str], disabled: Collection[str]) -> Installed:
    """What can be used of it: nothing that is called like one of ``ours``. Nothing ``disabled`` is loaded."""
    found = registry.tools()
    tools: dict[str, Tool] = {}
    lacking: list[str] = []
    for name in found.names():
        if name in disabled:
            continue
        try:
            tools[name] = _made(found, name, place, ours)
        except ConfigError as error:
            lacking.append(str(error))
    return Installed(tools, {name: found.origin(name) for name in tools}, tuple(lacking))


def _made(found: registry.Registry[ToolSpec], name: str, place: ToolPlace, ours: Collection[str]) -> Tool:
    """Raises ConfigError: it cannot be used."""
    told = f"the tool {name!r} of {found.origin(name)}"
    if name in ours:
        raise ConfigError(f"{told} is called like one of ours: uninstall it, or ask its author to rename it")
    if not _NAME.fullmatch(name) or "__" in name:
        raise ConfigError(
            f"{told} has a name that no tool may have: letters, digits, - and single _ are good"
        )
    tool = found.load(name).create(place)
    if tool.name != name:
        raise ConfigError(f"{told} calls itself {tool.name!r}: ask its author")
    return tool
