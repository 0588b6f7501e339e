"""Searches a workspace by names and contents. Runs in a worker: with the standard library alone."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bridge.tools.workspace import OPEN_FOLDER, RefusedError, Spot, Workspace, identity_of, open_regular

LINE_BYTES = 65_536  # of a longer line the rest is not searched
SHOWN_CHARACTERS = 240  # of a line
BEFORE_CHARACTERS = 80  # of these, before what was found
HEAD_BYTES = 8192  # a file with a NUL in there is binary
FOLDER_ENTRIES = 20_000
MOST_DEPTH = 64
TELL_FILES = 500  # how often it says how far it is
SKIPPED = frozenset({".git"})

Told = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """``path`` from the workspace on, as it is shown; ``is_folder`` of what is no link."""

    spot: Spot
    path: str
    is_folder: bool


def work(request: Told) -> Iterator[Told]:
    """``hit`` by ``hit``, sometimes how many were ``seen``, or why it was ``refused``.

    ``request`` holds ``root``, the workspace, ``own``, the identity of the daemon's home or None, ``path``,
    ``names`` and ``text``.
    """
    try:
        pattern = re.compile(request["text"]) if request["text"] else None
    except (re.error, OverflowError, RecursionError) as error:
        yield {"refused": f"The text is no regular expression: {error}."}
        return
    names = [part for part in request["names"].split("/") if part not in ("", ".")]
    own = tuple(request["own"]) if request["own"] else None
    try:
        with Workspace(Path(request["root"]), own) as workspace:
            yield from _searched(workspace, own, request["path"], names, pattern)
    except RefusedError as refusal:
        yield {"refused": str(refusal)}
    except OSError as error:
        yield {"refused": f"It did not work: {error.strerror}."}
    except ValueError:
        yield {"refused": "That path cannot be read."}


def _searched(
    workspace: Workspace,
    own: tuple[int, int] | None,
    path: str,
    names: Sequence[str],
    pattern: re.Pattern[str] | None,
) -> Iterator[Told]:
    with workspace.spot(path) as spot:
        for seen, entry in enumerate(_entries(spot, path, own), 1):
            if seen % TELL_FILES == 0:
                yield {"seen": seen}
            inner = entry.path.removeprefix(f"{path.rstrip('/')}/").removeprefix("./")
            if names and not fits(inner.split("/"), names):
                continue
            if pattern is None:
                yield {"hit": f"{entry.path}/" if entry.is_folder else entry.path}
            elif not entry.is_folder:
                yield from ({"hit": f"{entry.path}:{line}"} for line in _lines(entry.spot, pattern))


def fits(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a path is one that ``names`` describes: a name alone at any depth, ``**`` any folders.

    >>> fits(["a", "b.py"], ["*.py"]), fits(["a", "b.py"], ["a", "*"]), fits(["a", "b.py"], ["c", "*"])
    (True, True, False)
    >>> fits(["b.py"], ["**", "*.py"]), fits(["a", "b", "c.py"], ["a", "**", "*.py"])
    (True, True)
    """
    if len(names) == 1:
        return fnmatchcase(parts[-1], names[0]) or names[0] == "**"
    return _fits(parts, names)


def _fits(parts: Sequence[str], names: Sequence[str]) -> bool:
    if not names or not parts:
        return not parts and all(name == "**" for name in names)
    if names[0] == "**":
        return _fits(parts, names[1:]) or _fits(parts[1:], names)
    return fnmatchcase(parts[0], names[0]) and _fits(parts[1:], names[1:])


def _entries(start: Spot, path: str, own: tuple[int, int] | None) -> Iterator[Entry]:
    """All that is in a folder, or the file itself. Links and folders that cannot be read are not entered."""
    try:
        folder = os.open(start.name, OPEN_FOLDER, dir_fd=start.folder)
    except NotADirectoryError:
        yield Entry(start, path, False)
        return
    try:
        yield from _inside(folder, "" if path in ("", ".") else f"{path.rstrip('/')}/", own, MOST_DEPTH)
    finally:
        os.close(folder)


def _inside(folder: int, path: str, own: tuple[int, int] | None, depth: int) -> Iterator[Entry]:
    if identity_of(folder) == own:
        return
    for name, is_folder in _listed(folder):
        yield Entry(Spot(folder, name), path + _shown(name), is_folder)
        if is_folder and depth and name not in SKIPPED:
            try:
                inner = os.open(name, OPEN_FOLDER, dir_fd=folder)
            except OSError:  # it may not be read, or is none any more
                continue
            try:
                yield from _inside(inner, f"{path}{_shown(name)}/", own, depth - 1)
            finally:
                os.close(inner)


def _listed(folder: int) -> list[tuple[str, bool]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found.append((entry.name, entry.is_dir(follow_symlinks=False)))
            if len(found) == FOLDER_ENTRIES:
                break
    return sorted(found)


def _lines(spot: Spot, pattern: re.Pattern[str]) -> Iterator[str]:
    """The lines of a text file in which something is found, each with its number."""
    try:
        opened = open_regular(spot)
    except (OSError, RefusedError):
        return
    with os.fdopen(opened, "rb") as file:
        if b"\0" in file.peek(HEAD_BYTES)[:HEAD_BYTES]:
            return
        number, begins = 0, True
        while piece := file.readline(LINE_BYTES):
            number += begins
            if begins:
                line = piece.decode(errors="replace").rstrip("\r\n")
                if found := pattern.search(line):
                    yield f"{number}: {excerpt(line, found.start())}"
            begins = piece.endswith(b"\n")


def excerpt(line: str, at: int) -> str:
    """A line, or of a long one what is around ``at``, without controls."""
    start = max(0, at - BEFORE_CHARACTERS) if len(line) > SHOWN_CHARACTERS else 0
    text = line[start : start + SHOWN_CHARACTERS]
    text = "".join(each if each.isprintable() else " " for each in text)
    return f"{'…' if start else ''}{text}{'…' if start + SHOWN_CHARACTERS < len(line) else ''}"


def _shown(name: str) -> str:
    """A name as text, in one line."""
    text = os.fsencode(name).decode(errors="replace")
    return "".join(each if each.isprintable() else "\ufffd" for each in text)
