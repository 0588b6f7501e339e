"""The search itself, run here instead of in a worker."""

import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.tools import searching
from bridge.tools.searching import excerpt, fits, work
from bridge.tools.workspace import identity


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src" / "inner").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("import os\nprint('é')\n")
    (folder / "src" / "inner" / "b.py").write_text("import sys\r\n")
    (folder / "notes.txt").write_text("nothing")
    return folder


def search(cwd: Path, own: tuple[int, int] | None = None, **asked: str) -> list[Any]:
    request = {"root": str(cwd), "own": own, "path": ".", "names": "", "text": ""} | asked
    return [next(iter(told.values())) for told in work(request)]


def test_files_and_folders_are_found_by_name(cwd: Path) -> None:
    assert search(cwd, names="*.py") == ["src/a.py", "src/inner/b.py"]
    assert search(cwd, names="inner") == ["src/inner/"]
    assert search(cwd, names="src/*.py") == search(cwd, names="./src/*.py") == ["src/a.py"]
    assert search(cwd, names="src/**/*.py") == ["src/a.py", "src/inner/b.py"]
    assert search(cwd, names="*.py", path="src/inner") == ["src/inner/b.py"]
    assert search(cwd, names="inner/*", path="src/") == ["src/inner/b.py"]
    assert search(cwd, names="*.rs") == []


def test_lines_are_found_by_what_is_in_them(cwd: Path) -> None:
    assert search(cwd, text="^import (os|sys)$") == ["src/a.py:1: import os", "src/inner/b.py:1: import sys"]
    assert search(cwd, text="é", names="*.py") == ["src/a.py:2: print('é')"]
    assert search(cwd, text="(?i)NOTHING", path="notes.txt") == ["notes.txt:1: nothing"]
    assert search(cwd, text="import", names="*.txt") == []


def test_a_long_line_is_one_line_and_shown_around_what_was_found(cwd: Path) -> None:
    (cwd / "long").write_text("x" * 30_000 + "needle" + "y" * 100_000 + "\nneedle\n")
    first, second = search(cwd, text="needle", path="long")
    assert first.startswith("long:1: …xxx")
    assert "needleyyy" in first
    assert len(first) < 300
    assert second == "long:2: needle"


@pytest.mark.parametrize(("asked", "why"), [
    ({"text": "("}, "no regular expression"),
    ({"text": "a", "path": "../x"}, "outside"),
    ({"text": "a", "path": "none"}, "No such file"),
    ({"text": "a", "path": "a\0b"}, "cannot be read"),
])  # fmt: skip
def test_what_cannot_be_searched_is_said(asked: dict[str, Any], why: str, cwd: Path) -> None:
    (told,) = search(cwd, **asked)
    assert why in told


def test_links_binary_files_pipes_and_git_are_left_out(cwd: Path) -> None:
    (cwd.parent / "secret").write_text("needle")
    (cwd / "link").symlink_to("../secret")
    (cwd / "folder").symlink_to("..")
    (cwd / "binary").write_bytes(b"needle\n\0")
    (cwd / ".git").mkdir()
    (cwd / ".git" / "needle").write_text("needle")
    os.mkfifo(cwd / "pipe")
    assert search(cwd, text="needle") == []
    assert search(cwd, names="*") == [
        ".git/", "binary", "folder", "link", "notes.txt", "pipe", "src/", "src/a.py", "src/inner/",
        "src/inner/b.py",
    ]  # fmt: skip


def test_the_daemons_own_is_left_out(cwd: Path) -> None:
    (cwd / "home").mkdir()
    (cwd / "home" / "config").write_text("needle")
    assert search(cwd, identity(cwd / "home"), text="needle") == []


def test_folders_that_cannot_be_entered_are_passed_by(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(name: str, *rest: Any, **more: Any) -> int:
        if name in ("inner", "a.py"):
            raise PermissionError
        return real(name, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    assert search(cwd, names="*.py") == ["src/a.py"]
    assert search(cwd, text="import") == []


def test_depth_and_entries_are_bounded_and_progress_is_told(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_DEPTH", 1)
    assert search(cwd, names="*.py") == ["src/a.py"]
    monkeypatch.setattr(searching, "FOLDER_ENTRIES", 1)
    assert len(search(cwd, names="*")) <= 2
    monkeypatch.setattr(searching, "TELL_FILES", 1)
    assert 1 in search(cwd, names="none")


def test_a_name_that_is_no_text_is_shown_in_one_line(cwd: Path) -> None:
    os.close(os.open(os.fsencode(cwd) + b"/odd\xff\nname", os.O_CREAT | os.O_WRONLY))
    assert search(cwd, names="odd*") == ["odd\ufffd\ufffdname"]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), st.randoms())
def test_a_path_fits_itself_with_any_of_its_folders_left_to_stars(
    parts: list[str], dice: random.Random
) -> None:
    assert fits(parts, parts)
    at = dice.randrange(len(parts))
    assert fits(parts, [*parts[:at], "**", parts[-1]])
    assert fits(parts, ["**", *parts])
    assert not fits(parts, [*parts, "x"])
    assert not fits(parts, ["x", *parts, "**"])


@given(st.text(max_size=1000), st.integers(0, 1000))
def test_an_excerpt_is_short_and_holds_what_was_found(line: str, at: int) -> None:
    found = min(at, max(0, len(line) - 1))
    shown = excerpt(line, found)
    assert len(shown) <= searching.SHOWN_CHARACTERS + 2
    if line and line[found].isprintable():
        assert line[found] in shown
