import asyncio
import errno
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.channel import ChannelError, Context, FileKind, Inbound, Incoming, RemoteFile
from bridge.channel.testing.clock import until
from bridge.config import VoiceTable
from bridge.logs import get_logger
from bridge.media.disk import Disk
from bridge.media.limits import MIB, MediaLimits
from bridge.media.shelf import Shelf
from bridge.media.voice import Transcriber
from bridge.paths import Home
from bridge.relay.received import Received, Terms, receive
from bridge.relay.texts import Text
from tests.media.pictures import PNG
from tests.media.test_disk import Filling
from tests.media.transcriptions import FakeTranscriptions

MESSAGE = Inbound("m1", "u1", "c1", "to", "m1", "see")
IMAGE = RemoteFile("img", FileKind.IMAGE, "图.png")
DOCUMENT = RemoteFile("doc", FileKind.FILE, "报告.txt", size=3)
LOG = get_logger("test")
USUAL = MediaLimits()


def shelf_at(folder: Path, *, quota_bytes: int = 1_000_000, free: float = 50) -> Shelf:
    return Shelf(folder, quota_bytes, Disk(folder, 20, Filling(free)))


class FakePlatform:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"img": PNG, "doc": b"abc"}
        self.asked: list[str] = []
        self.context: Context | None = None
        self.stall = False
        self.stalled: set[str] = set()

    def fetch(self, file: RemoteFile, max_bytes: int) -> AbstractAsyncContextManager[Incoming]:
        return self._fetch(file)

    @asynccontextmanager
    async def _fetch(self, file: RemoteFile) -> AsyncIterator[Incoming]:
        self.asked.append(file.key)
        if self.stall or file.key in self.stalled:
            await asyncio.get_running_loop().create_future()
        if file.key not in self.files:
            raise ChannelError("the message was deleted (code 230110)")

        async def chunks() -> AsyncIterator[bytes]:
            yield self.files[file.key]

        yield Incoming(chunks(), name="from-the-platform.bin")

    async def resolve(self, message_id: str, reference: str) -> Context:
        if self.stall:
            await asyncio.get_running_loop().create_future()
        if self.context is None:
            raise ChannelError("gone")
        return self.context


class Mute:
    """A channel that gives nothing."""


async def take(
    tmp_path: Path, *files: RemoteFile, owner: bool = True, platform: object = None, reference: str = "",
    limits: MediaLimits = USUAL, seconds: float = 30, shelf: Shelf | None = None,
    listener: Transcriber | None = None, text: str = "see",
) -> Received:  # fmt: skip
    shelf = shelf or shelf_at(tmp_path)
    terms = Terms(tmp_path / "inbox", shelf, limits, seconds, seconds, listener)
    message = replace(MESSAGE, files=files, reference=reference, text=text)
    return await receive(message, platform or FakePlatform(), terms, owner, LOG)


async def test_files_come_in_under_safe_names_with_what_their_bytes_say(tmp_path: Path) -> None:
    got = await take(tmp_path, IMAGE, replace(DOCUMENT, transcript="said"))
    image, document = got.attachments
    assert (image.kind, image.name, image.mime, image.size) == ("image", "图.png", "image/png", len(PNG))
    assert (document.kind, document.name, document.transcript) == ("file", "报告.txt", "said")
    assert Path(image.path).read_bytes() == PNG
    assert Path(image.path).parent == tmp_path / "inbox"
    assert (got.notes, got.refusal) == ([], None)


@pytest.mark.parametrize(
    "name", ["../../escape.txt", "a/../../b", "C:\\x", "..%2f..", "\u202etxt.exe", "", "é.txt", "e\u0301.txt"]
)
async def test_case_75_a_hostile_name_stays_inside(tmp_path: Path, name: str) -> None:
    got = await take(tmp_path, replace(DOCUMENT, name=name))
    path = Path(got.attachments[0].path)
    assert path.parent == tmp_path / "inbox"
    assert path.is_file()


