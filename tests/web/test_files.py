"""Files are streamed as downloads, under any name, and never as something a browser would run."""

from pathlib import Path

import pytest

from bridge.channel.contract import FileAnswer
from bridge.web.files import CHUNK_BYTES
from tests.web.raw import FakeAccount, client, get, post, served

PATH = "/channels/pigeon/main/files/x"


def file_of(folder: Path, data: bytes, size: int | None = None, mime: str = "image/png") -> FileAnswer:
    path = folder / "0123456789ab-copy"
    path.write_bytes(data)
    return FileAnswer(path, "图片.png", mime, len(data) if size is None else size)


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 7])
async def test_a_file_arrives_whole(tmp_path: Path, size: int) -> None:
    data = bytes(n % 251 for n in range(size))
    async with served(FakeAccount(file_of(tmp_path, data))) as listener, client(listener) as caller:
        await caller.say(get(PATH))
        status, headers, body = await caller.answer()
        assert (status, body) == (200, data)
        assert headers["content-type"] == "image/png"
        assert headers["content-disposition"].startswith("attachment;")
        assert headers["x-content-type-options"] == "nosniff"
        await caller.say(get("/healthz"))  # the connection goes on
        assert (await caller.answer())[0] == 200


async def test_asking_for_the_head_brings_no_bytes(tmp_path: Path) -> None:
    async with served(FakeAccount(file_of(tmp_path, b"data"))) as listener, client(listener) as caller:
        await caller.say(get(PATH).replace(b"GET", b"HEAD", 1))
        head = await caller.reader.readuntil(b"\r\n\r\n")
        assert b"Content-Length: 4" in head
        await caller.say(get("/healthz"))
        assert (await caller.answer())[0] == 200


def asking_for(wanted: str, more: str = "") -> bytes:
    return get(PATH).replace(b"\r\n", f"\r\nRange: {wanted}\r\n{more}".encode(), 1)


@pytest.mark.parametrize(
    ("wanted", "told", "data"),
    [
        ("bytes=0-3", "bytes 0-3/10", b"0123"),
        ("bytes=4-", "bytes 4-9/10", b"456789"),
        ("bytes=-3", "bytes 7-9/10", b"789"),
        ("bytes=8-100", "bytes 8-9/10", b"89"),
        ("bytes=9-9", "bytes 9-9/10", b"9"),
    ],
)
async def test_a_range_brings_its_bytes_alone(tmp_path: Path, wanted: str, told: str, data: bytes) -> None:
    async with served(FakeAccount(file_of(tmp_path, b"0123456789"))) as listener:
        async with client(listener) as caller:
            await caller.say(asking_for(wanted))
            status, headers, body = await caller.answer()
            assert (status, headers["content-range"], body) == (206, told, data)
            await caller.say(get("/healthz"))
            assert (await caller.answer())[0] == 200


@pytest.mark.parametrize(
    ("wanted", "more"),
    [
        ("bytes=0-", ""),
        ("bytes=-100", ""),
        ("bytes=0-1,4-5", ""),
        ("bytes=3-1", ""),
        ("lines=1-2", ""),
        ("bytes=x", ""),
        ("bytes=0-3", 'If-Range: "v1"\r\n'),
    ],
)
async def test_any_other_range_brings_everything(tmp_path: Path, wanted: str, more: str) -> None:
    async with served(FakeAccount(file_of(tmp_path, b"0123456789"))) as listener:
        async with client(listener) as caller:
            await caller.say(asking_for(wanted, more))
            status, headers, body = await caller.answer()
    assert (status, body, headers["accept-ranges"]) == (200, b"0123456789", "bytes")
    assert "content-range" not in headers


async def test_a_range_behind_the_end_is_told_where_that_is(tmp_path: Path) -> None:
    async with served(FakeAccount(file_of(tmp_path, b"0123456789"))) as listener:
        async with client(listener) as caller:
            await caller.say(asking_for("bytes=10-"))
            status, headers, body = await caller.answer()
    assert (status, headers["content-range"], body) == (416, "bytes */10", b"")


async def test_a_range_of_an_empty_file_is_all_of_it(tmp_path: Path) -> None:
    async with served(FakeAccount(file_of(tmp_path, b""))) as listener:
        async with client(listener) as caller:
            await caller.say(asking_for("bytes=0-"))
            assert (await caller.answer())[0] == 200


async def test_a_range_of_the_head_changes_nothing(tmp_path: Path) -> None:
    async with served(FakeAccount(file_of(tmp_path, b"data"))) as listener, client(listener) as caller:
        await caller.say(asking_for("bytes=0-0").replace(b"GET", b"HEAD", 1))
        assert b"Content-Length: 4" in await caller.reader.readuntil(b"\r\n\r\n")


async def test_a_file_that_is_gone_is_not_found(tmp_path: Path) -> None:
    gone = FileAnswer(tmp_path / "none", "x", "image/png", 3)
    async with served(FakeAccount(gone)) as listener, client(listener) as caller:
        await caller.say(get(PATH))
        assert (await caller.answer())[0] == 404


async def test_a_file_that_is_too_short_ends_the_connection_so_that_nobody_takes_it_for_whole(
    tmp_path: Path,
) -> None:
    async with served(FakeAccount(file_of(tmp_path, b"abc", size=10))) as listener:
        async with client(listener) as caller:
            await caller.say(get(PATH))
            assert (await caller.rest()).endswith(b"\r\n\r\nabc")


async def test_only_as_much_is_sent_as_was_said(tmp_path: Path) -> None:
    async with served(FakeAccount(file_of(tmp_path, b"abcdef", size=3))) as listener:
        async with client(listener) as caller:
            await caller.say(get(PATH))
            assert (await caller.answer())[2] == b"abc"


@pytest.mark.parametrize("mime", ["", "nonsense", "text/html\r\nX-Evil: 1", "a/b; charset=x"])
async def test_a_type_that_is_none_becomes_plain_bytes(tmp_path: Path, mime: str) -> None:
    async with served(FakeAccount(file_of(tmp_path, b"x", mime=mime))) as listener:
        async with client(listener) as caller:
            await caller.say(post(path=PATH))
            _, headers, _ = await caller.answer()
    assert headers["content-type"] == "application/octet-stream"
    assert "x-evil" not in headers
