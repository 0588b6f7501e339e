import os
from pathlib import Path

import pytest

from bridge.paths import Home
from bridge.tools.contract import Risk, ToolResult
from bridge.tools.files import (
    LIST_ENTRIES,
    WRITE_BYTES,
    ListArguments,
    ListFiles,
    ReadArguments,
    ReadFile,
    WriteArguments,
    WriteFile,
)
from bridge.tools.texts import OUTPUT_BYTES
from tests.tools.place import Shown


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


async def listed(cwd: Path, home: Home, path: str = ".") -> ToolResult:
    return await ListFiles(home).run(ListArguments(path=path), Shown(cwd).place)


async def read(cwd: Path, home: Home, path: str, **lines: int) -> ToolResult:
    return await ReadFile(home).run(ReadArguments(path=path, **lines), Shown(cwd).place)


async def write(cwd: Path, home: Home, path: str, text: str = "x") -> ToolResult:
    return await WriteFile(home).run(WriteArguments(path=path, text=text), Shown(cwd).place)


def test_each_tool_says_its_risk_and_what_a_call_would_do(home: Home) -> None:
    assert ListFiles(home).risk is ReadFile(home).risk is Risk.READ_ONLY
    assert WriteFile(home).risk is Risk.FILESYSTEM
    assert ListFiles(home).summary(ListArguments(path="a")) == "List a"
    assert ReadFile(home).summary(ReadArguments(path="a")) == "Read a"
    assert WriteFile(home).summary(WriteArguments(path="a", text="é")) == "Write 2 bytes to a"


async def test_a_folder_is_listed_in_order_with_sizes(cwd: Path, home: Home) -> None:
    assert (await listed(cwd, home)).output == "The folder is empty."
    (cwd / "b.txt").write_text("abc")
    (cwd / "a").mkdir()
    (cwd / "c").symlink_to("/etc")
    Path(os.fsdecode(os.fsencode(cwd) + b"/d\xff")).touch()
    assert (await listed(cwd, home)).output == "a/\nb.txt (3 bytes)\nc (link)\nd\ufffd (0 bytes)"
    assert (await listed(cwd, home, "a")).output == "The folder is empty."
    assert not (await listed(cwd, home, "b.txt")).success
    assert not (await listed(cwd, home, "none")).success


