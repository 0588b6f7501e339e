"""What was said in a voice message, by an OpenAI-compatible transcription endpoint that is configured."""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridge.accounts import saved_secrets
from bridge.channel import Http
from bridge.channel.http import UploadFile, http_session
from bridge.config import VoiceTable
from bridge.errors import ChannelError, ConfigError, CredentialsError
from bridge.logs import register_secret
from bridge.media.child import LACKING, TOO_LONG, run_limited
from bridge.paths import Home

MIB: Final = 1_048_576
TRANSCRIPT_CHARACTERS: Final = 4000
DECODE_SECONDS: Final = 40.0
_ANSWER_BYTES: Final = MIB
_DECODED: Final = frozenset({"audio/amr", "audio/silk"})
_NAMES: Final = {  # endpoints tell formats by names
    "audio/ogg": "voice.ogg",
    "audio/opus": "voice.ogg",
    "application/ogg": "voice.ogg",
    "video/ogg": "voice.ogg",
    "audio/mpeg": "voice.mp3",
    "audio/mp3": "voice.mp3",
    "audio/wav": "voice.wav",
    "audio/x-wav": "voice.wav",
    "audio/vnd.wave": "voice.wav",
    "audio/mp4": "voice.m4a",
    "audio/x-m4a": "voice.m4a",
    "audio/m4a": "voice.m4a",
    "video/mp4": "voice.m4a",
    "audio/webm": "voice.webm",
}


class UnheardError(ChannelError):
    """There is no transcript; the text says why and holds nothing of the message."""


@dataclass(frozen=True, slots=True)
class Transcriber:
    """``[voice]`` at work. Each transcription is one request, never repeated: it costs."""

    table: VoiceTable
    home: Home
    environ: Mapping[str, str]

    async def transcribe(self, path: Path, mime: str) -> str:
        """What is said in the file, at most 4000 characters.

        Raises:
            ConfigError: the key is missing.
            ChannelError: there is no transcript: nothing is said, it is too long, or the endpoint gave none.
            OSError: the file cannot be read.
        """
        if mime in _DECODED:
            return await self._decoded(path)
        if (name := _NAMES.get(mime)) is None:
            raise UnheardError(f"{mime} is no kind of voice that can be transcribed")
        return await self._asked(path, name, mime)

    async def _decoded(self, path: Path) -> str:
        with tempfile.TemporaryDirectory(prefix="turnbridge-voice-") as folder:
            target = Path(folder, "voice.wav")
            words = [str(path), str(target), str(self.table.max_seconds)]
            match await asyncio.to_thread(run_limited, "bridge.media.decoding", words, DECODE_SECONDS):
                case 0:
                    return await self._asked(target, "voice.wav", "audio/wav")
                case code if code == LACKING:
                    raise ConfigError(
                        "SILK and AMR are decoded with the extra: pip install '.[voice]' in a clone"
                    )
                case code if code == TOO_LONG:
                    raise UnheardError(f"it is longer than {self.table.max_seconds:g} s")
            raise UnheardError("it cannot be decoded")

    async def _asked(self, path: Path, name: str, mime: str) -> str:
        table = self.table
        key = await asyncio.to_thread(find_key, table, self.home, self.environ)
        fields = {"model": table.model, "response_format": "json"}
        if table.language:
            fields["language"] = table.language
        file = UploadFile("file", name, path, mime)
        async with http_session() as session:
            http = Http(session).at(table.base_url, bearer=key or None)
            answer = await http.upload(
                "/audio/transcriptions",
                fields,
                file,
                timeout_seconds=table.timeout_seconds,
                max_bytes=_ANSWER_BYTES,
            )
        if answer.status in (401, 403):
            raise CredentialsError(f"the transcription endpoint refuses the key ({answer.status})")
        if answer.status != 200:
            raise UnheardError(f"the transcription endpoint answers {answer.status}")
        text = answer.body.get("text") if isinstance(answer.body, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise UnheardError("nothing was understood")
        return text.strip()[:TRANSCRIPT_CHARACTERS]


def find_key(table: VoiceTable, home: Home, environ: Mapping[str, str]) -> str:
    """The endpoint's key, "" for none: by its variable, or from ``<home>/credentials/voice/main.json``.

    Raises:
        ConfigError: the variable is not set, or the file is none of ours.
    """
    key = ""
    if table.api_key.env:
        key = environ.get(table.api_key.env, "").strip()
        if not key:
            raise ConfigError(f"voice.api_key: the environment has no {table.api_key.env}: set it")
    elif (path := home.credentials("voice", "main")).exists():
        found = saved_secrets(path).get("api_key")
        if not isinstance(found, str) or not found.strip():
            raise ConfigError(f'{path} holds no key: write {{"api_key": "..."}}')
        key = found.strip()
    register_secret(key)
    return key
