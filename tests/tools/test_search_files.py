import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.paths import Home
from bridge.tools import search_files
from bridge.tools.contract import ArgumentsError, Risk, ToolResult, read_arguments
from bridge.tools.search_files import SearchArguments, SearchFiles
from bridge.tools.searching import work
from bridge.tools.texts import OUTPUT_BYTES
from tests.tools.place import Shown


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def search(cwd: Path, home: Home, **asked: Any) -> ToolResult:
    return await SearchFiles(home).run(SearchArguments(**asked), Shown(cwd).place)


def test_it_says_its_risk_and_what_it_would_do(home: Home) -> None:
    tool = SearchFiles(home)
    assert (tool.name, tool.risk) == ("search_files", Risk.READ_ONLY)
    assert tool.summary(SearchArguments(names="*.py", text="x")) == "Search . for x"
    assert tool.summary(SearchArguments(names="*.py", path="a")) == "Search a for *.py"


@pytest.mark.parametrize(
    "raw",
    [
        {}, {"names": " ./"}, {"names": "a" * 1001}, {"text": "a", "most": 0}, {"text": "a", "most": 501},
        {"text": "a", "path": ""}, {"text": 1}, {"text": "a", "more": 1},
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsError):
        read_arguments(SearchArguments, raw)


async def test_files_are_found_by_name_and_lines_by_content(cwd: Path, home: Home) -> None:
    (cwd / "a.py").write_text("import os\n")
    assert await search(cwd, home, names="*.py") == ToolResult(True, "a.py")
    assert await search(cwd, home, text="os$") == ToolResult(True, "a.py:1: import os")
    assert await search(cwd, home, text="none") == ToolResult(True, "Nothing was found.")
    refused = await search(cwd, home, text="(")
    assert not refused.success
    assert "no regular expression" in refused.output


async def test_what_is_too_much_is_cut_and_told(cwd: Path, home: Home) -> None:
    (cwd / "a").write_text("needle\n" * 1000)
    few = await search(cwd, home, text="needle", most=2)
    assert few == ToolResult(True, "a:1: needle\na:2: needle\n[there is more: narrow the search]", True)
    (cwd / "b").write_text(("needle" + "é" * 300 + "\n") * 500)
    many = await search(cwd, home, text="needle", path="b", most=500)
    assert many.truncated
    assert len(many.output.encode()) < OUTPUT_BYTES + 100


async def test_a_pattern_that_never_ends_is_ended(
    cwd: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_files, "SECONDS", 0.5)
    (cwd / "a").write_text("a" * 60 + "b\n")
    at = time.monotonic()
    result = await search(cwd, home, text="(a+)+$")
    assert result == ToolResult(
        False, "Nothing was found.\n[not all was searched: it took over 0.5 seconds]", True
    )
    assert time.monotonic() - at < 10


async def test_progress_is_shown(cwd: Path, home: Home) -> None:
    for number in range(501):
        (cwd / f"{number}").touch()
    shown = Shown(cwd)
    await SearchFiles(home).run(SearchArguments(names="none"), shown.place)
    assert shown.lines == ["500 files and folders, 0 found"]


async def test_places_that_are_no_workspace_are_refused(
    cwd: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.state.mkdir(parents=True)
    assert (await search(home.state, home, names="*")).output == "Those files belong to the daemon."
    assert (
        await search(cwd / "gone", home, names="*")
    ).output == "It did not work: No such file or directory."
    monkeypatch.setattr(sys, "executable", "/none")
    assert "cannot be started" in (await search(cwd, home, names="*")).output


@settings(max_examples=200)
@given(st.fixed_dictionaries({}, optional={name: st.text(max_size=30) for name in ("names", "text", "path")}))
def test_whatever_is_asked_is_refused_or_answered(raw: dict[str, Any]) -> None:
    try:
        arguments = SearchArguments(**raw)
    except ValueError:
        return
    asked = arguments.model_dump(include={"names", "text", "path"})
    for told in work({"root": str(Path(__file__).parent), "own": None, **asked}):
        assert set(told) <= {"hit", "seen", "refused"}
