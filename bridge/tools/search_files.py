"""The tool ``search_files``: find files of the workspace by their names, and lines by what is in them."""

import asyncio
from typing import Annotated, Any

from pydantic import Field, model_validator

from bridge.paths import Home
from bridge.tools import workers
from bridge.tools.blocking import open_workspace
from bridge.tools.contract import Arguments, CallPlace, Risk, ToolResult
from bridge.tools.processes import StartError
from bridge.tools.texts import OUTPUT_BYTES
from bridge.tools.workspace import RefusedError, identity

SECONDS = 20.0
MOST_HITS = 500
_PATTERN = 1000  # characters


class SearchArguments(Arguments):
    names: Annotated[
        str, Field(max_length=_PATTERN, description="Such as *.py (at any depth) or src/**/*.py.")
    ] = ""
    text: Annotated[
        str, Field(max_length=_PATTERN, description="A regular expression, of Python's, for each line.")
    ] = ""
    path: Annotated[str, Field(min_length=1, description="The folder or file to search.")] = "."
    most: Annotated[int, Field(ge=1, le=MOST_HITS, description="How many to find at most.")] = 100

    @model_validator(mode="after")
    def _something(self) -> "SearchArguments":
        if not self.names.strip("/. ") and not self.text:
            raise ValueError("give names, or text, or both")
        return self


class SearchFiles:
    name, risk, arguments = "search_files", Risk.READ_ONLY, SearchArguments
    description = (
        "Find files and folders of the workspace by their names, or lines of its text files by a regular "
        "expression, or both. Links are not followed; .git and binary files are left out."
    )

    def __init__(self, home: Home) -> None:
        self._home = home

    def summary(self, arguments: SearchArguments) -> str:
        return f"Search {arguments.path} for {arguments.text or arguments.names}"

    async def run(self, arguments: SearchArguments, place: CallPlace) -> ToolResult:
        try:
            with await asyncio.to_thread(open_workspace, place.cwd, self._home):
                own = identity(self._home.root)
        except RefusedError as refusal:
            return ToolResult(False, str(refusal))
        except OSError as error:
            return ToolResult(False, f"It did not work: {error.strerror}.")
        asked = arguments.model_dump(include={"names", "text", "path"})
        finding = _Finding(arguments.most, place)
        try:
            why = await finding.of({"root": str(place.cwd), "own": own, **asked})
        except StartError as error:
            return ToolResult(False, f"{error}.")
        return finding.result(why)


class _EnoughError(Exception):
    """Nothing more is wanted."""


class _Finding:
    def __init__(self, most: int, place: CallPlace) -> None:
        self._most, self._place = most, place
        self._hits: list[str] = []
        self._bytes = 0
        self._refused = ""

    async def of(self, request: dict[str, Any]) -> str:
        """Search; why it was not searched to the end."""
        try:
            why = await workers.work("searching", request, SECONDS, self._take)
        except _EnoughError:
            return "there is more: narrow the search"
        return why and f"not all was searched: {why}"

    async def _take(self, told: dict[str, Any]) -> None:
        match told:
            case {"seen": seen}:
                await self._place.progress(f"{seen} files and folders, {len(self._hits)} found")
            case {"refused": refused}:
                self._refused = refused
            case _:
                hit = told["hit"]
                self._bytes += len(hit.encode(errors="replace")) + 1
                if len(self._hits) == self._most or self._bytes > OUTPUT_BYTES:
                    raise _EnoughError
                self._hits.append(hit)

    def result(self, why: str) -> ToolResult:
        if self._refused:
            return ToolResult(False, self._refused)
        text = "\n".join(self._hits) or "Nothing was found."
        return ToolResult(bool(self._hits) or not why, f"{text}\n[{why}]" if why else text, bool(why))
