"""Tools for the files of the workspace: list, read, write. Nothing outside of it is reached."""

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bridge.paths import Home
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult
from bridge.tools.places import is_own, shown

OUTPUT_BYTES = 65_536
WRITE_BYTES = 262_144
LIST_ENTRIES = 500


class RefusedError(Exception):
    """What the model is told instead of a result."""


class ListArguments(Arguments):
    path: str = Field(default=".", description="A folder, relative to the workspace.")


class ReadArguments(Arguments):
    path: Annotated[str, Field(min_length=1, description="A text file, relative to the workspace.")]


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
        return await _in_thread(lambda: _list(inside(arguments.path, place.cwd, self._home)))


class ReadFile:
    name, risk, arguments = "read_file", Risk.READ_ONLY, ReadArguments
    description = f"Read a text file of the workspace, its first {OUTPUT_BYTES} bytes."

    def __init__(self, home: Home) -> None:
        self._home = home

    def summary(self, arguments: ReadArguments) -> str:
        return f"Read {arguments.path}"

    async def run(self, arguments: ReadArguments, place: CallPlace) -> ToolResult:
        return await _in_thread(lambda: _read(inside(arguments.path, place.cwd, self._home)))


class WriteFile:
    name, risk, arguments = "write_file", Risk.FILESYSTEM, WriteArguments
    description = f"Write a text file of the workspace, replacing it; at most {WRITE_BYTES} bytes."

    def __init__(self, home: Home) -> None:
        self._home = home

    def summary(self, arguments: WriteArguments) -> str:
        return f"Write {len(arguments.text.encode())} bytes to {arguments.path}"

    async def run(self, arguments: WriteArguments, place: CallPlace) -> ToolResult:
        data = arguments.text.encode(errors="replace")
        return await _in_thread(lambda: _write(inside(arguments.path, place.cwd, self._home), data))


def inside(path: str, cwd: Path, home: Home) -> Path:
    """``path`` resolved, when that lies in the workspace ``cwd`` and not in the daemon's own files; blocking.

    Raises:
        RefusedError: it does not.
    """
    try:
        found = (cwd / path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise RefusedError("That path cannot be read.") from error
    if not found.is_relative_to(cwd.resolve()):
        raise RefusedError("That path is outside of the workspace.")
    if is_own(found, home):
        raise RefusedError("Those files belong to the daemon.")
    return found


async def _in_thread(work: Callable[[], ToolResult]) -> ToolResult:
    def guarded() -> ToolResult:
        try:
            return work()
        except RefusedError as refusal:
            return ToolResult(False, str(refusal))
        except OSError as error:
            return ToolResult(False, f"It did not work: {error.strerror or type(error).__name__}.")
        except ValueError:  # a NUL in the path
            return ToolResult(False, "That path cannot be read.")

    return await asyncio.to_thread(guarded)


def _list(folder: Path) -> ToolResult:
    lines = []
    with os.scandir(folder) as entries:
        for entry in entries:
            lines.append(_entry(entry))
            if len(lines) > 20 * LIST_ENTRIES:  # a folder without end
                break
    lines.sort()
    text = "\n".join(lines[:LIST_ENTRIES]) or "The folder is empty."
    return _cut(text.encode(), truncated=len(lines) > LIST_ENTRIES)


def _entry(entry: os.DirEntry[str]) -> str:
    name = shown(entry.name)
    if entry.is_symlink():
        return f"{name} (link)"
    if entry.is_dir():
        return f"{name}/"
    return f"{name} ({entry.stat(follow_symlinks=False).st_size} bytes)"


def _read(path: Path) -> ToolResult:
    # O_NONBLOCK: a pipe must not be waited for; O_NOFOLLOW: the path was resolved, so a link is new
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise RefusedError("That is no regular file.")
        data = file.read(OUTPUT_BYTES + 1)
    if b"\0" in data:
        raise RefusedError("That is no text file.")
    return _cut(data)


def _write(path: Path, data: bytes) -> ToolResult:
    if len(data) > WRITE_BYTES:
        raise RefusedError(f"The text is over {WRITE_BYTES} bytes.")
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o644), "wb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise RefusedError("That is no regular file.")
        file.truncate(0)
        file.write(data)
    return ToolResult(True, f"Wrote {len(data)} bytes.")


def _cut(data: bytes, *, truncated: bool = False) -> ToolResult:
    """The text of ``data``, cut to the limit between characters."""
    if len(data) <= OUTPUT_BYTES:
        return ToolResult(True, data.decode(errors="replace"), truncated)
    end = OUTPUT_BYTES
    while end > OUTPUT_BYTES - 4 and data[end] & 0xC0 == 0x80:  # inside of a character
        end -= 1
    return ToolResult(True, data[:end].decode(errors="replace"), truncated=True)
