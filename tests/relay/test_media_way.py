"""Files and voices on their whole way through a running account; the numbers name cases of the field."""

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.channel import Context, FileKind, OutboundFile, RemoteFile
from bridge.channel.testing.clock import settle, until
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import CountsOf
from tests.media.pictures import PNG, heic
from tests.relay.harness import NAME, OWNER, STRANGER, Desk, desk, message
from tests.relay.scripted import Frame, Peer, answer, attach

VOICE = say(Text.VOICE, Language.EN)
TOOLS = {"remote_tools": "owner"}


def attachments(here: Desk, turn: int = -1) -> list[dict[str, Any]]:
    """The files that a turn was started with."""
    found: list[dict[str, Any]] = here.server.frames("turn.start")[turn].get("attachments", [])
    return found


def on_disk(here: Desk) -> list[str]:
    """What is kept of received files, by their safe names."""
    kept = (here.home.state / "media" / "test" / "a").rglob("*")
    return sorted(path.name.partition("-")[2] or path.name for path in kept if path.is_file())


async def bring(here: Desk, *named: tuple[str, bytes], text: str = "see", sender: str = OWNER) -> None:
    """A person sends files of these names."""
    start = len(here.channel.files)
    keys = [f"key{start + n}" for n in range(len(named))]
    here.channel.files |= {key: data for key, (_, data) in zip(keys, named, strict=True)}
    files = tuple(RemoteFile(key, FileKind.FILE, name) for key, (name, _) in zip(keys, named, strict=True))
    await here.say(text, sender, files=files)


# --- 75, 76: names ----------------------------------------------------------------------------

HOSTILE = {
    "../../escape.txt": "escape.txt",
    "a/../../b": "b",
    "C:\\x": "x",
    "..%2f..": "%2f",
    "/etc/passwd": "passwd",
    "\u202etxt.exe": "txt.exe",
    "in\u200bvoice.pdf": "invoice.pdf",
    "con.txt": "_con.txt",
    "a\0b\nc.txt": "a_b_c.txt",
    "...": "file",
    "": "file",
    "x" * 296 + ".txt": "x" * 92 + ".txt",
    "长" * 100 + ".md": "长" * 31 + ".md",
}


async def test_case_75_whatever_the_name_the_file_stays_in_its_folder_and_is_the_owner_s_alone() -> None:
    async with desk(settings=TOOLS, media={"max_files": len(HOSTILE)}) as here:
        await bring(here, *((name, name.encode()) for name in HOSTILE))
        await here.answered(1)
        got = attachments(here)
        assert [one["name"] for one in got] == list(HOSTILE.values())
        paths = [Path(one["path"]) for one in got]
        (folder,) = {path.parent for path in paths}
        assert folder.parent == here.home.state / "media" / "test" / "a"
        assert [path.read_bytes() for path in paths] == [name.encode() for name in HOSTILE]
        assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
        assert all(stat.S_IMODE(at.stat().st_mode) == 0o700 for at in (folder, *folder.parents[:3]))
        assert sorted(os.listdir(folder)) == sorted(path.name for path in paths)


async def test_cases_75_and_76_names_that_are_alike_overwrite_nothing() -> None:
    alike = ["image.png", "image.png", "IMAGE.png", "é.txt", "e\u0301.txt"]
    async with desk(settings=TOOLS) as here:
        for turn in range(2):
            await bring(here, *((name, f"{turn} {n}".encode()) for n, name in enumerate(alike)))
            await here.answered(turn + 1)
        got = [*attachments(here, 0), *attachments(here, 1)]
        assert len({one["path"].casefold() for one in got}) == 2 * len(alike)
        said = [Path(one["path"]).read_text() for one in got]
        assert said == [f"{turn} {n}" for turn in range(2) for n in range(len(alike))]


async def test_case_76_one_file_sent_twice_in_one_message_is_two_files() -> None:
    async with desk(settings=TOOLS) as here:
        here.channel.files["k"] = b"same"
        await here.say("see", files=(RemoteFile("k", FileKind.FILE, "a.txt"),) * 2)
        await here.answered(1)
        assert len({one["path"] for one in attachments(here)}) == 2