async def test_case_75_a_name_in_either_spelling_of_unicode_never_overwrites_the_other(
    tmp_path: Path,
) -> None:
    platform = FakePlatform()
    platform.files |= {"nfc": b"composed", "nfd": b"decomposed"}
    spelt = {"nfc": "é.txt", "nfd": "e\u0301.txt"}
    files = [replace(DOCUMENT, key=key, name=name, size=None) for key, name in spelt.items()]
    got = await take(tmp_path, *files, platform=platform)
    assert [Path(one.path).read_bytes() for one in got.attachments] == [b"composed", b"decomposed"]


async def test_case_76_files_of_one_name_are_all_kept(tmp_path: Path) -> None:
    platform, paths = FakePlatform(), list[str]()
    names = {f"k{n}": name for n, name in enumerate(["image.png", "image.png", "IMAGE.png"])}
    for picture in (PNG, PNG + b"later"):  # in one message, and again in the next
        platform.files |= dict.fromkeys(names, picture)
        files = [replace(IMAGE, key=key, name=name) for key, name in names.items()]
        got = await take(tmp_path, *files, platform=platform)
        paths += [attachment.path for attachment in got.attachments]
    assert len({path.lower() for path in paths}) == 6
    assert [Path(path).read_bytes() for path in paths] == [PNG] * 3 + [PNG + b"later"] * 3


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.png", b""), ("a.pdf", b""), ("a.txt", b""), ("a.png", b"x"), ("a.png", b"<!DOCTYPE html><p>hi")],
)
async def test_case_83_what_is_no_picture_reaches_the_owner_s_agent_as_a_saved_file(
    tmp_path: Path, name: str, data: bytes
) -> None:
    platform = FakePlatform()
    platform.files["img"] = data
    got = await take(tmp_path, replace(IMAGE, name=name, mime="image/png"), platform=platform)
    (file,) = got.attachments
    assert (file.kind, file.size, file.mime.startswith("image/")) == ("file", len(data), False)
    assert Path(file.path).read_bytes() == data


async def test_a_file_without_a_name_takes_the_platform_s(tmp_path: Path) -> None:
    got = await take(tmp_path, replace(DOCUMENT, name=""))
    assert got.attachments[0].name == "from-the-platform.bin"


async def test_strangers_bring_small_pictures_and_nothing_else(tmp_path: Path) -> None:
    platform = FakePlatform()
    got = await take(tmp_path, DOCUMENT, IMAGE, owner=False, platform=platform)
    assert platform.asked == ["img"]
    assert [attachment.kind for attachment in got.attachments] == ["image"]
    assert got.refusal == (Text.UNREADABLE_TYPE, 0)


async def test_a_file_without_a_name_is_told_of_by_its_kind_alone(tmp_path: Path) -> None:
    got = await take(tmp_path, replace(DOCUMENT, name=""), owner=False)
    assert got.notes == ["[file: not opened for this sender.]"]


async def test_case_83_a_picture_that_is_none_is_not_taken_from_a_stranger(tmp_path: Path) -> None:
    platform = FakePlatform()
    platform.files["img"] = b"<!DOCTYPE html><html><body>x</body></html>"
    got = await take(tmp_path, IMAGE, owner=False, platform=platform)
    assert got.attachments == []
    assert got.notes == ["[image 图.png: not opened for this sender.]"]
    assert list((tmp_path / "inbox").iterdir()) == []


async def test_case_84_what_is_too_large_is_not_asked_for_or_is_cut_off(tmp_path: Path) -> None:
    limits, platform = MediaLimits(owner_max_bytes=1_048_576), FakePlatform()
    platform.files["img"] = b"x" * 1_048_577
    announced = replace(DOCUMENT, size=2_000_000)
    lying = replace(IMAGE, size=5)
    got = await take(tmp_path, announced, lying, platform=platform, limits=limits)
    assert platform.asked == ["img"]
    assert got.notes == [
        "[file 报告.txt: larger than 1 MB, not opened.]",
        "[image 图.png: larger than 1 MB, not opened.]",
    ]
    assert got.refusal == (Text.UNREADABLE_SIZE, 1)
    assert list((tmp_path / "inbox").iterdir()) == []


