import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.paths import Home
from bridge.tools import edit_file
from bridge.tools.contract import Risk, ToolResult
from bridge.tools.edit_file import EDIT_BYTES, EditArguments, EditFile, replaced
from bridge.tools.workspace import RefusedError, Workspace
from tests.tools.place import Shown

TEXT = "one\n  two\nthree\n  two\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


async def edit(cwd: Path, home: Home, old: str, new: str, everywhere: bool = False) -> ToolResult:
    arguments = EditArguments(path="a.txt", old=old, new=new, everywhere=everywhere)
    return await EditFile(home).run(arguments, Shown(cwd).place)


def test_it_says_its_risk_and_what_it_would_do(home: Home) -> None:
    tool = EditFile(home)
    assert (tool.name, tool.risk) == ("edit_file", Risk.FILESYSTEM)
    assert tool.summary(EditArguments(path="a.txt", old="x", new="y")) == "Change a.txt"


async def test_a_passage_that_is_there_once_is_replaced_and_the_mode_kept(tmp_path: Path, home: Home) -> None:
    file = tmp_path / "a.txt"
    file.write_text(TEXT)
    file.chmod(0o751)
    assert await edit(tmp_path, home, "three", "four") == ToolResult(True, "Changed line 3.")
    assert file.read_text() == TEXT.replace("three", "four")
    assert file.stat().st_mode & 0o777 == 0o751
    assert list(tmp_path.iterdir()) == [file]


async def test_a_passage_that_is_there_more_than_once_is_not_replaced_unless_everywhere(
    tmp_path: Path, home: Home
) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    result = await edit(tmp_path, home, "two", "2")
    assert not result.success
    assert "2 times, in lines 2, 4" in result.output
    assert "everywhere" in result.output
    assert (tmp_path / "a.txt").read_text() == TEXT
    assert (await edit(tmp_path, home, "two", "2", True)).output == "Changed 2 places, in lines 2, 4."
    assert (tmp_path / "a.txt").read_text() == TEXT.replace("two", "2")


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ("four", "read the file again"),
        ("\ttwo\nthree", "differs in its spaces is in line 2"),
        ("one\n\n", "differs in its spaces is in line 1"),
        (" \n\n \n", "read the file again"),
    ],
)
async def test_a_passage_that_is_not_there_is_told_with_what_to_do(
    old: str, told: str, tmp_path: Path, home: Home
) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    result = await edit(tmp_path, home, old, "x")
    assert not result.success
    assert told in result.output


async def test_what_cannot_be_edited_is_said(tmp_path: Path, home: Home) -> None:
    assert not (await edit(tmp_path, home, "a", "b")).success
    (tmp_path / "a.txt").write_bytes(b"a\0b")
    assert (await edit(tmp_path, home, "a", "b")).output == "That is no text file."
    (tmp_path / "a.txt").write_text("a")
    assert "nothing is to be changed" in (await edit(tmp_path, home, "a", "a")).output


async def test_a_file_that_another_changed_meanwhile_is_left_as_it_is(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("mine")
    real = edit_file.replaced

    def slow(data: bytes, old: str, new: str, everywhere: bool) -> tuple[bytes, list[int]]:
        file.write_text("another's mine")
        return real(data, old, new, everywhere)

    monkeypatch.setattr(edit_file, "replaced", slow)
    result = await edit(tmp_path, home, "mine", "yours")
    assert result == ToolResult(False, "The file changed meanwhile: read it again.")
    assert file.read_text() == "another's mine"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_plain_line_ends_find_those_of_a_crlf_file_and_become_such() -> None:
    assert replaced(b"a\r\nb\r\nc", "a\nb", "x\ny\n") == (b"x\r\ny\r\n\r\nc", [1])
    assert replaced(b"a\r\nb", "a\r\nb", "x") == (b"x", [1])


def test_many_places_are_told_in_short() -> None:
    with pytest.raises(RefusedError, match=r"20 times, in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …:"):
        replaced(b"a\n" * 20, "a", "b")


def test_sizes_are_bounded() -> None:
    with pytest.raises(RefusedError, match="over"):
        replaced(b"a" * (EDIT_BYTES + 1), "a", "b")
    with pytest.raises(RefusedError, match="would be over"):
        replaced(b"a" * 1_000_000, "a", "b" * 100, everywhere=True)


@given(
    st.text("ab \n\r", max_size=40),
    st.text("ab \n\r", min_size=1, max_size=6),
    st.text("ab\n\ud800", max_size=6),
)
def test_whatever_is_asked_exactly_one_passage_changes_or_nothing(text: str, old: str, new: str) -> None:
    data = text.encode()
    try:
        changed, lines = replaced(data, old, new)
    except RefusedError:
        return
    assert len(lines) == 1
    assert data.count(b"\n", 0, len(data)) >= lines[0] - 1
    passage, instead = old.encode(), new.encode(errors="replace")
    if passage in data:
        assert data.count(passage) == 1
        assert changed == data.replace(passage, instead)
    else:  # found with the file's own line ends
        assert b"\r\n" in data


def test_a_write_must_find_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    seen = os.stat(tmp_path / "a")
    (tmp_path / "a").unlink()
    with Workspace(tmp_path) as workspace, pytest.raises(RefusedError, match="changed"):
        workspace.write("a", b"y", seen)
    assert os.listdir(tmp_path) == []


def test_what_would_grow_beyond_all_bounds_is_refused_before_it_has() -> None:
    """A letter replaced by a quarter of a megabyte, wherever it is, would fill any memory."""
    with pytest.raises(RefusedError, match="would be over"):
        replaced(b"a" * 1_000_000, "a", "b" * 260_000, everywhere=True)


def test_looking_for_what_is_nearly_there_takes_no_time() -> None:
    """It runs in a thread, which nothing ends."""
    began = time.monotonic()
    with pytest.raises(RefusedError, match="read the file again"):
        replaced(b"a \n" * 200_000, "a\n" * 50_000 + "b", "c")
    assert time.monotonic() - began < 20  # it was hours
