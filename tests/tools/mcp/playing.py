"""A real MCP server, written with the SDK's own server side, and every fault that one may have.

``python playing.py WAY WORD …``: WAY is ``stdio``, or ``http`` on a port of the loopback that it prints;
WORDs are the faults. It imports nothing of ours, and is run as a program of its own.
"""

import asyncio
import base64
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WORDS = set(sys.argv[2:])
MANY, PAGE = 5000, 1000
Context = ServerRequestContext[Any]
Run = Callable[[Context, dict[str, Any]], Awaitable[types.CallToolResult | types.InputRequiredResult]]

bus = InMemorySubscriptionBus()
extra: list[types.Tool] = []


def tool(name: str, schema: dict[str, Any] | None = None, description: str = "") -> types.Tool:
    return types.Tool(name=name, description=description, input_schema=schema or {"type": "object"})


def text(said: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=said)], is_error=is_error)


def note(said: str) -> None:
    """Where a test can see it."""
    with Path(os.environ["NOTES"]).open("a") as file:
        file.write(f"{said}\n")


async def echo(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    return text(
        f"{given['text']} {os.environ.get('PASSED', '-')} {os.environ.get('KEPT', '-')} {os.getcwd()}"
    )


async def slow(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    note("begun")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return text("never")


async def steps(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    await context.session.report_progress(1, 2, "half")
    await context.session.report_progress(2, 2)
    return text("done")


async def die(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    os._exit(7)


async def hang(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    import time

    time.sleep(3600)  # the whole server
    return text("never")


async def huge(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    return text("ü" * 1_000_000)


async def enormous(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    return text("x" * 9_000_000)


async def picture(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    image = types.ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png")
    return types.CallToolResult(content=[types.TextContent(text="look"), image])


async def fail(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    return text("it went wrong", is_error=True)


async def refuse(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    raise MCPError(code=-32050, message="not\x1b[31m today")


async def liar(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content={"a": "b" * 30})


async def roots(context: Context, given: dict[str, Any]) -> types.CallToolResult | types.InputRequiredResult:
    if context.session.protocol_version < "2026":
        found = await context.session.list_roots()
        return text(str(found.roots[0].uri))
    return types.InputRequiredResult(input_requests={"r": types.ListRootsRequest()}, request_state="s")


async def person(context: Context, given: dict[str, Any]) -> types.CallToolResult | types.InputRequiredResult:
    asked = types.ElicitRequestFormParams(
        message="who?", requested_schema={"type": "object", "properties": {}}
    )
    if context.session.protocol_version < "2026":
        await context.session.elicit_form("who?", {"type": "object", "properties": {}})
    return types.InputRequiredResult(input_requests={"p": types.ElicitRequest(params=asked)})


async def change(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    extra.append(tool("added"))
    await context.session.send_tool_list_changed()
    await bus.publish(ToolsListChanged())
    return text("changed")


async def flood(context: Context, given: dict[str, Any]) -> types.CallToolResult:
    for number in range(1000):
        await context.session.report_progress(number)
    return text("done")


RUNS: dict[str, Run] = {
    run.__name__: run
    for run in (
        echo, slow, steps, die, hang, huge, enormous, picture,
        fail, refuse, liar, roots, person, change, flood,
    )
}  # fmt: skip


def offered() -> list[types.Tool]:
    echoes = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    found = [tool("echo", echoes, "Say it back.\x1b[2J\u202e")] + [
        tool(name) for name in RUNS if name != "echo"
    ]
    for each in found:
        if each.name == "liar":  # what it gives does not fit this, and nobody is to try the pattern
            each.output_schema = {
                "type": "object",
                "properties": {"a": {"type": "string", "pattern": "^(b+)+$x"}},
                "required": ["c"],
            }
    if "names" in WORDS:
        found += [
            tool("a.b"),
            tool("a_b"),
            tool("a b"),
            tool("a_b"),
            tool("n" * 100),
            tool("x" * 500),
            tool(""),
        ]
    if "cycles" in WORDS:
        inner = {"type": "object", "properties": {"in": {"$ref": "#/$defs/n"}}, "additionalProperties": False}
        found.append(tool("cycle", {**inner, "$defs": {"n": {"allOf": [{"$ref": "#/$defs/m"}]}, "m": inner}}))
        found.append(tool("ring", {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}))
        found.append(tool("lost", {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}))
        found.append(tool("far", {"type": "object", "properties": {"a": {"$ref": "http://x.example/a"}}}))
    return found + extra


async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    if "unlisted" in WORDS:
        raise MCPError(code=-32603, message="no list")
    if "many" not in WORDS:
        return types.ListToolsResult(tools=offered())
    start = int(params.cursor) if params and params.cursor else 0
    page = [tool(f"tool{number}") for number in range(start, start + PAGE)]
    return types.ListToolsResult(tools=page, next_cursor=str(start + PAGE) if start + PAGE < MANY else None)


async def call_tool(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if params.input_responses:
        return text(f"{params.request_state} {params.input_responses['r']}")
    return await RUNS[params.name](context, params.arguments or {})


async def only_old(ctx: Any, call_next: Any) -> Any:
    if ctx.method == "server/discover":
        raise MCPError(code=-32601, message="Method not found")
    return await call_next(ctx)


def made() -> Server[Any]:
    server: Server[Any] = Server(
        "playing", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(bus),
    )  # fmt: skip
    if "old" in WORDS:
        server.middleware.append(only_old)
    return server


async def over_stdio() -> None:
    server = made()
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        if "old" in WORDS:  # as those from before 2026, which know the handshake alone
            await serve_loop(server, read, write, lifespan_state={}, init_options=options)
        else:
            await server.run(read, write, options)


def over_http() -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)

    app: Any = made().streamable_http_app()
    if "closed" in WORDS:
        inner = app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            asked = dict(scope.get("headers") or ())
            if scope["type"] != "http" or asked.get(b"authorization") == b"Bearer open-sesame":
                await inner(scope, receive, send)
            else:
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b"who?"})

    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])


def main() -> None:
    if "stderr" in WORDS:
        print("\x1b[31mI begin\n" + "e" * 100_000, file=sys.stderr, flush=True)
    if "exit" in WORDS:
        sys.exit(3)
    if "mute" in WORDS:
        sys.stdin.read()
    if "garbage" in WORDS:
        print("hello\n[1,2]\n{}\n" + "x" * 9_000_000, flush=True)
    while "endless" in WORDS:
        print("y", flush=True)
    if sys.argv[1] == "stdio":
        asyncio.run(over_stdio())
    else:
        over_http()


if __name__ == "__main__":
    main()
