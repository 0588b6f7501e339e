"""Received files on disk."""

import asyncio
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bridge.channel.contract import FileKind
from bridge.channel.http import TooLargeError
from bridge.errors import UnreachableError
from bridge.media.files import found_in, judge, remove, save, sweep
from bridge.media.newfile import NewFile
from bridge.media.sniff import UNKNOWN
from tests.media.pictures import HEIC, HTML, PNG, heic, picture, png_header

NOW = datetime(2026, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)


async def chunks(*data: bytes) -> AsyncIterator[bytes]:
    for each in data:
        yield each


def all_under(root: Path) -> list[str]:
    return sorted(os.fspath(path.relative_to(root)) for path in root.rglob("*"))


async def test_a_stream_becomes_a_private_file_with_its_figures(tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.png"
    saved = await save(chunks(PNG[:10], b"", PNG[10:]), path, limit_bytes=len(PNG))
    assert (saved.path, path.read_bytes()) == (path, PNG)
    assert (saved.size, saved.mime, saved.kind, saved.pixels) == (
        len(PNG), "image/png", FileKind.IMAGE, (3, 2),
    )  # fmt: skip
    assert stat.S_IMODE(saved.path.stat().st_mode) == 0o600
    assert all_under(tmp_path / "in") == ["a.png"]


async def test_a_large_stream_is_written_in_pieces(tmp_path: Path) -> None:
    piece = b"x" * 200_000
    saved = await save(chunks(*[piece] * 5), tmp_path / "a.txt", limit_bytes=1_000_000)
    assert saved.size == saved.path.stat().st_size == 1_000_000


async def test_a_file_has_its_name_only_once_it_is_whole(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    async def watched() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        seen.append(all_under(tmp_path))
        yield b"y"

    await save(watched(), tmp_path / "a", limit_bytes=1_000_000)
    ((hidden,),) = seen
    assert hidden.startswith(".")
    assert all_under(tmp_path) == ["a"]


async def test_a_name_that_cannot_be_given_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError):
        await save(chunks(b"x"), tmp_path / "a", limit_bytes=10)
    assert all_under(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("data", "name", "declared", "mime"),
    [
        (b"", "a.png", "image/png", UNKNOWN),
        (b"", "a.png", "", UNKNOWN),
        (b"", "a.pdf", "", "application/pdf"),
        (b"", "a.txt", "text/plain", "text/plain"),
        (b"x", "a.png", "image/png", UNKNOWN),
        (HTML, "a.png", "image/png", "text/html"),
    ],
)
async def test_case_83_a_picture_that_is_none_is_no_image(
    data: bytes, name: str, declared: str, mime: str, tmp_path: Path
) -> None:
    saved = await save(chunks(data), tmp_path / name, limit_bytes=100, declared=declared)
    assert (saved.mime, saved.kind, saved.pixels, saved.size) == (mime, FileKind.FILE, None, len(data))


async def test_case_84_a_picture_of_a_type_that_is_not_read_is_a_file(tmp_path: Path) -> None:
    saved = await save(chunks(picture("TIFF")), tmp_path / "a.jpg", limit_bytes=10_000)
    assert (saved.mime, saved.kind, saved.pixels) == ("image/tiff", FileKind.FILE, None)


async def test_case_84_a_phone_s_photo_is_a_picture_where_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = await save(chunks(heic((30, 20))), tmp_path / "a.jpg", limit_bytes=10_000)
    assert (saved.mime, saved.kind, saved.pixels) == ("image/heic", FileKind.IMAGE, (30, 20))
    broken = await save(chunks(HEIC), tmp_path / "b.heic", limit_bytes=10_000)
    assert (broken.mime, broken.kind, broken.pixels) == (UNKNOWN, FileKind.FILE, None)
    large = judge(saved.path, max_pixels=599)
    assert (large.mime, large.kind) == (UNKNOWN, FileKind.FILE)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)  # as if it were not installed
    for path in (saved.path, broken.path):
        assert (judge(path).mime, judge(path).kind) == ("image/heic", FileKind.FILE)


async def test_case_84_a_bomb_and_a_broken_picture_are_mere_bytes(tmp_path: Path) -> None:
    bomb = await save(chunks(png_header(30_000, 30_000)), tmp_path / "a.png", limit_bytes=1000)
    assert (bomb.mime, bomb.kind, bomb.pixels) == (UNKNOWN, FileKind.FILE, (30_000, 30_000))
    broken = await save(chunks(b"GIF89a\0\0\0\0\0\0\0"), tmp_path / "a.gif", limit_bytes=100)
    assert (broken.mime, broken.pixels) == (UNKNOWN, None)
    small = await save(chunks(PNG), tmp_path / "b.png", limit_bytes=10_000, max_pixels=5)
    assert small.mime == UNKNOWN


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65536


async def test_a_stream_past_the_limit_is_aborted_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TooLargeError):
        await save(endless(), tmp_path / "a", limit_bytes=1_000_000)
    assert all_under(tmp_path) == []


async def test_a_broken_stream_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        raise UnreachableError("gone")

    with pytest.raises(UnreachableError):
        await save(broken(), tmp_path / "a", limit_bytes=1_000_000)
    assert all_under(tmp_path) == []


