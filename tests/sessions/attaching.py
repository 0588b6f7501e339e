"""A ``chat_attach`` that copies into the workspace, for sessions under test."""

import json
from collections.abc import Mapping
from pathlib import Path

from bridge.ids import new_hex
from bridge.tools.contract import Arguments, CallPlace, Risk, Tool, ToolResult


class AttachArguments(Arguments):
    path: str


class Attach:
    name, risk, arguments, description = "chat_attach", Risk.NETWORK, AttachArguments, "attach"

    def summary(self, arguments: AttachArguments) -> str:
        return f"Send {arguments.path}"

    async def run(self, arguments: AttachArguments, place: CallPlace) -> ToolResult:
        path = place.cwd / f"copy-{new_hex()}"
        if arguments.path == "folder":
            path.mkdir()  # cannot be unlinked
        else:
            path.write_text("x")
        report = {"attached": {"path": str(path), "name": "a", "size": 1}, "note": ""}
        return ToolResult(True, json.dumps(report))


def attaching_tools(no_tools: bool, channel: str) -> Mapping[str, Tool]:
    return {"chat_attach": Attach()}


def copies(folder: Path) -> list[Path]:
    return list(folder.glob("copy-*"))