async def test_a_download_that_fails_or_stalls_leaves_a_note_and_fails_nothing(tmp_path: Path) -> None:
    platform = FakePlatform()
    got = await take(tmp_path, replace(DOCUMENT, key="lost"), IMAGE, platform=platform)
    assert got.notes == ["[file 报告.txt: the download failed: the message was deleted (code 230110).]"]
    assert len(got.attachments) == 1
    platform.stall = True
    slow = await take(tmp_path, DOCUMENT, platform=platform, seconds=0.02)
    assert slow.refusal == (Text.UNREADABLE_DOWNLOAD, 0)


class Buggy(FakePlatform):
    """Fails in ways that no adapter should."""

    @asynccontextmanager
    async def _fetch(self, file: RemoteFile) -> AsyncIterator[Incoming]:
        if file.key == "lost":
            raise KeyError("bot-token-in-an-address")
        async with super()._fetch(file) as incoming:
            yield incoming

    async def resolve(self, message_id: str, reference: str) -> Context:
        raise IndexError


async def test_an_adapter_s_bug_costs_its_file_or_reference_and_not_the_turn(tmp_path: Path) -> None:
    got = await take(tmp_path, replace(DOCUMENT, key="lost"), IMAGE, platform=Buggy(), reference="m0")
    assert got.notes == ["[file 报告.txt: the download failed.]"]
    assert got.refusal == (Text.UNREADABLE_DOWNLOAD, 0)
    assert "could not be fetched" in got.context
    assert [attachment.name for attachment in got.attachments] == ["图.png"]


async def test_what_the_platform_gives_nobody_is_said_with_its_transcript(tmp_path: Path) -> None:
    sticker = RemoteFile("s", FileKind.STICKER, fetchable=False)
    voice = RemoteFile("v", FileKind.AUDIO, "v.ogg", transcript="hello there")
    got = await take(tmp_path, sticker, platform=FakePlatform())
    assert "does not give its content" in got.notes[0]
    mute = await take(tmp_path, voice, platform=Mute())
    assert 'Its transcript: "hello there"' in mute.notes[0]


async def test_files_over_the_limit_of_a_message_are_counted(tmp_path: Path) -> None:
    got = await take(tmp_path, *[DOCUMENT] * 5, limits=MediaLimits(max_files=3))
    assert len(got.attachments) == 3
    assert got.notes == ["[Of 5 files 2 were not opened.]"]


async def test_a_reference_brings_its_text_and_files(tmp_path: Path) -> None:
    platform = FakePlatform()
    platform.context = Context("> quoted", (IMAGE,))
    got = await take(tmp_path, DOCUMENT, platform=platform, reference="m0")
    assert got.context == "> quoted"
    assert [attachment.name for attachment in got.attachments] == ["报告.txt", "图.png"]


async def test_case_12_a_reference_that_cannot_be_had_is_said_as_failed(tmp_path: Path) -> None:
    platform = FakePlatform()
    assert "could not be fetched" in (await take(tmp_path, platform=platform, reference="m0")).context
    platform.stall = True
    slow = await take(tmp_path, platform=platform, reference="m0", seconds=0.02)
    assert "could not be fetched" in slow.context


async def test_a_channel_without_references_passes_them_over(tmp_path: Path) -> None:
    assert (await take(tmp_path, platform=Mute(), reference="m0")).context == ""


async def test_case_85_files_that_no_message_owns_are_removed(tmp_path: Path) -> None:
    got = await take(tmp_path, IMAGE)
    await got.let_go(keep=False)
    assert list((tmp_path / "inbox").iterdir()) == []


async def test_case_85_what_came_before_the_turn_was_stopped_is_removed(tmp_path: Path) -> None:
    platform = FakePlatform()
    platform.stalled.add("doc")
    async with asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(take(tmp_path, IMAGE, DOCUMENT, platform=platform))
        await until(lambda: platform.asked == ["img", "doc"])
        assert len(list((tmp_path / "inbox").iterdir())) == 1
        taking.cancel()
    assert list((tmp_path / "inbox").iterdir()) == []


# --- what several messages refer to ---------------------------------------------------------


def referring(platform: FakePlatform, *files: RemoteFile) -> FakePlatform:
    platform.context = Context("> root", files)
    return platform


