"""An account's received files: their quota, what is in use, and what is found again."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bridge.channel.http import TooLargeError
from bridge.media import files
from bridge.media.disk import Disk
from bridge.media.files import Saved
from bridge.media.shelf import Shelf
from tests.media.pictures import PNG
from tests.media.test_disk import Filling

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def shelf_at(root: Path, quota_bytes: int = 1000, free: float = 50) -> Shelf:
    return Shelf(root, quota_bytes, Disk(root, 20, Filling(free)))


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def put(shelf: Shelf, size: int, chat: str = "chat", name: str = "a.bin", key: str = "") -> Saved:
    """Save a file, the ``n``-th so many seconds after 1970 that later ones are younger."""
    saved = await shelf.save(chunks(b"x" * size), shelf.root / chat, name, limit_bytes=10_000, key=key)
    age = len(list(shelf.root.rglob("*-*")))
    os.utime(saved.path, (age * 1000, age * 1000))
    return saved


def names(shelf: Shelf) -> list[str]:
    return sorted(path.name[13:] for path in shelf.root.rglob("*-*"))


async def test_a_file_has_a_name_of_its_own_and_a_safe_one(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path)
    for name in ("../a.png", "a.png"):
        saved = await shelf.save(chunks(PNG), tmp_path / "chat", name, limit_bytes=10_000)
        assert saved.path.parent == tmp_path / "chat"
        assert re.fullmatch(r"[0-9a-f]{12}-a\.png", saved.path.name)
    assert names(shelf) == ["a.png", "a.png"]


async def test_over_the_quota_the_oldest_go_from_every_chat_with_the_folders_they_leave_empty(
    tmp_path: Path,
) -> None:
    shelf = shelf_at(tmp_path)
    for number in range(4):
        saved = await put(shelf, 300, f"chat{number % 2}", f"{number}.bin")
        shelf.let_go([saved.path])
    assert names(shelf) == ["1.bin", "2.bin", "3.bin"]
    saved = await put(shelf, 900, "chat2", "big.bin")
    assert names(shelf) == ["big.bin"]
    assert [path.name for path in tmp_path.iterdir()] == ["chat2"]


async def test_what_is_in_use_stays_though_it_is_the_oldest_and_alone_over_the_quota(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path)
    used = await put(shelf, 800, name="used")
    shelf.let_go([(await put(shelf, 300, name="other")).path])
    assert names(shelf) == ["other", "used"]  # each while it was in use
    last = await put(shelf, 400, name="last")
    assert names(shelf) == ["last", "used"]
    shelf.let_go([used.path, last.path])
    await shelf.sweep(timedelta(days=36_500), NOW)
    assert names(shelf) == ["last"]


async def test_a_quota_counts_what_an_earlier_run_left(tmp_path: Path) -> None:
    await put(shelf_at(tmp_path), 900, name="before")
    await put(shelf_at(tmp_path), 200, name="after")
    assert names(shelf_at(tmp_path)) == ["after"]


async def test_nothing_is_counted_again_while_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, walks, found_in = shelf_at(tmp_path), list[Path](), files.found_in

    def counted(root: Path) -> list[files.Found]:
        walks.append(root)
        return found_in(root)

    monkeypatch.setattr(files, "found_in", counted)
    for _ in range(3):
        await put(shelf, 300)
    assert len(walks) == 1


async def test_a_file_that_cannot_be_read_any_more_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = shelf_at(tmp_path)
    saved = await put(shelf, 10, key="k")
    shelf.let_go([saved.path])

    def vanished(*_: object) -> Saved:
        raise FileNotFoundError

    with monkeypatch.context() as patched:
        patched.setattr(files, "judge", vanished)
        assert await shelf.find(saved.path.parent, "k") is None
    assert (await shelf.find(saved.path.parent, "k")) is not None


async def test_a_shelf_at_its_quota_is_not_counted_again_with_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, walks, found_in = shelf_at(tmp_path), list[Path](), files.found_in

    def counted(root: Path) -> list[files.Found]:
        walks.append(root)
        return found_in(root)

    monkeypatch.setattr(files, "found_in", counted)
    for number in range(200):
        shelf.let_go([(await put(shelf, 10, name=f"{number:03}")).path])
    assert len(walks) <= 12
    assert names(shelf)[-1] == "199"
    assert 900 <= 10 * len(names(shelf)) <= 1000


async def test_a_file_that_cannot_be_removed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = shelf_at(tmp_path)
    stuck, other = await put(shelf, 400, name="stuck"), await put(shelf, 400, name="other")
    shelf.let_go([stuck.path, other.path])
    remove = files.remove

    def refuse(path: Path) -> None:
        if path == stuck.path:
            raise PermissionError
        remove(path)

    monkeypatch.setattr(files, "remove", refuse)
    await shelf.remove([stuck.path])
    await put(shelf, 400, name="new")
    assert names(shelf) == ["new", "stuck"]


async def test_what_has_a_key_is_found_again_and_is_as_good_as_new(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path)
    assert await shelf.find(tmp_path / "chat", "key") is None
    saved = await put(shelf, 300, key="key")
    shelf.let_go([saved.path])
    shelf.let_go([(await put(shelf, 300, name="younger")).path])
    assert await shelf.find(tmp_path / "chat", "another") is None
    assert await shelf.find(tmp_path / "elsewhere", "key") is None
    assert await shelf.find(tmp_path / "chat", "key") == saved
    shelf.let_go([saved.path])
    await put(shelf, 500, name="last")
    assert names(shelf) == ["a.bin", "last"]


async def test_what_was_found_is_in_use_until_every_user_lets_go_of_it(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path)
    saved = await put(shelf, 600, key="key")
    await shelf.find(tmp_path / "chat", "key")
    os.utime(saved.path, (0, 0))
    shelf.let_go([saved.path])
    await put(shelf, 600, name="b")
    assert names(shelf) == ["a.bin", "b"]
    shelf.let_go([saved.path])
    await put(shelf, 600, name="c")
    assert names(shelf) == ["b", "c"]


async def test_a_link_in_the_place_of_a_file_is_not_found(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path)
    saved = await put(shelf, 10, key="key")
    saved.path.unlink()
    saved.path.symlink_to(tmp_path)
    assert await shelf.find(tmp_path / "chat", "key") is None


async def test_what_could_not_be_saved_is_in_use_by_nobody(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path)
    with pytest.raises(TooLargeError):
        await shelf.save(chunks(b"xyz"), tmp_path / "chat", "a", limit_bytes=2, key="key")
    assert names(shelf) == []
    saved = await put(shelf, 600, name="a", key="key")
    shelf.let_go([saved.path])
    await put(shelf, 600, name="b")
    assert names(shelf) == ["b"]


async def test_what_is_old_is_swept_but_for_what_is_in_use(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path)
    used, old = await put(shelf, 10, name="used"), await put(shelf, 10, name="old")
    shelf.let_go([old.path])
    await shelf.sweep(timedelta(days=7), NOW)
    assert names(shelf) == ["used"]
    shelf.let_go([used.path])
    await shelf.sweep(timedelta(days=7), NOW)
    assert list(tmp_path.iterdir()) == []


async def test_nothing_is_found_while_it_is_being_removed(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path)
    saved = await put(shelf, 600, key="key")
    shelf.let_go([saved.path])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(shelf.sweep(timedelta(days=7), NOW))
        await asyncio.sleep(0)
        found = tasks.create_task(shelf.find(tmp_path / "chat", "key"))
    assert found.result() is None


async def test_a_full_disk_is_told(tmp_path: Path) -> None:
    assert await shelf_at(tmp_path, free=10).is_full()
    assert not await shelf_at(tmp_path).is_full()