async def test_a_long_list_is_cut(cwd: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.tools.files.LIST_ENTRIES", 3)
    for number in range(70):
        (cwd / f"{number:02}").touch()
    result = await listed(cwd, home)
    assert result.truncated
    assert len(result.output.splitlines()) == 3
    assert LIST_ENTRIES == 500


async def test_a_text_is_read_and_a_line_is_cut_between_characters(cwd: Path, home: Home) -> None:
    (cwd / "a.txt").write_text("héllo")
    assert await read(cwd, home, "a.txt") == ToolResult(True, "héllo")
    (cwd / "exact").write_text("x" * OUTPUT_BYTES)
    assert not (await read(cwd, home, "exact")).truncated
    for text in ("é" * OUTPUT_BYTES, "x" + "é" * OUTPUT_BYTES, "xx" + "😀" * OUTPUT_BYTES):
        (cwd / "long").write_text(text)
        result = await read(cwd, home, "long")
        assert result.truncated
        shown, _, note = result.output.rpartition("\n")
        assert note == "[lines 1 to 1; line 1 is cut]"
        assert text.startswith(shown)
        assert OUTPUT_BYTES - 4 < len(shown.encode()) <= OUTPUT_BYTES


async def test_any_part_of_a_large_file_is_read_by_its_lines(cwd: Path, home: Home) -> None:
    with (cwd / "large").open("w") as file:
        file.writelines(f"line {number}\n" for number in range(1, 200_001))
    first = await read(cwd, home, "large")
    assert first.truncated
    *lines, note = first.output.splitlines()
    assert lines[-1] == f"line {len(lines)}"
    assert note == f"[lines 1 to {len(lines)}; go on with from_line {len(lines) + 1}]"
    part = await read(cwd, home, "large", from_line=150_000, lines=2)
    assert part == ToolResult(
        True, "line 150000\nline 150001\n[lines 150000 to 150001; go on with from_line 150002]"
    )
    assert (await read(cwd, home, "large", from_line=200_000)).output == "line 200000\n"
    assert await read(cwd, home, "large", from_line=200_001) == ToolResult(
        False, "The file has only 200000 lines."
    )


async def test_a_long_line_is_one_line(cwd: Path, home: Home) -> None:
    (cwd / "a").write_text("x" * 300_000 + "\nsecond\nthird")
    assert (await read(cwd, home, "a", from_line=2, lines=1)).output.startswith(
        "second\n[lines 2 to 2; go on"
    )
    assert (await read(cwd, home, "a", from_line=2)).output == "second\nthird"
    cut = await read(cwd, home, "a", lines=1)
    assert cut.output.endswith("\n[lines 1 to 1; line 1 is cut; go on with from_line 2]")
    assert (await read(cwd, home, "a", from_line=3)).output == "third"


async def test_bytes_that_are_no_characters_do_not_break_the_cut(cwd: Path, home: Home) -> None:
    (cwd / "odd").write_bytes(b"\xbf" * (OUTPUT_BYTES + 9))
    result = await read(cwd, home, "odd")
    assert result.success
    assert result.truncated


async def test_only_regular_text_files_are_read(cwd: Path, home: Home) -> None:
    (cwd / "binary").write_bytes(b"a\0b")
    (cwd / "late").write_bytes(b"line\n" * 4000 + b"\0")
    os.mkfifo(cwd / "pipe")
    for path in ("binary", "late", "pipe", ".", "none", "a\0b", "binary/x"):
        result = await read(cwd, home, path)
        assert not result.success, path


async def test_a_file_is_written_and_replaced(cwd: Path, home: Home) -> None:
    assert await write(cwd, home, "new/deep/a.txt", "first, longer") == ToolResult(True, "Wrote 13 bytes.")
    await write(cwd, home, "new/deep/a.txt", "é\ud800")
    assert (cwd / "new/deep/a.txt").read_text() == "é?"


async def test_what_cannot_be_written_is_said(cwd: Path, home: Home) -> None:
    os.mkfifo(cwd / "pipe")
    (cwd / "file").touch()
    for path in (".", "pipe", "file/x"):
        assert not (await write(cwd, home, path)).success, path
    assert not (await write(cwd, home, "long", "x" * (WRITE_BYTES + 1))).success
    assert not (cwd / "long").exists()
    assert (await write(cwd, home, "long", "x" * WRITE_BYTES)).success


async def test_the_names_of_a_folder_may_be_longer_than_an_answer(cwd: Path, home: Home) -> None:
    for number in range(400):
        (cwd / f"{number:03}{'x' * 240}").touch()
    result = await listed(cwd, home)
    assert result.truncated
    assert len(result.output.encode()) <= OUTPUT_BYTES


async def test_a_folder_without_end_is_left(cwd: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.tools.files.LIST_ENTRIES", 1)
    for number in range(30):
        (cwd / f"{number:02}").touch()
    assert len((await listed(cwd, home, "")).output.splitlines()) == 1


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/hostname", "link", "folder/x", "..", "deep/../../outside"]
)
async def test_nothing_outside_of_the_workspace_is_reached(path: str, cwd: Path, home: Home) -> None:
    outside = cwd.parent / "outside"
    outside.write_text("secret")
    (cwd / "link").symlink_to(outside)
    (cwd / "folder").symlink_to(cwd.parent)
    (cwd / "deep").mkdir()
    for result in (
        await read(cwd, home, path),
        await write(cwd, home, path),
        await listed(cwd, home, path),
    ):
        assert not result.success
        assert "outside of the workspace" in result.output
    assert outside.read_text() == "secret"


async def test_links_within_the_workspace_are_followed_and_circles_are_not(cwd: Path, home: Home) -> None:
    (cwd / "a").write_text("x")
    (cwd / "link").symlink_to(cwd / "a")
    (cwd / "circle").symlink_to(cwd / "circle")
    assert (await read(cwd, home, "link")).output == "x"
    assert not (await read(cwd, home, "circle")).success


async def test_the_daemons_own_files_are_refused_even_inside_the_workspace(home: Home) -> None:
    home.root.mkdir()
    home.config.write_text("secret")
    result = await read(home.root, home, "config.toml")
    assert result == ToolResult(False, "Those files belong to the daemon.")
    assert (await write(home.root, home, "workspace/a")).success