# --- 83, 84: what pictures are ------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"x", b"<!DOCTYPE html><p>hi"])
async def test_case_83_a_stranger_s_picture_that_is_none_is_not_kept_and_the_text_is_answered(
    data: bytes,
) -> None:
    async with desk() as here:
        here.channel.files["k"] = data
        await here.say("see", STRANGER, files=(RemoteFile("k", FileKind.IMAGE, "a.png", "image/png"),))
        (said,) = await here.answered(1)
        assert "[image a.png: not opened for this sender.]" in said
        assert (attachments(here), on_disk(here)) == ([], [])


async def test_case_84_a_phone_s_photo_is_a_picture_from_anybody() -> None:
    async with desk() as here:
        here.channel.files["k"] = heic()
        await here.say("see", STRANGER, files=(RemoteFile("k", FileKind.IMAGE, "IMG_1.HEIC"),))
        await here.answered(1)
        (photo,) = attachments(here)
        assert (photo["kind"], photo["mime"]) == ("image", "image/heic")


async def test_case_84_a_phone_s_photo_that_cannot_be_read_is_a_file_for_the_owner_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)  # as if it were not installed
    async with desk(settings=TOOLS) as here:
        here.channel.files["k"] = heic()
        photo = RemoteFile("k", FileKind.IMAGE, "IMG_1.HEIC")
        await here.say("see", files=(photo,))
        await here.answered(1)
        assert [(one["kind"], one["mime"]) for one in attachments(here)] == [("file", "image/heic")]
        await here.say("see", STRANGER, files=(photo,))
        assert "[image IMG_1.HEIC: not opened for this sender.]" in (await here.answered(2))[1]
        assert on_disk(here) == ["IMG_1.HEIC"]


# --- 85, and what several messages refer to -----------------------------------------------------


async def test_ten_messages_of_a_thread_fetch_and_store_its_root_s_files_once() -> None:
    async with desk(settings=TOOLS) as here:
        here.channel.files |= {"root": PNG, "own": b"own"}
        here.channel.context = Context("> the root", (RemoteFile("root", FileKind.IMAGE, "root.png"),))
        own = (RemoteFile("own", FileKind.FILE, "own.txt"),)
        for n in range(10):
            await here.say(f"text {n}", reference="m0", files=own if n == 9 else ())
            await here.answered(n + 1)
        assert here.channel.fetched == ["root", "own"]
        assert on_disk(here) == ["own.txt", "root.png"]
        roots = {
            one["path"] for turn in range(10) for one in attachments(here, turn) if one["kind"] == "image"
        }
        assert len(roots) == 1


async def test_case_85_a_refused_turn_removes_its_own_files_and_none_that_an_earlier_turn_names() -> None:
    async def refuse_second(peer: Peer, start: Frame) -> None:
        if start["prompt"].endswith("second"):
            await peer.say("error", start["request_id"], code="queue_full", message="no", fatal=False)
        else:
            await answer(peer, start)

    async with desk(settings=TOOLS, script={"turn": refuse_second}) as here:
        here.channel.files |= {"root": PNG, "own": b"own"}
        here.channel.context = Context("", (RemoteFile("root", FileKind.IMAGE, "root.png"),))
        own = (RemoteFile("own", FileKind.FILE, "own.txt"),)
        await here.say("first", reference="m0")
        await here.answered(1)
        await here.say("second", reference="m0", files=own)
        await here.answered(2)
        await until(lambda: on_disk(here) == ["root.png"])
        await here.say("third", reference="m0")
        await here.answered(3)
        assert here.channel.fetched == ["root", "own"]
        assert Path(attachments(here)[0]["path"]).read_bytes() == PNG


# --- the quota ----------------------------------------------------------------------------------


async def test_over_the_quota_the_oldest_go_but_never_those_of_a_turn_that_runs() -> None:
    def blocks(peer: Peer, start: Frame) -> Any:
        return settle() if start["prompt"] == "long" else answer(peer, start)

    third = bytes(400 * 1024)
    async with desk(settings=TOOLS, media={"quota_mib": 1}, script={"turn": blocks}) as here:
        await bring(here, ("running", third), text="long")
        await until(lambda: len(here.server.frames("turn.start")) == 1)
        for n in range(3):
            here.channel.files[f"p{n}"] = PNG + third
            picture = RemoteFile(f"p{n}", FileKind.IMAGE, f"{n}.png")
            await here.say(f"text {n}", STRANGER, files=(picture,))
            await here.answered(n + 1)
        assert on_disk(here) == ["2.png", "running"]


