"""Tools for the files of the workspace: list, read, write. Nothing outside of it is reached."""

import os
from collections.abc import Iterator
from io import BufferedReader
from typing import Annotated

from pydantic import Field

from bridge.paths import Home
from bridge.tools.blocking import Stop, in_workspace
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult
from bridge.tools.places import shown
from bridge.tools.texts import OUTPUT_BYTES, cut
from bridge.tools.workspace import RefusedError, Workspace

WRITE_BYTES = 262_144
LIST_ENTRIES = 500
MOST_LINES = 1_000_000_000
NO_TEXT = "That is no text file."


class ListArguments(Arguments):
    path: str = Field(default=".", description="A folder, relative to the workspace.")


class ReadArguments(Arguments):
    path: Annotated[str, Field(min_length=1, description="A text file, relative to the workspace.")]
    from_line: Annotated[int, Field(ge=1, le=MOST_LINES, description="The first line to read, from 1.")] = 1
    lines: Annotated[int, Field(ge=1, le=MOST_LINES, description="How many lines at most.")] = MOST_LINES


class WriteArguments(Arguments):
    path: Annotated[str, Field(min_length=1, description="The file, relative to the workspace.")]
    text: str = Field(description="All that the file holds then.")


class ListFiles:
    name, risk, arguments = "list_files", Risk.READ_ONLY, ListArguments
    description = "List a folder of the workspace: each entry's name, and the size of files in bytes."

    def __init__(self, home: Home) -> None:
        self._home = home

    def summary(self, arguments: ListArguments) -> str:
        return f"List {arguments.path}"

    async def run(self, arguments: ListArguments, place: CallPlace) -> ToolResult:
        def work(workspace: Workspace, stop: Stop) -> ToolResult:
            with workspace.folder(arguments.path or ".") as folder:
                return _listed(folder, stop)

        return await in_workspace(work, place.cwd, self._home)


class ReadFile:
    name, risk, arguments = "read_file", Risk.READ_ONLY, ReadArguments
    description = (
        f"Read a text file of the workspace, whole lines up to {OUTPUT_BYTES} bytes at once: "
        "of a longer one any part, by its lines."
    )

    def __init__(self, home: Home) -> None:
        self._home = home

    def summary(self, arguments: ReadArguments) -> str:
        return f"Read {arguments.path}"

    async def run(self, arguments: ReadArguments, place: CallPlace) -> ToolResult:
        def work(workspace: Workspace, stop: Stop) -> ToolResult:
            with workspace.file(arguments.path) as opened, os.fdopen(os.dup(opened), "rb") as file:
                return _read(file, arguments.from_line, arguments.lines, stop)

        return await in_workspace(work, place.cwd, self._home)


class WriteFile:
    name, risk, arguments = "write_file", Risk.FILESYSTEM, WriteArguments
    description = (
        f"Write a text file of the workspace, replacing it whole; at most {WRITE_BYTES} bytes. "
        "To change a part of a file, edit it instead."
    )

    def __init__(self, home: Home) -> None:
        self._home = home

    def summary(self, arguments: WriteArguments) -> str:
        return f"Write {len(arguments.text.encode(errors='replace'))} bytes to {arguments.path}"

    async def run(self, arguments: WriteArguments, place: CallPlace) -> ToolResult:
        data = arguments.text.encode(errors="replace")

        def work(workspace: Workspace, stop: Stop) -> ToolResult:
            if len(data) > WRITE_BYTES:
                raise RefusedError(f"The text is over {WRITE_BYTES} bytes: write it in parts.")
            workspace.write(arguments.path, data)
            return ToolResult(True, f"Wrote {len(data)} bytes.")

        return await in_workspace(work, place.cwd, self._home)


def _listed(folder: int, stop: Stop) -> ToolResult:
    lines = []
    with os.scandir(folder) as entries:
        for entry in entries:
            stop.check()
            lines.append(_entry(entry))
            if len(lines) > 20 * LIST_ENTRIES:  # a folder without end
                break
    lines.sort()
    text = "\n".join(lines[:LIST_ENTRIES]) or "The folder is empty."
    data = cut(text.encode())
    truncated = len(lines) > LIST_ENTRIES or len(data) < len(text.encode())
    return ToolResult(True, data.decode(errors="replace"), truncated)


def _entry(entry: os.DirEntry[str]) -> str:
    name = shown(entry.name)
    if entry.is_symlink():
        return f"{name} (link)"
    if entry.is_dir():
        return f"{name}/"
    return f"{name} ({entry.stat(follow_symlinks=False).st_size} bytes)"


def _read(file: BufferedReader, first: int, count: int, stop: Stop) -> ToolResult:
    if b"\0" in file.peek(OUTPUT_BYTES):
        raise RefusedError(NO_TEXT)
    lines = _lines(file, stop)
    skipped = sum(1 for _ in zip(range(first - 1), lines, strict=False))
    taken: list[bytes] = []
    size, full = 0, False
    for line in lines:
        full = bool(taken) and size + len(line) > OUTPUT_BYTES
        if full or len(taken) == count:
            return _part(taken, first, f"go on with from_line {first + len(taken)}", full)
        taken.append(line)
        size += len(line)
    if first > 1 and not taken:
        raise RefusedError(f"The file has only {skipped} lines.")
    return _part(taken, first, "", False)


def _part(taken: list[bytes], first: int, more: str, full: bool) -> ToolResult:
    """The lines, and what is to be known of those that follow."""
    whole = b"".join(taken)
    if b"\0" in whole:
        raise RefusedError(NO_TEXT)
    data = cut(whole)
    if len(data) < len(whole):
        full, more = True, f"line {first} is cut; {more}".removesuffix("; ")
    text = data.decode(errors="replace")
    if more:
        end = "" if text.endswith("\n") else "\n"
        text += f"{end}[lines {first} to {first + len(taken) - 1}; {more}]"
    return ToolResult(True, text, full)


def _lines(file: BufferedReader, stop: Stop) -> Iterator[bytes]:
    """Line by line; of one that is too long its beginning."""
    while line := file.readline(OUTPUT_BYTES + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            stop.check()
            rest = file.readline(OUTPUT_BYTES)
        stop.check()
        yield line
