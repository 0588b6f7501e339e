import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from bridge.channel import FileWanted, Place, Refused, UnreachableError
from bridge.channel.addresses import SignedFiles
from bridge.channel.testing.clock import START, FakeClock
from bridge.channel.testing.fakes.wechat_mp import APP_ID, FakeWechatMp, Fault, Refusal
from channels.wechat_mp.api import Api
from channels.wechat_mp.content import Content, Contents, text
from tests.channels.wechat_mp.support import PLACE, client, outfile, part, request

PNG, MP3, MP4 = b"\x89PNG\r\n\x1a\n", b"ID3..", b"....ftypisom"
FILES = SignedFiles([b"k" * 32])
MIB = 1024 * 1024


@asynccontextmanager
async def stage(place: Place = PLACE) -> AsyncIterator[tuple[FakeWechatMp, Contents]]:
    clock = FakeClock()
    async with FakeWechatMp(clock=clock) as fake, client(clock) as http:
        yield fake, Contents(Api(http, fake.base, APP_ID, SecretStr(fake.app_secret)), place, FILES)


def file_of(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


async def test_a_text_is_a_text_without_links_tags_and_controls() -> None:
    async with stage() as (fake, contents):
        assert await contents.of(part("你好 <a href='x'>\x07")) == text("你好 <a href='x'>")
        assert fake.requests == []
    assert text("<a b>").fields == {"content": "<\u200ba b>"}


@pytest.mark.parametrize("blank", ["", " \n\t"])
async def test_an_empty_text_is_refused_since_the_chat_would_show_a_failure(blank: str) -> None:
    async with stage() as (fake, contents):
        assert await contents.of(part(blank)) == Refused("WeChat shows no empty texts")
        assert fake.requests == []


@pytest.mark.parametrize(
    ("mime", "data", "kind", "name"),
    [
        ("image/png", PNG, "image", "image.png"),
        ("image/jpeg", b"\xff\xd8\xff", "image", "image.jpg"),
        ("IMAGE/GIF", b"GIF89a", "image", "image.gif"),
        ("audio/amr", b"#!AMR\n", "voice", "voice.amr"),
        ("audio/mpeg", MP3, "voice", "voice.mp3"),
        ("video/mp4", MP4, "video", "video.mp4"),
    ],
)
async def test_what_the_platform_shows_is_put_there(
    tmp_path: Path, mime: str, data: bytes, kind: str, name: str
) -> None:
    path = file_of(tmp_path, "图 <a x>.bin", data)
    async with stage() as (fake, contents):
        made = await contents.of(outfile(path, mime=mime))
        assert isinstance(made, Content)
        media = fake.world.media[made.fields["media_id"]]
        assert (made.kind, made.keep_seconds) == (kind, 0.0)
        assert (media.kind, media.name, media.data) == (kind, name, data)
        assert made.fields.get("title") == ("图 <\u200ba x>" if kind == "video" else None)


async def links_to(contents: Contents, path: Path, **fields: object) -> str:
    """The text of the link, which leads to the copy for a day and more."""
    made = await contents.of(outfile(path, created_at=START, **fields))
    assert isinstance(made, Content), made
    said = made.fields["content"]
    found = re.search(r"\nhttps://bridge\.example/channels/wechat_mp/test(/files/\S+)\Z", said)
    assert found, said
    assert FILES.wanted(request(method="GET", path=found[1])) == FileWanted(path.name)
    assert (made.kind, made.keep_seconds) == ("text", 48 * 3600.0)
    return said[: found.start()]


@pytest.mark.parametrize(
    ("mime", "size", "shown"),
    [
        ("text/plain", 7, "7 bytes"),
        ("text/plain", 0, "0 bytes"),
        ("image/webp", 2048, "2.0 KiB"),
        ("image/png", 10 * MIB + 1, "10.0 MiB"),
        ("audio/mpeg", 2 * MIB + 1, "2.0 MiB"),
        ("video/mp4", 10 * MIB + 1, "10.0 MiB"),
        ("image/png", 0, "0 bytes"),
    ],
)
async def test_other_and_larger_files_are_links_with_name_and_size(
    tmp_path: Path, mime: str, size: int, shown: str
) -> None:
    path = file_of(tmp_path, "0123-copy", b"x")
    async with stage() as (fake, contents):
        said = await links_to(contents, path, name="a/报告 <a>.pdf", mime=mime, size=size)
        assert said == f"报告 <\u200ba>.pdf ({shown})"
        assert fake.requests == []


@pytest.mark.parametrize("code", [40005, 40009, 45001, 48001, 99999])
async def test_a_picture_that_the_platform_refuses_is_a_link(tmp_path: Path, code: int) -> None:
    async with stage() as (fake, contents):
        fake.next(Refusal(code), at="upload")
        said = await links_to(contents, file_of(tmp_path, "a.png", PNG), mime="image/png")
        assert said == "a.png (8 bytes)"


async def test_without_a_public_address_it_is_refused_and_the_operator_told_what_to_set(
    tmp_path: Path,
) -> None:
    async with stage(Place("wechat_mp:test")) as (_, contents):
        made = await contents.of(outfile(file_of(tmp_path, "a.pdf", b"x")))
    assert made == Refused("WeChat does not take this file, and a link to it needs [web] public_url")


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.DROP_AFTER, Fault.GARBAGE, Refusal(0), Refusal(45009)])
async def test_an_upload_without_an_answer_is_for_later(tmp_path: Path, fault: Fault | Refusal) -> None:
    async with stage() as (fake, contents):
        fake.next(fault, at="upload")
        with pytest.raises(UnreachableError):
            await contents.of(outfile(file_of(tmp_path, "a.png", PNG), mime="image/png"))


async def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    async with stage() as (_, contents):
        assert await contents.of(outfile(tmp_path / "gone")) == Refused("the file is gone")


async def test_a_long_name_leaves_room_for_the_address(tmp_path: Path) -> None:
    async with stage() as (_, contents):
        said = await links_to(contents, file_of(tmp_path, "c" * 60, b"x"), name="名" * 2000)
        assert len(said.encode()) < 400
