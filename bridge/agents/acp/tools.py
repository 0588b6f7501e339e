"""Some of our own tools for the program: a server of tools (MCP) on a private socket, for each session.

The program starts ``relay.py`` as any server of tools; its secret tells which session it is for. The
calls are made at the gate of the turn that runs, under the same checks as any.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from bridge.agents.acp import relay
from bridge.agents.contract import ToolCall
from bridge.logs import register_secret
from bridge.paths import Home
from bridge.tools.contract import Tool, ToolResult
from bridge.version import VERSION

NAME = "turnbridge"
OFFERED = ("chat_attach", "chat_history")
"""What the agent's own tools cannot do: files for this chat, and what was said in it."""

LINE_BYTES = 1_048_576
MOST_CONNECTIONS = 64
SECRET_SECONDS = 10.0
_VERSION = "2025-06-18"


class Uses(Protocol):
    """A session, as its tools see it."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Those of its newest turn."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Make a call in the turn that runs; without one it fails."""
        ...


class ToolServer:
    """Its sessions by their secrets. ``serving`` listens."""

    def __init__(self, name: str, home: Home) -> None:
        self._name, self._home = name, home
        self._path = Path()
        self._uses: dict[str, Uses] = {}
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serving(self, tasks: asyncio.TaskGroup) -> AsyncIterator[None]:
        """In the home's state, a folder that nobody else can enter.

        Raises:
            ConfigError: the home's path is too long for a socket.
        """
        digest = hashlib.sha256(self._name.encode()).hexdigest()[:8]
        self._home.private_dir(self._home.state)
        self._path = self._home.socket_path(f"t{digest}.sock")
        self._path.unlink(missing_ok=True)  # of a daemon that was killed

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = tasks.create_task(self._serve(reader, writer), name=f"{self._name}/tools")
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

        server = await asyncio.start_unix_server(accept, self._path, limit=LINE_BYTES)
        try:
            yield
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            self._path.unlink(missing_ok=True)

    def entry(self, uses: Uses) -> tuple[str, dict[str, Any]]:
        """A secret for a session, and the server as the program is told of it."""
        secret = secrets.token_urlsafe(32)
        register_secret(secret)
        self._uses[secret] = uses
        return secret, {
            "name": NAME,
            "command": sys.executable,
            "args": ["-I", "-S", str(relay.__file__), str(self._path)],
            "env": [{"name": relay.SECRET, "value": secret}],
        }

    def forget(self, secret: str) -> None:
        self._uses.pop(secret, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, ValueError):  # it hangs up, or writes too long a line
                secret = await self._secret(reader)
                if secret and len(self._serving) <= MOST_CONNECTIONS:
                    await self._answer_all(secret, reader, writer)
        finally:
            writer.close()

    async def _secret(self, reader: asyncio.StreamReader) -> str:
        async with asyncio.timeout(SECRET_SECONDS):
            told = (await reader.readline()).strip()
        return next((one for one in self._uses if hmac.compare_digest(one.encode(), told)), "")

    async def _answer_all(
        self, secret: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One after the other; a secret that is forgotten meanwhile is worth nothing any more."""
        while (line := await reader.readline()) and (uses := self._uses.get(secret)) is not None:
            answer = await _answer(line, uses)
            if writer.is_closing():  # which uvloop's write meets with a RuntimeError
                return
            if answer is not None:
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()


async def _answer(line: bytes, uses: Uses) -> dict[str, Any] | None:
    """What a message is answered with; None for one that wants no answer."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, -32700, "no JSON")
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return _error(None, -32600, "no request")
    if (request_id := message.get("id")) is None:
        return None
    if not isinstance(request_id, int | str):
        return _error(None, -32600, "no request")
    params = message.get("params")
    found = await _result(message["method"], params if isinstance(params, dict) else {}, uses)
    if found is None:
        return _error(request_id, -32601, "no such method")
    return {"jsonrpc": "2.0", "id": request_id, "result": found}


async def _result(method: str, params: dict[str, Any], uses: Uses) -> dict[str, Any] | None:
    match method:
        case "initialize":
            version = params.get("protocolVersion")
            return {
                "protocolVersion": version if isinstance(version, str) else _VERSION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": NAME, "version": VERSION},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [_told(tool) for tool in offered(uses.tools)]}
        case "tools/call":
            result = await _call(params, uses)
            text = f"{result.output}\n…" if result.truncated else result.output
            return {"content": [{"type": "text", "text": text}], "isError": not result.success}
    return None


async def _call(params: dict[str, Any], uses: Uses) -> ToolResult:
    name, arguments = params.get("name"), params.get("arguments")
    if name not in {tool.name for tool in offered(uses.tools)}:
        return ToolResult(False, "There is no such tool here.")
    return await uses.call(ToolCall(name=str(name), arguments={} if arguments is None else arguments))


def offered(tools: Mapping[str, Tool]) -> list[Tool]:
    return [tools[name] for name in OFFERED if name in tools]


def _told(tool: Tool) -> dict[str, Any]:
    schema = tool.arguments.model_json_schema()
    return {"name": tool.name, "description": tool.description, "inputSchema": schema}


def _error(request_id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
