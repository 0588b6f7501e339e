"""A server's tool in a session."""

from pathlib import Path

from bridge.channel.testing.clock import FakeClock
from bridge.config import McpTable
from bridge.errors import ConfigError
from bridge.tools.contract import Risk, Tool, read_arguments
from bridge.tools.mcp.catalog import Offered
from bridge.tools.mcp.schema import Arguments
from bridge.tools.mcp.server import Server
from bridge.tools.mcp.tool import McpTool
from tests.tools.place import Shown

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


def made(tmp_path: Path) -> McpTool:
    table = McpTable(url="http://127.0.0.1:1/mcp")
    server = Server("web", table, ConfigError("not set"), tmp_path, FakeClock())
    return McpTool(server, Offered("web__a_b", "a.b\u202e", "What it does.", Risk.NETWORK, SCHEMA))


def given(tool: McpTool, **arguments: object) -> Arguments:
    found = read_arguments(tool.arguments, arguments)
    assert isinstance(found, Arguments)
    return found


async def test_it_is_a_tool_like_any_other_also_where_its_server_is_gone(tmp_path: Path) -> None:
    tool: Tool = made(tmp_path)
    assert (tool.name, tool.description, tool.risk) == ("web__a_b", "What it does.", Risk.NETWORK)
    assert tool.arguments.model_json_schema() == SCHEMA
    result = await tool.run(given(made(tmp_path), text="x"), Shown(tmp_path).place)
    assert result.output == "The server web of this tool is not there now: it is being started."


def test_a_person_reads_what_it_would_do_in_one_bounded_line(tmp_path: Path) -> None:
    tool = made(tmp_path)
    assert tool.summary(given(tool)) == "Call a.b of web"
    assert tool.summary(given(tool, text="é")) == 'Call a.b of web with {"text": "é"}'
    assert len(tool.summary(given(tool, text="x\n" * 999)).encode()) < 200
