"""Checks of files: those a message brings arrive whole or not at all, those of a reply under their names."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel.contract import (
    Answer,
    Delivered,
    FetchesFiles,
    FileKind,
    FileWanted,
    Inbound,
    OutboundFile,
    Refused,
    RemoteFile,
    Request,
    SendsFiles,
    ServesFiles,
    Withdrawn,
)
from bridge.channel.testing.checks.pushed import bounded
from bridge.channel.testing.checks.sending import cancel_everywhere, client_id, shown, troubled
from bridge.channel.testing.checks.stage import ADDRESS, Stage, scenario
from bridge.channel.testing.kit import FilesKit, KitFile, KitMessage, PushedKit, Trouble
from bridge.errors import ChannelError

SEED = b"not compressible: " + bytes(range(256))
NAMES = (
    "report.txt",
    "测试中文.pdf",
    "报告—详情（2026）.md",
    "😀 emoji.txt",
    'quote " and \\ and \r\n line.txt',
)
ENOUGH = 10_000_000


def fetcher(stage: Stage) -> tuple[FetchesFiles, FilesKit]:
    if not isinstance(stage.channel, FetchesFiles) or not isinstance(stage.kit, FilesKit):
        pytest.skip("it fetches no files")
    return stage.channel, stage.kit


def file_sender(stage: Stage) -> SendsFiles:
    if not isinstance(stage.channel, SendsFiles):
        pytest.skip("it sends no files")
    return stage.channel


async def fetched(channel: FetchesFiles, file: RemoteFile, max_bytes: int = ENOUGH) -> bytes:
    """All of it, or as much as the core would take before it hangs up."""
    data = b""
    async with channel.fetch(file, max_bytes) as incoming:
        async for chunk in incoming.chunks:
            data += chunk
            if len(data) > max_bytes:
                break
    return data


@scenario
async def test_a_file_is_fetched_byte_by_byte_also_after_a_restart(stage: Stage) -> None:
    channel, kit = fetcher(stage)
    for name in NAMES:
        for data in (SEED, SEED * 1200):
            remote = kit.remote(KitFile(name, "application/octet-stream", data))
            stage.keeps_quiet(f"{remote}", "a file's reference")
            assert await fetched(channel, remote) == data, "other bytes came"
            assert await fetched(cast(FetchesFiles, stage.fresh()), replace(remote)) == data


@scenario
async def test_hanging_up_on_a_file_leaves_nothing_behind(stage: Stage) -> None:
    channel, kit = fetcher(stage)
    large = kit.remote(KitFile("large.bin", "application/octet-stream", SEED * 10_000))
    for _ in range(20):  # more often than there are connections
        try:
            got = await fetched(channel, large, max_bytes=1000)
        except ChannelError:
            continue  # it saw by itself that the file is too large
        assert len(got) > 1000, "a file was cut without a word"
    small = kit.remote(KitFile("small.bin", "application/octet-stream", SEED))
    assert await fetched(channel, small) == SEED


@scenario
async def test_a_fetch_may_be_cancelled_anywhere(stage: Stage) -> None:
    channel, kit = fetcher(stage)
    remote = kit.remote(KitFile("a.bin", "application/octet-stream", SEED))
    await cancel_everywhere(lambda: fetched(channel, remote))
    assert await fetched(channel, remote) == SEED


@scenario
async def test_what_a_message_brings_can_be_fetched(stage: Stage) -> None:
    channel, _ = fetcher(stage)
    if not isinstance(stage.kit, PushedKit):
        pytest.skip("it is not pushed to")
    file = KitFile("测试 😀.txt", "text/plain", SEED)
    found = await stage.greeting(looking(stage, file))
    if not found.files:
        pytest.skip("its kit brings no files in messages")
    assert len(found.files) == 1, f"one file became {len(found.files)}"
    assert found.files[0].name in (file.name, ""), f"{file.name} became {found.files[0].name}"
    assert await fetched(channel, found.files[0]) == SEED


@scenario
async def test_a_sent_file_arrives_byte_by_byte_under_a_readable_name(stage: Stage) -> None:
    channel, to = file_sender(stage), await stage.greeting()
    for number, name in enumerate(NAMES, 1):
        with copy_of(SEED) as path:
            assert isinstance(await channel.send_file(part(to, path, name, number)), Delivered)
            (sent,) = shown(stage, number)
            file = sent.file or by_address(stage, sent.text, path)
        assert file is not None, "no file arrived"
        assert file.data == SEED, "other bytes arrived"
        readable(name, file.name)


@scenario
async def test_a_refused_file_is_final(stage: Stage) -> None:
    channel, to = file_sender(stage), await stage.greeting()
    troubled(stage, Trouble.REFUSE)
    with copy_of(SEED) as path:
        outcome = await channel.send_file(part(to, path))
    assert isinstance(outcome, Refused | Withdrawn), f"a refusal came back as {outcome!r}"
    assert not stage.kit.sent()


@scenario
async def test_a_file_that_is_gone_is_an_outcome_without_its_path(stage: Stage) -> None:
    channel, to = file_sender(stage), await stage.greeting()
    with copy_of(SEED) as path:
        gone = part(to, path)
    try:
        outcome = await channel.send_file(gone)
    except ChannelError as error:
        text = str(error)
    else:
        assert isinstance(outcome, Refused), f"a file that is gone came back as {outcome!r}"
        text = outcome.reason
    assert str(path.parent) not in text, "a path of ours is shown"
    assert not stage.kit.sent()


@scenario
async def test_sending_a_file_may_be_cancelled_anywhere(stage: Stage) -> None:
    channel, to = file_sender(stage), await stage.greeting()
    before = open_files()
    with copy_of(SEED) as path:
        await cancel_everywhere(lambda: channel.send_file(part(to, path)))
    assert open_files() == before, "the copy was left open"


@scenario
async def test_an_address_that_was_never_signed_gives_no_file(stage: Stage) -> None:
    if not isinstance(stage.channel, ServesFiles) or not isinstance(stage.kit, PushedKit):
        pytest.skip("it serves no files")
    channel = stage.channel
    known = stage.kit.push(looking(stage))

    @bounded
    @given(st.text(max_size=80) | st.sampled_from(["..", "../../etc/passwd", "x.9999999999.y", "%2e%2e"]))
    def each_path(path: str) -> None:
        answer = channel.file(
            Request("GET", f"/files/{path}", {}, known.headers, b"", received_at=known.received_at)
        )
        assert isinstance(answer, Answer), "a file was given out for an address that nobody signed"
        assert 400 <= answer.status < 500

    each_path()


def part(to: Inbound, path: Path, name: str = "a.txt", number: int = 1) -> OutboundFile:
    return OutboundFile(
        to.to, to.reply_to, client_id(number), path, name, "text/plain", FileKind.FILE, len(SEED), "reply-1"
    )


def by_address(stage: Stage, text: str, copy: Path) -> KitFile | None:
    """The file that ``text`` gives an address of, as ``name (size)`` and the address in a line of its own.

    The address must be the account's, and lead to the copy that the core keeps.
    """
    address = re.search(rf"^{re.escape(ADDRESS)}(/files/\S+)\Z", text, re.MULTILINE)
    if address is None or not isinstance(stage.channel, ServesFiles):
        return None
    headers = CIMultiDictProxy(CIMultiDict[str]())
    asked = Request("GET", address[1], {}, headers, b"", stage.http.clock.now())
    assert stage.channel.file(asked) == FileWanted(copy.name), "the address leads to another file"
    return KitFile(text[: address.start()].rpartition(" (")[0], "", copy.read_bytes())


def readable(name: str, arrived: str) -> None:
    """Only characters that could break out of a header or a folder may have been replaced."""
    assert "%" not in arrived, f"the name was percent-encoded: {arrived}"
    assert not any(character in arrived for character in "\r\n\0"), "a control got through in a name"
    if not any(character in name for character in '"\\\r\n'):
        assert arrived == name, f"{name} arrived as {arrived}"


@contextmanager
def copy_of(data: bytes) -> Iterator[Path]:
    """A private copy of ``data`` while it is entered, as the core makes one."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "0123456789ab-copy"
        path.write_bytes(data)
        yield path


def open_files() -> set[str]:
    """The regular files that this process holds open, where the system tells."""
    return set(_open_files())


def _open_files() -> Iterator[str]:
    listing = Path("/proc/self/fd")
    for each in listing.iterdir() if listing.is_dir() else ():
        try:
            target = os.readlink(each)
        except OSError:
            continue
        if target.startswith("/") and "-copy" in target:
            yield target


def looking(stage: Stage, *files: KitFile) -> KitMessage:
    return KitMessage("look", sender=stage.kit.person(0), chat=stage.kit.chat(0), files=files)
