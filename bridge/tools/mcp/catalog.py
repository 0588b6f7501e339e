"""What of a server's list of tools is offered to agents, under which names, and what is left out and why."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.config import McpTable
from bridge.tools.contract import Risk
from bridge.tools.mcp.schema import SchemaError, cleaned
from bridge.tools.mcp.text import line, plain, safe

MOST_TOOLS = 128  # of one server: models take no more
MOST_BYTES = 131_072  # of one server's names, descriptions and schemas together
NAME_CHARACTERS = 64  # what models take
OWN_NAME_CHARACTERS = 128
DESCRIPTION_BYTES = 2048
_DIGEST = 8
_NAMED = 5  # in a note


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as the server lists it."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as agents get it: ``name`` is theirs, ``own`` the server's."""

    name: str
    own: str
    description: str
    risk: Risk
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Catalog:
    """``notes`` are for the operator, one thing each; what they quote of the server is made harmless."""

    tools: tuple[Offered, ...] = ()
    notes: tuple[str, ...] = ()


def catalog(server: str, table: McpTable, listed: Sequence[Listed]) -> Catalog:
    """The tools of ``server`` that its ``table`` allows and that can be used, in the server's order."""
    made = _Making(server, table)
    for tool in listed:
        if (not table.tools or tool.name in table.tools) and tool.name not in table.disabled:
            made.take(tool)
    names = {tool.name for tool in listed}
    return Catalog(tuple(made.tools.values()), (*made.notes(), *_unknown(table, names)))


class _Making:
    def __init__(self, server: str, table: McpTable) -> None:
        self._server, self._table = server, table
        self.tools: dict[str, Offered] = {}
        self._bytes = 0
        self._refused: dict[str, list[str]] = {}
        self._over = 0

    def take(self, tool: Listed) -> None:
        if len(self.tools) == MOST_TOOLS or self._bytes >= MOST_BYTES:
            self._over += 1
            return
        try:
            offered = self._offered(tool)
        except SchemaError as error:
            self._refused.setdefault(str(error), []).append(line(tool.name, 40))
            return
        size = len(json.dumps([offered.description, offered.schema], ensure_ascii=False).encode())
        if self._bytes + size > MOST_BYTES:
            self._over += 1
            return
        self._bytes += size
        self.tools[offered.name] = offered

    def _offered(self, tool: Listed) -> Offered:
        if not tool.name or len(tool.name) > OWN_NAME_CHARACTERS:
            raise SchemaError("its name is too long, or none")
        if (name := tool_name(self._server, tool.name)) in self.tools:
            raise SchemaError("another one has its name")
        return Offered(
            name=name,
            own=tool.name,
            description=plain(tool.description, DESCRIPTION_BYTES) or f"{line(tool.name)}, of {self._server}",
            risk=self._risk(tool.name),
            schema=cleaned(tool.schema),
        )

    def _risk(self, own: str) -> Risk:
        """What the server itself says of that is not believed."""
        if own in self._table.read_only:
            return Risk.READ_ONLY
        return Risk.NETWORK if self._table.url else Risk.PROCESS

    def notes(self) -> Iterable[str]:
        for why, names in self._refused.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield f"not offered: {', '.join(names[:_NAMED])}{more}: {why}"
        if self._over:
            yield (
                f"{self._over} more tools are left out, over {MOST_TOOLS} of them or {MOST_BYTES} bytes: "
                f"choose some with tools = [...]"
            )


def tool_name(server: str, own: str) -> str:
    """The name that agents call the tool ``own`` of ``server`` by: at most 64 characters that models take.

    One that had to be changed ends in a digest, so that no two are the same.
    """
    name = f"{server}__{safe(own)}"
    if name == f"{server}__{own}" and len(name) <= NAME_CHARACTERS:
        return name
    digest = hashlib.sha256(own.encode(errors="replace")).hexdigest()[:_DIGEST]
    return f"{name[: NAME_CHARACTERS - _DIGEST - 1]}_{digest}"


def _unknown(table: McpTable, names: set[str]) -> Iterable[str]:
    """A note for each key of the settings that names a tool which there is not."""
    for key in ("tools", "disabled", "read_only"):
        if missing := [name for name in getattr(table, key) if name not in names]:
            yield f"{key}: the server has no {', '.join(missing)}: correct it"