async def test_a_disk_that_refuses_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        await save(chunks(b"x"), tmp_path / "file" / "a", limit_bytes=10)


async def test_cancelling_while_waiting_for_bytes_leaves_nothing(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        started.set()
        await asyncio.Event().wait()

    async def cancel(task: "asyncio.Task[object]") -> None:
        await started.wait()
        task.cancel()

    async with asyncio.TaskGroup() as tasks:
        saving = tasks.create_task(save(stalled(), tmp_path / "a", limit_bytes=1_000_000))
        tasks.create_task(cancel(saving))
    assert saving.cancelled()
    assert all_under(tmp_path) == []


@pytest.mark.parametrize("step", ["create", "write", "finish"])
async def test_cancelling_while_a_thread_works_waits_for_it_and_leaves_nothing(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, entered, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    class Slow(NewFile):
        def slowly(self) -> None:
            loop.call_soon_threadsafe(entered.set)
            go_on.wait(5)

        def create(self) -> None:
            if step == "create":
                self.slowly()
            super().create()

        def write(self, data: bytes | memoryview) -> None:
            if step == "write":
                self.slowly()
            super().write(data)

        def finish(self, name: str = "") -> None:
            if step == "finish":
                self.slowly()
            super().finish(name)

    async def cancel(task: "asyncio.Task[object]") -> None:
        await entered.wait()
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()

    monkeypatch.setattr("bridge.media.files.NewFile", Slow)
    async with asyncio.TaskGroup() as tasks:
        saving = tasks.create_task(save(chunks(PNG), tmp_path / "a", limit_bytes=10_000))
        tasks.create_task(cancel(saving))
    assert saving.cancelled()
    assert all_under(tmp_path) == []


def aged(path: Path, days: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12345")
    stamp = (NOW - days * DAY).timestamp()
    os.utime(path, (stamp, stamp))
    return path


def test_old_files_go_with_the_folders_they_leave_empty(tmp_path: Path) -> None:
    aged(tmp_path / "a" / "b" / "old", 8)
    aged(tmp_path / "c" / "old", 8)
    aged(tmp_path / "c" / "new", 6)
    (tmp_path / "empty").mkdir()
    assert sweep(tmp_path, 7 * DAY, NOW) == 2
    assert all_under(tmp_path) == ["c", "c/new", "empty"]


def test_what_is_spared_stays_however_old(tmp_path: Path) -> None:
    used = aged(tmp_path / "a" / "used", 8)
    aged(tmp_path / "a" / "old", 8)
    assert sweep(tmp_path, 7 * DAY, NOW, {used}) == 1
    assert all_under(tmp_path) == ["a", "a/used"]


def test_what_a_crash_left_unfinished_goes_within_hours(tmp_path: Path) -> None:
    for name, days in ((".broken-off", 1 / 12), (".being-written", 1 / 50), ("whole", 1)):
        aged(tmp_path / "a" / name, days)
    assert sweep(tmp_path, 7 * DAY, NOW) == 1
    assert all_under(tmp_path) == ["a", "a/.being-written", "a/whole"]


def test_what_is_there_is_told_oldest_first_without_links_and_what_is_being_written(tmp_path: Path) -> None:
    new, old = aged(tmp_path / "a" / "new", 1), aged(tmp_path / "b" / "old", 8)
    aged(tmp_path / "a" / ".being-written", 9)
    (tmp_path / "link").symlink_to(new)
    assert [(one.path, one.size) for one in found_in(tmp_path)] == [(old, 5), (new, 5)]
    assert found_in(tmp_path / "gone") == []


def test_a_file_that_goes_while_all_are_looked_at_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aged(tmp_path / "a", 1)
    monkeypatch.setattr(os, "walk", lambda root: [(root, [], ["a", "gone"])])
    assert [one.path.name for one in found_in(tmp_path)] == ["a"]


def test_the_root_stays_and_a_missing_one_is_fine(tmp_path: Path) -> None:
    aged(tmp_path / "root" / "old", 8)
    assert sweep(tmp_path / "root", 7 * DAY, NOW) == 1
    assert (tmp_path / "root").is_dir()
    assert sweep(tmp_path / "gone", 7 * DAY, NOW) == 0


def test_links_are_removed_and_never_followed(tmp_path: Path) -> None:
    outside = aged(tmp_path / "outside" / "old", 8)
    inside = tmp_path / "root" / "in"
    inside.mkdir(parents=True)
    (inside / "folder").symlink_to(outside.parent)
    (inside / "file").symlink_to(outside)
    os.utime(inside / "file", (0, 0), follow_symlinks=False)
    assert sweep(tmp_path / "root", 7 * DAY, NOW) == 1
    assert outside.exists()
    assert list((tmp_path / "root").rglob("*")) == [inside, inside / "folder"]


def test_what_cannot_be_removed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = aged(tmp_path / "a" / "old", 8)

    def refuse(_path: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    assert sweep(tmp_path, 7 * DAY, NOW) == 0
    assert old.exists()


def test_removing_a_file_twice_is_fine(tmp_path: Path) -> None:
    path = aged(tmp_path / "x", 0)
    remove(path)
    remove(path)
    assert not path.exists()
