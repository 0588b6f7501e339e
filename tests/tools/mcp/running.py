"""Servers for tests: the SDK's own, as programs; and the places to see what they did."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bridge.config import McpTable
from bridge.paths import Home
from bridge.tools.mcp.access import Access, access

PLAYING = Path(__file__).parent / "playing.py"
SIMPLE = Path(__file__).parent / "simple.py"


def program(*words: str, script: Path = PLAYING, **settings: Any) -> McpTable:
    """The settings of a server over its standard input and output."""
    command = (sys.executable, str(script), "stdio", *words)
    return McpTable.model_validate({"command": command, "env": ("NOTES",), **settings})


@contextmanager
def web_server(notes: Path, *words: str) -> Iterator[str]:
    """A server on loopback, by its address."""
    command = [sys.executable, str(PLAYING), "http", *words]
    environ = {**os.environ, "NOTES": str(notes), "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


def way_to(table: McpTable, place: Path, name: str = "p") -> Access:
    """``place`` is home, workspace, and where the server makes its notes."""
    return access(name, table, Home(place), place, {**os.environ, "NOTES": str(place / "notes")})


async def soon(condition: Callable[[], bool]) -> None:
    """Wait for what another program does; the test's own deadline bounds it."""
    while not condition():
        await asyncio.sleep(0.01)


def offering(place: Path, *tools: str, **settings: Any) -> McpTable:
    """A small server that starts at once, with these tools until they are written anew."""
    (place / "notes.tools").write_text(" ".join(tools))
    command = (sys.executable, "-I", "-S", str(SIMPLE))
    return McpTable.model_validate({"command": command, "env": ("NOTES",), **settings})


def notes(place: Path) -> list[str]:
    path = place / "notes"
    return path.read_text().split() if path.exists() else []
