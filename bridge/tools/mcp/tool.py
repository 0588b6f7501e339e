"""A server's tool as an agent's session has it."""

import json

from pydantic import BaseModel

from bridge.tools.contract import CallPlace, Risk, ToolResult
from bridge.tools.mcp.catalog import Offered
from bridge.tools.mcp.schema import Arguments, arguments_model
from bridge.tools.mcp.server import Server
from bridge.tools.mcp.text import line

SHOWN_BYTES = 120  # of the arguments, in the line that a person reads


class McpTool:
    """``offered`` by ``server``, which may be gone when it is called."""

    def __init__(self, server: Server, offered: Offered) -> None:
        self._server, self._offered = server, offered
        self._arguments = arguments_model(offered.schema)

    @property
    def name(self) -> str:
        return self._offered.name

    @property
    def description(self) -> str:
        return self._offered.description

    @property
    def risk(self) -> Risk:
        return self._offered.risk

    @property
    def arguments(self) -> type[BaseModel]:
        return self._arguments

    def summary(self, arguments: Arguments) -> str:
        given = json.dumps(arguments.root, ensure_ascii=False) if arguments.root else ""
        called = f"Call {line(self._offered.own, 64)} of {self._server.name}"
        return f"{called} with {line(given, SHOWN_BYTES)}" if given else called

    async def run(self, arguments: Arguments, place: CallPlace) -> ToolResult:
        return await self._server.call(self._offered, arguments.root, place)
