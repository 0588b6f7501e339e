import struct
from pathlib import Path
from typing import Any

import pytest

from bridge.channel import (
    ChannelError,
    CredentialsError,
    Delivered,
    FileKind,
    Refused,
    UnreachableError,
    Withdrawn,
)
from bridge.channel.testing.fakes.feishu import FakeFeishu, Fault, Refusal
from channels.feishu.send_file import MAX_FILE_BYTES, MAX_IMAGE_BYTES, Way, ways
from tests.channels.feishu.platform import UUID, adapter, outfile


def png(width: int = 8, height: int = 8) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", width, height) + bytes(16)


def page(data: bytes, samples: int = 0) -> bytes:
    """One page of an Ogg file, without the checksum that nobody here reads."""
    return b"OggS" + struct.pack("<BBqIIIB", 0, 0, samples, 1, 0, 0, 1) + bytes([len(data)]) + data


def opus(ms: int) -> bytes:
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, 312, 16_000, 0, 0)
    return page(head) + page(b"OpusTags") + page(b"sound", ms * 48 + 312)


def made(folder: Path, name: str, data: bytes = b"content", **fields: Any) -> Any:
    path = folder / "copy"
    path.write_bytes(data)
    return outfile(path, **({"name": name} | fields))


PICTURE: dict[str, Any] = {"kind": FileKind.IMAGE, "mime": "image/png"}
VIDEO: dict[str, Any] = {"kind": FileKind.VIDEO, "mime": "video/mp4"}
VOICE: dict[str, Any] = {"kind": FileKind.AUDIO, "mime": "audio/ogg"}


@pytest.mark.parametrize(
    ("name", "data", "fields", "kind", "upload"),
    [
        ("a.png", png(), PICTURE, "image", "image"),
        ("a.mp4", b"x", VIDEO, "media", "mp4"),
        ("a.opus", opus(2500), VOICE, "audio", "opus"),
        ("a.ogg", opus(2500), {"mime": "audio/ogg"}, "audio", "opus"),
        ("a.oga", opus(2500), {}, "audio", "opus"),
        ("a.ogg", page(b"\x01vorbis"), VOICE, "file", "stream"),
        ("a.opus", b"x", VOICE, "file", "stream"),
        ("a.mp3", b"ID3", {"kind": FileKind.AUDIO, "mime": "audio/mpeg"}, "file", "stream"),
        ("a.mov", b"x", VIDEO | {"mime": "video/quicktime"}, "file", "stream"),
        ("a.pdf", b"x", {}, "file", "pdf"),
        ("a.DOCX", b"x", {}, "file", "doc"),
        ("a.svg", b"<svg/>", {"kind": FileKind.IMAGE, "mime": "image/svg+xml"}, "file", "stream"),
        ("none", b"x", {"mime": ""}, "file", "stream"),
    ],
)
async def test_each_file_goes_in_its_best_form(
    tmp_path: Path, name: str, data: bytes, fields: Any, kind: str, upload: str
) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        outcome = await feishu.send_file(made(tmp_path, name, data, **fields))
        (sent,) = fake.sent
        assert outcome == Delivered(sent.message_id)
        assert sent.file is not None
        assert (sent.kind, sent.uuid, sent.file.kind, sent.file.data) == (kind, UUID, upload, data)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("测试中文.pdf", "测试中文.pdf"),
        ("报告—详情（2026）.md", "报告—详情（2026）.md"),
        ("😀.txt", "😀.txt"),
        ("👩\u200d💻 report.txt", "👩\u200d💻 report.txt"),
        ("می\u200cخواهم\xa0.txt", "می\u200cخواهم\xa0.txt"),
        ("e\u0301.txt", "e\u0301.txt"),
        ('a"b\\c\r\nd.txt', "a_b_c__d.txt"),
        ("100% sure.txt", "100% sure.txt"),
    ],
)
async def test_case_10_names_arrive_in_their_own_letters(tmp_path: Path, name: str, shown: str) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send_file(made(tmp_path, name))
        assert fake.sent[0].file is not None
        assert fake.sent[0].file.name == shown


