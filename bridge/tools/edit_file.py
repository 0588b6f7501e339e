"""The tool ``edit_file``: replace one passage of a file of the workspace by another."""

import os
from itertools import islice
from typing import Annotated

from pydantic import Field

from bridge.paths import Home
from bridge.tools.blocking import Stop, in_workspace
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult
from bridge.tools.files import NO_TEXT
from bridge.tools.workspace import RefusedError, Workspace

EDIT_BYTES = 8 * 1_048_576
_SHOWN_LINES = 10


class EditArguments(Arguments):
    path: Annotated[str, Field(min_length=1, description="A text file, relative to the workspace.")]
    old: Annotated[str, Field(min_length=1, description="The passage to replace, exactly as it is there.")]
    new: str = Field(description="What stands there instead.")
    everywhere: bool = Field(
        default=False, description="Replace it wherever it is, not only where it is once."
    )


class EditFile:
    name, risk, arguments = "edit_file", Risk.FILESYSTEM, EditArguments
    description = (
        "Replace a passage of a text file of the workspace. The passage must be there exactly once, "
        "character by character, unless everywhere is set."
    )

    def __init__(self, home: Home) -> None:
        self._home = home

    def summary(self, arguments: EditArguments) -> str:
        return f"Change {arguments.path}"

    async def run(self, arguments: EditArguments, place: CallPlace) -> ToolResult:
        def work(workspace: Workspace, stop: Stop) -> ToolResult:
            with workspace.file(arguments.path) as opened:
                seen = os.fstat(opened)
                with os.fdopen(os.dup(opened), "rb") as file:
                    data = file.read(EDIT_BYTES + 1)
            changed, lines = replaced(data, arguments.old, arguments.new, arguments.everywhere)
            stop.check()
            workspace.write(arguments.path, changed, seen)
            return ToolResult(True, _done(lines))

        return await in_workspace(work, place.cwd, self._home)


def replaced(data: bytes, old: str, new: str, everywhere: bool = False) -> tuple[bytes, list[int]]:
    """``data`` with the passage replaced, and the lines in which it began.

    In a file of CRLF lines a passage may be given with plain line ends.

    Raises:
        RefusedError: it is not there, more than once, or the same; or ``data`` is too long or no text.
    """
    if len(data) > EDIT_BYTES:
        raise RefusedError(f"The file is over {EDIT_BYTES} bytes: change it with a command.")
    if b"\0" in data:
        raise RefusedError(NO_TEXT)
    before, after = old.encode(errors="replace"), new.encode(errors="replace")
    if before not in data and b"\r\n" in data:
        before, after = (text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for text in (before, after))
    if before == after:
        raise RefusedError("The new text is the old one: nothing is to be changed.")
    lines = _places(data, before)
    if not lines:
        raise RefusedError(_not_there(data, old))
    if len(lines) > 1 and not everywhere:
        raise RefusedError(
            f"The passage is there {len(lines)} times, in lines {_shown(lines)}: give more of the text "
            "around the one that is meant, or set everywhere."
        )
    if len(data) + len(lines) * (len(after) - len(before)) > EDIT_BYTES:  # or no memory would hold it
        raise RefusedError(f"The file would be over {EDIT_BYTES} bytes.")
    return data.replace(before, after), lines


def _places(data: bytes, passage: bytes) -> list[int]:
    """The lines in which it begins, from 1; what overlaps counts once."""
    lines, line, done = [], 1, 0
    at = data.find(passage)
    while at >= 0:
        line += data.count(b"\n", done, at)
        lines.append(line)
        done = at
        at = data.find(passage, at + len(passage))
    return lines


def _not_there(data: bytes, old: str) -> str:
    """What to do about it: where a passage is that differs in its spaces alone, this is told."""
    words, wanted = _words(data), _words(old.encode(errors="replace"))
    at = words.find(wanted) if wanted.strip() else -1
    if at >= 0:
        nth = words.count(b"\n", 0, at)
        numbers = (number for number, line in enumerate(data.splitlines(), 1) if line.strip())
        line = next(islice(numbers, nth, None))
        return f"The passage is not there; one that differs in its spaces is in line {line}: read it."
    return "The passage is not there: read the file again, and give it exactly as it is."


def _words(data: bytes) -> bytes:
    """The lines that are not blank, each between line ends, with one space between its words."""
    lines = (b" ".join(line.split()) for line in data.splitlines())
    return b"\n" + b"".join(line + b"\n" for line in lines if line)


def _done(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"Changed line {lines[0]}."
    return f"Changed {len(lines)} places, in lines {_shown(lines)}."


def _shown(lines: list[int]) -> str:
    more = ", …" if len(lines) > _SHOWN_LINES else ""
    return ", ".join(map(str, lines[:_SHOWN_LINES])) + more
