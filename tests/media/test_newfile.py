"""New private files."""

import os
import stat
from pathlib import Path

import pytest

from bridge.media import newfile
from bridge.media.newfile import NewFile, make_private


def test_a_file_and_the_folders_made_for_it_are_the_owners_alone(tmp_path: Path) -> None:
    file = NewFile(tmp_path / "a" / "b" / "c")
    before = os.umask(0)
    try:
        file.create()
    finally:
        os.umask(before)
    file.write(b"12")
    file.write(memoryview(b"3"))
    file.finish()
    assert file.path.read_bytes() == b"123"
    paths = [file.path, *file.path.parents[:2]]
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o600, 0o700, 0o700]


def test_an_existing_file_or_link_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name in ("old", "link"):
        file = NewFile(tmp_path / name)
        with pytest.raises(FileExistsError):
            file.create()
        file.discard()
    assert (tmp_path / "old").read_bytes() == b"old"
    assert not (tmp_path / "new").exists()


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    file = NewFile(tmp_path / "link" / "x")
    with pytest.raises(OSError):
        file.create()
    file.discard()


def test_a_discarded_file_is_gone_at_any_time(tmp_path: Path) -> None:
    for finish in (False, True):
        file = NewFile(tmp_path / "x")
        file.create()
        file.write(b"1")
        if finish:
            file.finish()
        file.discard()
        assert list(tmp_path.iterdir()) == []
    file = NewFile(tmp_path / "y")
    file.create()
    file.path.unlink()
    file.discard()
    NewFile(tmp_path / "never").discard()


def test_existing_folders_stay_as_they_are(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750


def test_a_file_may_get_its_name_at_the_end(tmp_path: Path) -> None:
    file = NewFile(tmp_path / ".x")
    file.create()
    file.write(b"1")
    file.finish("y")
    assert [path.name for path in tmp_path.iterdir()] == ["y"]
    file.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_tidied_up_just_before_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[Path] = []

    def made(directory: Path) -> None:
        make_private(directory)
        if not swept:
            swept.append(directory)
            directory.rmdir()

    monkeypatch.setattr(newfile, "make_private", made)
    file = NewFile(tmp_path / "a" / "b")
    file.create()
    file.finish()
    assert file.path.exists()
