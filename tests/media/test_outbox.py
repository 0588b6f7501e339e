"""Copies of the files that an agent wants to send."""

import os
import re
import stat
from pathlib import Path

import pytest

from bridge.media.newfile import NewFile
from bridge.media.outbox import Copied, CopyRefusal, NotCopied, copy, inside_outbox


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"hello")
    return folder


@pytest.fixture
def outbox(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "outbox"


def test_a_copy_is_new_and_private(work: Path, outbox: Path) -> None:
    copied = copy(work / "a.txt", outbox, "报告.txt")
    assert isinstance(copied, Copied)
    assert re.fullmatch(r"[0-9a-f]{12}-报告\.txt", copied.path.name)
    assert (copied.name, copied.size, copied.path.read_bytes()) == ("报告.txt", 5, b"hello")
    assert stat.S_IMODE(copied.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(outbox.stat().st_mode) == 0o700
    assert inside_outbox(copied.path, outbox)


def test_without_a_name_it_is_called_as_the_file(work: Path, outbox: Path) -> None:
    copied = copy(work / "a.txt", outbox)
    assert isinstance(copied, Copied)
    assert copied.name == "a.txt"


def refused(source: Path, outbox: Path, **options: int) -> CopyRefusal:
    outcome = copy(source, outbox, **options)  # type: ignore[arg-type] # only max_bytes is passed
    assert isinstance(outcome, NotCopied)
    assert not outbox.exists() or list(outbox.iterdir()) == []
    return outcome.why


def test_links_are_not_followed(work: Path, outbox: Path) -> None:
    (work / "link").symlink_to(work / "a.txt")
    (work / "folder").symlink_to(work)
    assert refused(work / "link", outbox) is CopyRefusal.UNREADABLE
    assert refused(work / "folder" / "a.txt", outbox) is CopyRefusal.UNREADABLE


def test_a_path_must_be_absolute_and_resolved(work: Path, outbox: Path) -> None:
    assert refused(Path("a.txt"), outbox) is CopyRefusal.UNREADABLE
    assert refused(work / ".." / "work" / "a.txt", outbox) is CopyRefusal.UNREADABLE
    assert refused(work / "gone", outbox) is CopyRefusal.UNREADABLE
    assert refused(work / "nul\0", outbox) is CopyRefusal.UNREADABLE
    assert refused(Path("/"), outbox) is CopyRefusal.UNREADABLE


def test_only_regular_files_with_one_name_are_copied(work: Path, outbox: Path) -> None:
    os.mkfifo(work / "pipe")
    assert refused(work / "pipe", outbox) is CopyRefusal.NOT_REGULAR
    assert refused(work, outbox) is CopyRefusal.NOT_REGULAR
    os.link(work / "a.txt", work / "b.txt")
    assert refused(work / "a.txt", outbox) is CopyRefusal.LINKED


def test_neither_empty_nor_large_files_are_copied(work: Path, outbox: Path) -> None:
    (work / "empty").write_bytes(b"")
    assert refused(work / "empty", outbox) is CopyRefusal.EMPTY
    assert refused(work / "a.txt", outbox, max_bytes=4) is CopyRefusal.TOO_LARGE
    told = copy(work / "a.txt", outbox, max_bytes=4)
    assert isinstance(told, NotCopied)
    assert told.text == "it is too large: 5 bytes, of at most 4"
    assert isinstance(copy(work / "a.txt", outbox, max_bytes=5), Copied)


@pytest.mark.parametrize("content", [b"hello, and more", b"hell"])
def test_a_file_that_changes_while_it_is_read_is_not_copied(
    content: bytes, work: Path, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Changing(NewFile):
        def create(self) -> None:
            super().create()
            (work / "a.txt").write_bytes(content)

    monkeypatch.setattr("bridge.media.outbox.NewFile", Changing)
    assert refused(work / "a.txt", outbox) is CopyRefusal.CHANGED


def test_an_outbox_that_takes_nothing_is_an_error(work: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        copy(work / "a.txt", tmp_path / "file")


def test_only_regular_files_inside_are_inside(work: Path, outbox: Path) -> None:
    outbox.mkdir()
    (outbox / "x").write_bytes(b"1")
    (outbox / "link").symlink_to(outbox / "x")
    (outbox / "folder").symlink_to(work)
    assert inside_outbox(outbox / "x", outbox)
    assert inside_outbox(outbox / ".." / "outbox" / "x", outbox)
    for path in ("link", "folder", "folder/a.txt", "../work/a.txt", "gone", "nul\0"):
        assert not inside_outbox(outbox / path, outbox)
