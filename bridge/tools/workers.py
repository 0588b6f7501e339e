"""Work on what others wrote, such as their patterns and pages, in a process of its own.

It can be ended at any moment, and takes no more memory than it may; a thread could not be stopped. A worker
is a module of this folder with ``work(request) -> Iterator`` that needs the standard library alone.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridge.tools.processes import Process, clean_environment, process_group

MEMORY_BYTES = 1_073_741_824
LINE_BYTES = 40 * 1_048_576  # one answer as JSON: a page of 5 MiB, each of whose bytes may take six there
_ROOT = Path(__file__).parents[2]
_START = """
import importlib, json, resource, sys
sys.path.insert(0, sys.argv[1])
try:
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]), int(sys.argv[3])))
except (OSError, ValueError):
    pass
for told in importlib.import_module(sys.argv[2]).work(json.load(sys.stdin)):
    print(json.dumps(told), flush=True)
"""

Take = Callable[[Any], Awaitable[None]]


async def work(module: str, request: Any, seconds: float, take: Take) -> str:
    """Let ``module`` work on ``request``; ``take`` gets each answer. Returns why it did not end by itself.

    Raises:
        StartError: no process can be started.
    """
    argv = [sys.executable, "-I", "-S", "-c", _START, str(_ROOT), f"bridge.tools.{module}", str(MEMORY_BYTES)]
    running = process_group(argv, Path("/"), clean_environment(), stderr="null", line_bytes=LINE_BYTES)
    async with running as process:
        try:
            async with asyncio.timeout(seconds):
                with suppress(ConnectionError):  # it has ended already
                    process.stdin.write(json.dumps(request).encode())
                    await process.stdin.drain()
                process.stdin.close()
                await _answers(process, take)
                return "" if await process.wait() == 0 else "it broke off"
        except ValueError:  # too long a line, or one that it did not end
            return "it broke off"
        except TimeoutError:
            return f"it took over {seconds:g} seconds"


async def _answers(process: Process, take: Take) -> None:
    while line := await process.stdout.readline():
        await take(json.loads(line))