async def test_a_name_that_is_nothing_is_file(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send_file(made(tmp_path, ""))
        assert fake.sent[0].file is not None
        assert fake.sent[0].file.name == "file"


async def test_a_voice_message_tells_how_long_it_is(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send_file(made(tmp_path, "a.opus", opus(2500), **VOICE))
        await feishu.send_file(made(tmp_path, "a.opus", opus(0), **VOICE, client_id="2"))
        assert [sent.file and sent.file.ms for sent in fake.sent] == [2500, 0]


async def test_a_picture_over_ten_mib_goes_as_a_file(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send_file(made(tmp_path, "a.png", png() + bytes(MAX_IMAGE_BYTES), **PICTURE))
        assert [each.kind for each in fake.sent] == ["file"]


async def test_a_picture_with_too_many_pixels_or_of_another_format_goes_as_a_file(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        await feishu.send_file(made(tmp_path, "a.png", png(20_000, 10), **PICTURE))
        await feishu.send_file(made(tmp_path, "a.png", b"<html>", **PICTURE, client_id="2"))
        assert [each.kind for each in fake.sent] == ["file", "file"]
        assert [each.split("/")[-1] for each in fake.requests if "/im/" in each] == [
            "images",
            "files",
            "messages",
        ] * 2


@pytest.mark.parametrize("code", [230001, 230055, 230099])
@pytest.mark.parametrize(("name", "fields"), [("a.mp4", VIDEO), ("a.opus", VOICE), ("a.png", PICTURE)])
async def test_a_form_that_is_refused_becomes_a_file_under_the_same_uuid(
    tmp_path: Path, code: int, name: str, fields: Any
) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(code))
        data = opus(1) if name == "a.opus" else png()
        assert isinstance(await feishu.send_file(made(tmp_path, name, data, **fields)), Delivered)
        assert [(each.kind, each.uuid) for each in fake.sent] == [("file", UUID)]


async def test_a_platform_that_wants_a_cover_gets_the_video_as_a_file(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.interface.media_needs_cover = True
        await feishu.send_file(made(tmp_path, "a.mp4", **VIDEO))
        assert [each.kind for each in fake.sent] == ["file"]


async def test_what_cannot_be_taken_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        empty = await feishu.send_file(made(tmp_path, "a.txt", b""))
        big = await feishu.send_file(made(tmp_path, "a.txt", size=MAX_FILE_BYTES + 1))
        assert empty == Refused("it is empty, and Feishu takes no empty files")
        assert big == Refused("it is over 30 MB, the most that Feishu takes")
        assert fake.requests == []


async def test_case_36_a_failure_never_tells_the_path(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        file = made(tmp_path, "report.pdf")
        fake.next(Refusal(234007, text=str(file.path)), at="upload")
        refused = await feishu.send_file(file)
        assert isinstance(refused, Refused)
        assert refused.code == "234007"
        assert str(tmp_path) not in refused.reason
        file.path.unlink()
        with pytest.raises(ChannelError) as caught:
            await feishu.send_file(file)
        assert str(tmp_path) not in str(caught.value)
        voice = made(tmp_path, "a.opus", b"x", **VOICE)
        voice.path.unlink()
        with pytest.raises(ChannelError) as caught:
            await feishu.send_file(voice)
        assert str(tmp_path) not in str(caught.value)


async def test_where_no_form_is_taken_it_is_refused(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(230055))
        assert await feishu.send_file(made(tmp_path, "a.txt")) == Refused(
            "Feishu: the file and the message disagree in type (code 230055)", "230055"
        )
        fake.next(Refusal(234011), at="upload")
        assert isinstance(await feishu.send_file(made(tmp_path, "a.txt")), Refused)


async def test_uploads_fail_as_sends_do_and_a_retry_shows_the_file_once(tmp_path: Path) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        file = made(tmp_path, "a.txt")
        fake.next(Fault.DROP_AFTER, Refusal(232096), at="upload")
        for _ in range(2):
            with pytest.raises(UnreachableError):
                await feishu.send_file(file)
        fake.next(Refusal(99991662), at="upload")
        with pytest.raises(CredentialsError):
            await feishu.send_file(file)
        fake.next(Fault.DROP_AFTER)
        with pytest.raises(ChannelError):
            await feishu.send_file(file)
        assert isinstance(await feishu.send_file(file), Delivered)
        assert len(fake.sent) == 1


async def test_a_file_that_answers_a_withdrawn_message_is_dropped(tmp_path: Path) -> None:
    async with FakeFeishu(delays=()) as fake, adapter(fake) as feishu:
        said = await fake.say("hi")
        await fake.recall(said.message_id)
        file = made(tmp_path, "a.txt", to="p2p:oc_direct_fake_owner", reply_to=said.message_id)
        assert await feishu.send_file(file) == Withdrawn("230011")


def test_a_file_is_the_last_way_of_every_other(tmp_path: Path) -> None:
    assert [*ways(made(tmp_path, "a.mp4", **VIDEO))] == [Way("media", "mp4"), Way("file", "stream")]
