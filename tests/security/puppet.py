"""A coding agent that does what a message says, once it may: lines "call TOOL NAME=VALUE". A program."""

import re
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.agents.acp.scripted import Agent, use

_CALL = re.compile(r"^call (\w+) ?(.*)$", re.MULTILINE)
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_ALLOW = ("once", "slowly")
Given = dict[str, str]


class Puppet(Agent):
    """Its own tools are asked about each; those of the bridge are called through the server of tools."""

    def session_new(self, params: dict[str, Any]) -> Any:
        self.cwd = Path(params["cwd"])
        self.server = next(one for one in params["mcpServers"] if one["name"] == "turnbridge")
        return super().session_new(params)

    def session_prompt(self, params: dict[str, Any]) -> Any:
        session = params["sessionId"]
        text = "\n".join(one["text"] for one in params["prompt"] if one["type"] == "text")
        results = [
            self._called(session, tool, dict(word.split("=", 1) for word in arguments.split()))
            for tool, arguments in _CALL.findall(text)
        ]
        self.say(session, "\n".join(results))
        return {"stopReason": "end_turn"}

    def _called(self, session: str, tool: str, given: Given) -> str:
        if tool == "chat_attach":
            return str(use(self.server, tool, dict(given)))
        if self.permission(session, f"of-{tool}", title=tool, rawInput=given) not in _ALLOW:
            return "The call was denied."
        return _TOOLS[tool](self.cwd, given) if tool in _TOOLS else "I have no such tool."


def _shell(cwd: Path, given: Given) -> str:
    return subprocess.run(["/bin/sh", "-c", given["command"]], cwd=cwd, capture_output=True, text=True).stdout


def _read(cwd: Path, given: Given) -> str:
    return (cwd / given["path"]).read_text()


def _write(cwd: Path, given: Given) -> str:
    return f"{(cwd / given['path']).write_text(given['text'])} bytes"


def _edit(cwd: Path, given: Given) -> str:
    path = cwd / given["path"]
    return f"{path.write_text(path.read_text().replace(given['old'], given['new']))} bytes"


def _fetch(_: Path, given: Given) -> str:
    with _DIRECT.open(given["url"], timeout=10) as answer:
        return str(answer.read().decode())


_TOOLS: dict[str, Callable[[Path, Given], str]] = {
    "shell": _shell,
    "read_file": _read,
    "write_file": _write,
    "edit_file": _edit,
    "web_fetch": _fetch,
}

if __name__ == "__main__":
    Puppet().run()