async def test_what_ten_messages_refer_to_is_fetched_and_stored_once(tmp_path: Path) -> None:
    platform, shelf = referring(FakePlatform(), IMAGE, DOCUMENT), shelf_at(tmp_path)
    seen = set()
    for _ in range(10):
        got = await take(tmp_path, platform=platform, reference="m0", shelf=shelf)
        seen.add(tuple((one.path, one.kind, one.mime, one.name, one.size) for one in got.attachments))
        await got.let_go(keep=True)
    assert platform.asked == ["img", "doc"]
    assert len(seen) == 1
    assert len(list((tmp_path / "inbox").iterdir())) == 2


async def test_case_76_two_equal_files_that_were_sent_apart_stay_apart(tmp_path: Path) -> None:
    got = await take(tmp_path, IMAGE, IMAGE)
    assert len({one.path for one in got.attachments}) == 2


async def test_a_use_makes_what_is_referred_to_young_again(tmp_path: Path) -> None:
    platform, shelf = referring(FakePlatform(), IMAGE), shelf_at(tmp_path)
    first = await take(tmp_path, platform=platform, reference="m0", shelf=shelf)
    await first.let_go(keep=True)
    path = Path(first.attachments[0].path)
    os.utime(path, (0, 0))
    again = await take(tmp_path, platform=platform, reference="m0", shelf=shelf)
    await again.let_go(keep=True)
    assert path.stat().st_mtime > 0
    path.unlink()  # by the retention, say
    await take(tmp_path, platform=platform, reference="m0", shelf=shelf)
    assert (platform.asked, path.read_bytes()) == (["img", "img"], PNG)


async def test_a_refused_turn_takes_nothing_away_that_another_message_names(tmp_path: Path) -> None:
    platform, shelf = referring(FakePlatform(), IMAGE), shelf_at(tmp_path)
    first = await take(tmp_path, platform=platform, reference="m0", shelf=shelf)
    await first.let_go(keep=True)
    second = await take(tmp_path, DOCUMENT, platform=platform, reference="m0", shelf=shelf)
    await second.let_go(keep=False)
    assert [path.name[13:] for path in (tmp_path / "inbox").iterdir()] == ["图.png"]
    third = await take(tmp_path, platform=platform, reference="m0", shelf=shelf)
    assert Path(third.attachments[0].path).read_bytes() == PNG


async def test_what_is_there_but_not_for_this_sender_stays(tmp_path: Path) -> None:
    platform, shelf = (
        referring(FakePlatform(), DOCUMENT, replace(DOCUMENT, kind=FileKind.IMAGE)),
        shelf_at(tmp_path),
    )
    await take(tmp_path, platform=platform, reference="m0", shelf=shelf)
    stranger = await take(tmp_path, platform=platform, reference="m0", shelf=shelf, owner=False)
    assert stranger.attachments == []
    assert all("not opened for this sender" in note for note in stranger.notes)
    assert len(list((tmp_path / "inbox").iterdir())) == 1


async def test_over_the_quota_older_files_go_and_never_those_of_a_turn_that_runs(tmp_path: Path) -> None:
    shelf, platform = shelf_at(tmp_path, quota_bytes=3 * len(PNG)), FakePlatform()
    old = await take(tmp_path, IMAGE, IMAGE, shelf=shelf, platform=platform)
    await old.let_go(keep=True)
    running = await take(tmp_path, IMAGE, IMAGE, shelf=shelf, platform=platform)
    await (await take(tmp_path, IMAGE, IMAGE, shelf=shelf, platform=platform)).let_go(keep=True)
    assert all(Path(one.path).exists() for one in running.attachments)
    assert not any(Path(one.path).exists() for one in old.attachments)


# --- a disk that is nearly full -------------------------------------------------------------


async def test_on_a_nearly_full_disk_nothing_is_fetched_and_each_file_is_noted(tmp_path: Path) -> None:
    platform, shelf = FakePlatform(), shelf_at(tmp_path, free=10)
    got = await take(tmp_path, IMAGE, replace(DOCUMENT, transcript="said"), platform=platform, shelf=shelf)
    assert got.notes == [
        "[image 图.png: not opened, because the disk is nearly full.]",
        '[file 报告.txt: not opened, because the disk is nearly full.] Its transcript: "said"',
    ]
    assert (got.refusal, platform.asked) == ((Text.UNREADABLE_DISK, 0), [])


