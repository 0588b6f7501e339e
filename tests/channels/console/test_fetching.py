"""Local files as they are read: regular ones, whole, and never left open."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from bridge.channel import ChannelError, FileKind, RemoteFile
from channels.console.fetching import LocalFile, opened


def remote(path: Path) -> RemoteFile:
    return RemoteFile(str(path), FileKind.FILE, path.name, "text/plain")


async def read(path: Path) -> bytes:
    async with opened(remote(path)) as incoming:
        return b"".join([chunk async for chunk in incoming.chunks])


def is_open(path: Path) -> bool:
    links = Path("/proc/self/fd")
    return any(str(path) == os.readlink(each) for each in links.iterdir() if os.path.lexists(each))


async def test_all_bytes_come_with_what_is_known_of_them(tmp_path: Path) -> None:
    (path := tmp_path / "图.txt").write_bytes(b"x" * 600_000)
    async with opened(remote(path)) as incoming:
        assert (incoming.name, incoming.mime, incoming.size) == ("图.txt", "text/plain", 600_000)
    assert await read(path) == b"x" * 600_000
    if os.path.isdir("/proc/self/fd"):
        assert not is_open(path)


async def test_links_folders_pipes_and_what_is_not_there_are_refused_without_their_path(
    tmp_path: Path,
) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", ".", "pipe", "gone"):
        with pytest.raises(ChannelError) as error:
            await read(tmp_path / name)
        assert str(tmp_path) not in str(error.value)


async def test_a_read_that_fails_is_a_channels_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "a").write_text("x")

    def broken(handle: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    async with opened(remote(path)) as incoming:
        monkeypatch.setattr(os, "read", broken)
        with pytest.raises(ChannelError, match="cannot be read: Input/output error"):
            async for _ in incoming.chunks:
                pass
        monkeypatch.undo()


async def test_what_is_closed_while_it_is_read_stays_open_until_that_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path := tmp_path / "a").write_text("abc")
    file, reading, closed = LocalFile(str(path)), threading.Event(), threading.Event()
    file.open()
    own = os.read

    def slow(handle: int, size: int) -> bytes:
        reading.set()
        closed.wait(10)
        return own(handle, size)

    monkeypatch.setattr(os, "read", slow)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(asyncio.to_thread(file.read))
        await asyncio.to_thread(reading.wait, 10)
        file.close()
        closed.set()
        assert await task == b"abc"
    monkeypatch.undo()
    with pytest.raises(ChannelError):
        file.read()
    file.close()
