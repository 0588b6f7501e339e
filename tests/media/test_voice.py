"""Transcription: one bounded request; where there is no transcript, an error says why."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.config import VoiceTable
from bridge.errors import BridgeError, ConfigError, CredentialsError, UnreachableError
from bridge.media import voice
from bridge.media.child import FAILED, LACKING, TOO_LONG
from bridge.media.voice import Transcriber, UnheardError, find_key
from bridge.paths import Home, write_private
from tests.daemons import free_port
from tests.media.transcriptions import FakeTranscriptions


@pytest.fixture
def spoken(tmp_path: Path) -> Path:
    path = tmp_path / "abc-voice.ogg"
    path.write_bytes(b"OggS spoken")
    return path


def transcriber(base: str, where: Path, **table: Any) -> Transcriber:
    settings = VoiceTable.model_validate({"base_url": base, **table})
    return Transcriber(settings, Home(where / "home"), {"VOICE_KEY": "sk-s3cr3t"})


async def test_the_endpoint_is_asked_once_and_its_text_is_the_transcript(spoken: Path) -> None:
    async with FakeTranscriptions().serving() as fake:
        own = transcriber(
            fake.base, spoken.parent, api_key={"env": "VOICE_KEY"}, language="zh", model="large"
        )
        assert await own.transcribe(spoken, "audio/ogg") == "Turn the heating on."
        plain = transcriber(fake.base, spoken.parent)
        assert await plain.transcribe(spoken, "audio/mpeg") == "Turn the heating on."
        fake.answer = {"text": "x" * 5000}
        assert len(await plain.transcribe(spoken, "audio/mp4")) == 4000
    first, second, _ = fake.asked
    assert (first.path, first.key) == ("/v1/audio/transcriptions", "Bearer sk-s3cr3t")
    assert first.fields == {"model": "large", "response_format": "json", "language": "zh"}
    assert (first.name, first.data) == ("voice.ogg", b"OggS spoken")  # nobody's own name for it
    assert (second.key, second.fields["model"], second.name) == ("", "whisper-1", "voice.mp3")


@pytest.mark.parametrize(
    ("status", "answer", "error", "words"),
    [
        (401, {}, CredentialsError, "refuses the key"),
        (500, {}, UnheardError, "answers 500"),
        (200, {"text": "  "}, UnheardError, "nothing was understood"),
        (200, {"text": None}, UnheardError, "nothing was understood"),
        (200, ["no", "object"], UnheardError, "nothing was understood"),
    ],
)
async def test_without_a_usable_answer_there_is_no_transcript(
    status: int, answer: Any, error: type[BridgeError], words: str, spoken: Path
) -> None:
    async with FakeTranscriptions(status, answer).serving() as fake:
        with pytest.raises(error, match=words):
            await transcriber(fake.base, spoken.parent).transcribe(spoken, "audio/wav")
    assert len(fake.asked) == 1  # it costs, so nothing is asked twice


async def test_an_endpoint_that_is_not_there_and_a_kind_that_is_none(spoken: Path) -> None:
    own = transcriber(f"http://127.0.0.1:{free_port()}", spoken.parent)
    with pytest.raises(UnreachableError):
        await own.transcribe(spoken, "audio/ogg")
    with pytest.raises(UnheardError, match="no kind of voice"):
        await own.transcribe(spoken, "audio/midi")


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (LACKING, ConfigError, r"pip install '\.\[voice\]'"),
        (TOO_LONG, UnheardError, "longer than 600 s"),
        (FAILED, UnheardError, "cannot be decoded"),
    ],
)
async def test_case_25_silk_is_decoded_or_it_is_said_why_not(
    code: int, error: type[BridgeError], words: str, spoken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voice, "run_limited", lambda *_: code)
    with pytest.raises(error, match=words):
        await transcriber("http://127.0.0.1:1", spoken.parent).transcribe(spoken, "audio/silk")


async def test_case_25_what_was_decoded_is_sent_as_wav(spoken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded(module: str, words: list[str], seconds: float) -> int:
        assert (module, words[0], words[2]) == ("bridge.media.decoding", str(spoken), "600.0")
        Path(words[1]).write_bytes(b"RIFF")
        return 0

    monkeypatch.setattr(voice, "run_limited", decoded)
    async with FakeTranscriptions().serving() as fake:
        await transcriber(fake.base, spoken.parent).transcribe(spoken, "audio/amr")
    assert (fake.asked[0].name, fake.asked[0].data) == ("voice.wav", b"RIFF")


def test_the_key_is_the_variables_or_the_files_or_there_is_none(tmp_path: Path) -> None:
    where = Home(tmp_path / "home")
    table = VoiceTable(base_url="http://127.0.0.1:1")
    assert find_key(table, where, {}) == ""
    path = where.credentials("voice", "main")
    where.private_dir(path.parent)
    write_private(path, json.dumps({"api_key": " sk-file "}).encode())
    assert find_key(table, where, {}) == "sk-file"
    write_private(path, b'{"key": 1}')
    with pytest.raises(ConfigError, match="holds no key"):
        find_key(table, where, {})
    named = VoiceTable.model_validate({"api_key": {"env": "VOICE_KEY"}})
    with pytest.raises(ConfigError, match="the environment has no VOICE_KEY"):
        find_key(named, where, {"VOICE_KEY": " "})
