"""Files of a chat: what was typed leads to them, and what arrives is kept under a harmless name."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from bridge.cli import chat_files
from bridge.cli.chat_client import LocalFile, ReplyFile
from bridge.cli.chat_files import completions, described, dragged, fitting, local, named, save, shown
from bridge.cli.picture import sunset
from bridge.errors import BridgeError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: Path, data: bytes = b"abc") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_several_files_with_blanks_quotes_and_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    paths = [write(tmp_path / name) for name in ("a.png", "b c.png", "图 '1'.png")]
    typed = "a.png 'b c.png' ~/图\\ \\'1\\'.png"
    assert named(typed) == [LocalFile(path, 3) for path in paths]
    assert named("") == []


def test_a_link_is_followed_here_and_not_by_the_daemon(tmp_path: Path) -> None:
    real = write(tmp_path / "real")
    (tmp_path / "link").symlink_to(real)
    assert local("link").path == real


def test_what_cannot_be_sent_is_told_harmlessly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for typed, told in (
        ("gone\x1b[2J", "No such file"),
        (".", "no regular file"),
        ("pipe", "no regular file"),
        ("x" * 300, "File name too long"),
        ("'a", "a quote has no end"),
    ):
        with pytest.raises(BridgeError, match=told) as error:
            named(typed)
        assert "\x1b" not in str(error.value)
    Path(os.fsdecode(b"\xff.txt")).write_text("x")
    with pytest.raises(BridgeError, match="not UTF-8"):
        local(os.fsdecode(b"\xff.txt"))


def test_a_folder_that_may_not_be_entered_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def stat(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(BridgeError, match=r"a\.txt: Permission denied"):
        local("a.txt")


def test_names_that_no_file_can_have_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("~nobody-of-that-name/x", "a\0b"):
        with pytest.raises(BridgeError, match="cannot be a file's name"):
            local(name)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(BridgeError, match="No such file"):
        local("a.txt")


def test_what_is_too_large_is_refused_with_the_limit(tmp_path: Path) -> None:
    files = [LocalFile(tmp_path / "a", 3), LocalFile(tmp_path / "b", 2048)]
    assert fitting(files, 2048) == fitting(files, None) == files
    with pytest.raises(BridgeError, match=r"b has 2.0 KiB, and the account takes 1000 bytes at most"):
        fitting(files, 1000)


def test_a_line_of_nothing_but_paths_was_dragged_in(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a b.png"), write(tmp_path / "图.png")
    assert dragged(f"'{one}' {two} ") == [LocalFile(one, 3), LocalFile(two, 3)]
    assert dragged(f"file://{str(one).replace(' ', '%20')}") == [LocalFile(one, 3)]
    assert dragged(str(one).replace(" ", "\\ ")) == [LocalFile(one, 3)]
    for line in ("图.png", f"{two} please", "/stop", "it's", "", "/gone/a", "~nobody-here/x"):
        assert dragged(line) == [], line


def arrived(tmp_path: Path, name: str, data: bytes = b"abc") -> ReplyFile:
    return ReplyFile(write(tmp_path / "outbox" / "1-copy", data), name, "text/plain", len(data))


def test_what_arrives_is_kept_and_nothing_is_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "files"
    paths = [save(arrived(tmp_path, "图.png"), out).path for _ in range(3)]
    assert [path.name for path in paths] == ["图.png", "图 (2).png", "图 (3).png"]
    assert paths[0].read_bytes() == b"abc"
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert stat.S_IMODE(paths[0].stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "name", ["../../escape.txt", "/etc/passwd", "a\x1b[2J.txt", "", "..", "a/../../b", "C:\\x"]
)
def test_a_name_never_leads_out_of_the_folder_or_plays_with_the_terminal(tmp_path: Path, name: str) -> None:
    saved = save(arrived(tmp_path, name), tmp_path / "files")
    assert saved.path.parent == tmp_path / "files"
    assert "\x1b" not in saved.path.name
    assert saved.size == 3


def test_a_link_in_the_way_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").symlink_to(tmp_path / "victim")
    assert save(arrived(tmp_path, "a.txt"), tmp_path / "files").path.name == "a (2).txt"
    assert not (tmp_path / "victim").exists()


def test_where_the_folder_cannot_take_it_a_temporary_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    write(tmp_path / "files")
    saved = save(arrived(tmp_path, "a.txt"), tmp_path / "files")
    assert saved.path.read_bytes() == b"abc"
    assert saved.path.parent.name.startswith("turnbridge-")


def test_a_copy_that_fails_midway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "files"))
    with pytest.raises(BridgeError, match=r"a\.txt could not be saved: No space left"):
        save(arrived(tmp_path, "a.txt"), tmp_path / "files")
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []


def test_a_copy_that_is_gone_and_a_folder_that_is_full_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BridgeError, match="could not be saved: No such file"):
        save(ReplyFile(tmp_path / "gone", "a.txt", "", 1), tmp_path)
    monkeypatch.setattr(chat_files, "MOST_NAMES", 1)
    with pytest.raises(BridgeError, match="is full of files of that name"):
        save(arrived(tmp_path, "a.txt"), tmp_path / "files")


def test_a_picture_is_described_with_its_pixels(tmp_path: Path) -> None:
    picture = write(tmp_path / "a.png", sunset())
    assert described(picture, picture.stat().st_size) == "2.4 KiB, 480 x 300"
    assert described(write(tmp_path / "a.txt"), 3) == "3 bytes"
    assert shown(tmp_path / "a\x1b.txt") == "a\ufffd.txt"


def test_tab_completes_paths_with_blanks_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a b.png", "about.txt", ".hidden", "sub dir/图.png"):
        write(tmp_path / name)
    assert completions("") == ["a\\ b.png ", "about.txt ", "sub\\ dir/"]
    assert completions("x.png a") == ["x.png a\\ b.png ", "x.png about.txt "]
    assert completions("'a b") == ["a\\ b.png "]
    assert completions("sub\\ d") == ["sub\\ dir/"]
    assert completions('"sub dir/') == ["sub\\ dir/图.png "]
    assert completions(".h") == [".hidden "]
    assert completions("gone/") == []
    monkeypatch.setenv("HOME", str(tmp_path))
    assert completions("~/ab") == ["~/about.txt "]
    assert completions("'a'\\") == []