async def test_what_is_there_already_is_used_on_a_full_disk_too(tmp_path: Path) -> None:
    platform = referring(FakePlatform(), IMAGE)
    await take(tmp_path, platform=platform, reference="m0")
    full = shelf_at(tmp_path, free=10)
    got = await take(tmp_path, platform=platform, reference="m0", shelf=full)
    assert [one.name for one in got.attachments] == ["图.png"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
async def test_a_disk_that_fills_up_meanwhile_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, "no room")

    monkeypatch.setattr("bridge.media.newfile.os.write", refuse)
    got = await take(tmp_path, IMAGE)
    assert got.refusal == (Text.UNREADABLE_DISK, 0)
    assert list((tmp_path / "inbox").iterdir()) == []


VOICE = RemoteFile("voice", FileKind.AUDIO, "voice.ogg", "audio/ogg")
LISTENING = replace(USUAL, others_voice_max_bytes=MIB)


def listener(tmp_path: Path, base: str, **table: object) -> Transcriber:
    table_ = VoiceTable.model_validate({"base_url": base, **table})
    return Transcriber(table_, Home(tmp_path / "home"), {})


def speaking(data: bytes = b"OggS voice") -> FakePlatform:
    platform = FakePlatform()
    platform.files["voice"] = data
    return platform


@pytest.mark.parametrize("owner", [True, False])
async def test_voice_without_a_transcript_is_transcribed_for_everybody_who_is_answered(
    tmp_path: Path, owner: bool
) -> None:
    async with FakeTranscriptions().serving() as fake:
        got = await take(
            tmp_path, VOICE, owner=owner, platform=speaking(), limits=LISTENING, text="",
            listener=listener(tmp_path, fake.base),
        )  # fmt: skip
    (voice,) = got.attachments
    assert (voice.kind, voice.transcript) == ("audio", "Turn the heating on.")
    assert (got.notes, got.refusal) == ([], None)


async def test_what_the_platform_understood_and_what_is_no_voice_is_not_transcribed(tmp_path: Path) -> None:
    async with FakeTranscriptions().serving() as fake:
        heard = replace(VOICE, transcript="from the platform")
        music = replace(VOICE, kind=FileKind.FILE, name="song.ogg")
        own = listener(tmp_path, fake.base)
        got = await take(tmp_path, heard, music, platform=speaking(), listener=own)
    assert [one.transcript for one in got.attachments] == ["from the platform", None]
    assert fake.asked == []


@pytest.mark.parametrize("data", [b"OggS voice", b"OggS" + bytes(1_048_577)])
async def test_case_26_voice_alone_that_nobody_understands_leaves_nothing_for_an_agent(
    tmp_path: Path, data: bytes
) -> None:
    async with FakeTranscriptions(status=500).serving() as fake:
        own = listener(tmp_path, fake.base, max_mib=1)
        got = await take(tmp_path, VOICE, platform=speaking(data), listener=own, text="")
        assert (got.attachments, got.refusal) == ([], (Text.VOICE, 0))
        assert not [*(tmp_path / "inbox").iterdir()]
        got = await take(tmp_path, VOICE, platform=speaking(data), listener=own)
    assert [one.transcript for one in got.attachments] == [None]  # beside a text it is there, with a note
    assert got.notes == ["[audio voice.ogg: what is said in it could not be written down.]"]


async def test_a_transcription_that_is_stopped_leaves_no_file(tmp_path: Path) -> None:
    class Hangs(Transcriber):
        async def transcribe(self, path: Path, mime: str) -> str:
            stopped.set()
            await asyncio.get_running_loop().create_future()
            return ""

    stopped, shelf = asyncio.Event(), shelf_at(tmp_path)
    own = Hangs(VoiceTable(), Home(tmp_path / "home"), {})
    async with asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(take(tmp_path, VOICE, platform=speaking(), listener=own, shelf=shelf))
        await stopped.wait()
        taking.cancel()
    assert not [*(tmp_path / "inbox").iterdir()]
    assert not shelf._in_use
