"""``turnbridge mcp``: the servers of tools, how they are and what they offer; or one tried from here."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bridge.cli.common import add_home, ask_daemon, home, typed, visible
from bridge.cli.status import ago, ahead, now, table, wrapped

if TYPE_CHECKING:
    from bridge.cli.common import Commands
    from bridge.config import Config
    from bridge.paths import Home
    from bridge.tools.mcp.server import Server

HEAD = ("SERVER", "KIND", "STATE", "SINCE", "TOOLS", "REASON")
RISKS = {"read_only": "never asked about"}


def register(commands: Commands) -> None:
    parser = commands.add_parser("mcp", help="the servers of tools: how they are, and what they offer")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_home(parser)
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    test = actions.add_parser("test", help="connect to one from here, and list its tools")
    test.add_argument("name", metavar="NAME", help="its name in the settings, of [mcp.NAME]")
    test.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    add_home(test, is_action=True)
    test.set_defaults(run=run_test)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when all that are switched on are connected, 1 when any is not."""
    where = home(args)
    servers: list[dict[str, Any]] = ask_daemon(where, {"action": "mcp"}).get("mcp", [])
    wanted = [one for one in servers if one["state"] != "disabled"]
    if args.json:
        print(json.dumps(servers, ensure_ascii=False))
    elif not servers:
        print("no servers of tools: add one as [mcp.NAME] to the settings, see docs/mcp.md")
    else:
        print("\n".join(overview(servers, now())))
        if any(one["state"] in ("backoff", "failed") for one in servers):
            print(f"try one from here: {typed(where, 'mcp test NAME')}")
    return 0 if all(one["state"] == "connected" for one in wanted) else 1


def overview(servers: list[dict[str, Any]], now_seconds: int) -> list[str]:
    """The table, and below it each server's tools and what is to say of them."""
    lines = table([HEAD, *(row(one, now_seconds) for one in servers)])
    for one in servers:
        lines += details(one, now_seconds)
    return lines


def row(one: dict[str, Any], now_seconds: int) -> tuple[str, ...]:
    since = ago(one["since_unix_seconds"], now_seconds)
    tools = str(len(one.get("tools", [])))
    return (one["name"], one["kind"], one["state"], since, tools, visible(one.get("reason", "")))


def details(one: dict[str, Any], now_seconds: int) -> list[str]:
    """What has no column: its tools, one line each, and its notes."""
    says = f" ({visible(one['says'])})" if one.get("says") else ""
    lines = [f"\n{one['name']}{says}"] if one.get("tools") or one.get("notes") else []
    for tool in one.get("tools", []):
        risk = RISKS.get(tool["risk"], tool["risk"])
        lines += wrapped(visible(f"{tool['name']}  [{risk}]  {tool['description']}"), "  ")
    for note in one.get("notes", []):
        lines += wrapped(f"! {visible(note)}", "  ")
    if one.get("next_try_unix_seconds") is not None:
        lines.append(f"{one['name']}: next try {ahead(one['next_try_unix_seconds'], now_seconds)}")
    return lines


def run_test(args: argparse.Namespace) -> int:
    """Exit 0 when it is reached and its tools are known, 1 when it is not. The daemon need not run."""
    import asyncio

    from bridge.config import load
    from bridge.errors import ConfigError
    from bridge.tools.mcp.servers import to_wire

    where = home(args)
    config = load(where.config)
    if args.name not in config.mcp:
        known = ", ".join(config.mcp) or "none"
        raise ConfigError(f"{where.config}: there is no [mcp.{args.name}]: there are: {known}")
    server = asyncio.run(tried(where, config, args.name))
    found = to_wire(server.status).model_dump(mode="json", exclude_none=True)
    if args.json:
        print(json.dumps(found | {"stderr": list(server.said)}, ensure_ascii=False))
    else:
        print("\n".join(overview([found], now())))
        for line in server.said:
            print(f"  on its standard error: {visible(line)}")
    return 0 if found["state"] == "connected" else 1


async def tried(where: Home, config: Config, name: str) -> Server:
    """The server after its first try, also where it is switched off; raises ConfigError."""
    import asyncio
    import os

    from bridge.clock import SystemClock
    from bridge.tools.mcp.access import access
    from bridge.tools.mcp.server import Server, State
    from bridge.tools.mcp.servers import workspace_of

    settings = config.mcp[name].model_copy(update={"enabled": True})
    workspace = workspace_of(where, config)
    known = asyncio.Event()

    def told(status: Any) -> None:
        if status.state is not State.STARTING:
            known.set()

    how = access(name, settings, where, workspace, os.environ)
    server = Server(name, settings, how, workspace, SystemClock(), told=told)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(server.run())
        await known.wait()
        running.cancel()
    return server