# --- 25, 26: voices -----------------------------------------------------------------------------

SILK = RemoteFile("voice", FileKind.AUDIO, "voice.silk", "audio/silk")
HEARD = RemoteFile("voice", FileKind.AUDIO, "voice.silk", "audio/silk", transcript="turn on the light")


async def endless(peer: Peer, start: Frame) -> None:
    await peer.turn("turn.started", start["request_id"])


async def test_case_26_voice_alone_is_answered_at_once_without_a_turn_also_at_the_limit_and_once() -> None:
    limits = {"account_claims": 1, "owner_claims": 0, "conversation_claims": 1, "turns": 1, "owner_turns": 0}
    async with desk(settings=TOOLS, limits=limits, script={"turn": endless}) as here:
        await here.say("long")
        await until(lambda: len(here.server.frames("turn.start")) == 1)
        voice = message("v1", "", files=(SILK,), stamp="1700")
        for _ in range(2):
            await here.push(voice)
        await here.push(message("v1-again", "", files=(SILK,), stamp="1700"))  # the same under a new id
        assert await here.answered(1) == [VOICE]
        await settle()
        assert here.channel.texts() == [VOICE]
        assert (here.channel.fetched, len(here.server.frames("turn.start"))) == ([], 1)
        assert (await here.store.get(CountsOf(NAME))).waiting == 1


async def test_case_26_voice_with_a_text_is_noted_beside_it() -> None:
    async with desk(settings=TOOLS) as here:
        here.channel.files["voice"] = b"#!SILK_V3"
        await here.say("what is this?", files=(SILK,))
        assert await here.answered(1) == ["echo: what is this?"]
        (voice,) = attachments(here)
        assert (voice["kind"], voice["name"], voice.get("transcript")) == ("audio", "voice.silk", None)
        await here.say("and this?", STRANGER, files=(SILK,))
        assert "[audio voice.silk: not opened for this sender.]" in (await here.answered(2))[1]


async def test_case_26_a_voice_that_a_text_quotes_is_noted_and_the_text_is_answered() -> None:
    async with desk(settings=TOOLS) as here:
        here.channel.files["voice"] = b"#!SILK_V3"
        here.channel.context = Context("> [Voice message]", (SILK,))
        await here.say("what did she say?", reference="m0")
        assert await here.answered(1) == ["echo: > [Voice message]\n\nwhat did she say?"]
        assert [one["kind"] for one in attachments(here)] == ["audio"]


@pytest.mark.parametrize("sender", [OWNER, STRANGER])
async def test_case_25_a_transcript_is_used(sender: str) -> None:
    async with desk(settings=TOOLS) as here:
        here.channel.files["voice"] = b"#!SILK_V3"
        await here.say("", sender, files=(HEARD,))
        (said,) = await here.answered(1)
        if sender == OWNER:
            assert [one["transcript"] for one in attachments(here)] == ["turn on the light"]
        else:
            assert 'Its transcript: "turn on the light"' in said


async def test_case_25_a_transcript_is_used_though_the_voice_cannot_be_had() -> None:
    async with desk(settings=TOOLS) as here:
        here.channel.files["voice"] = ConnectionResetError()
        await here.say("", files=(HEARD,))
        (said,) = await here.answered(1)
        assert "the download failed" in said
        assert 'Its transcript: "turn on the light"' in said


@pytest.mark.parametrize(
    ("mime", "kind"),
    [("audio/ogg", FileKind.AUDIO), ("audio/mpeg", FileKind.AUDIO), ("text/plain", FileKind.FILE)],
)
async def test_an_agent_s_audio_goes_out_as_such(mime: str, kind: FileKind) -> None:
    async with desk(settings=TOOLS) as here:
        (copy := here.home.outbox / "0-voice").write_text("abc")

        async def turn(peer: Peer, start: Frame) -> None:
            await attach(peer, start, copy, "voice", mime=mime)
            await answer(peer, start)

        here.server.turn = turn
        await here.say("speak")
        await until(lambda: len(here.channel.sent) == 2)
        file = here.channel.sent[1]
        assert isinstance(file, OutboundFile)
        assert (file.kind, file.mime) == (kind, mime)
