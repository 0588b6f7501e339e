"""Sending a file: put it on the platform, then send its key, in the best form that the platform takes.

Source: https://open.feishu.cn/document/server-docs/im-v1/image/create and …/im-v1/file/create
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from bridge.channel import ChannelError, FileKind, OutboundFile, Refused, SendOutcome
from bridge.channel.http import UploadFile
from bridge.channel.multipart import form_name, open_content
from channels.feishu import codes
from channels.feishu.api import Api, Result
from channels.feishu.ogg import EDGE_BYTES, is_opus, opus_ms
from channels.feishu.send import Form, Sender, refused
from channels.feishu.wire import text_of

MAX_FILE_BYTES = 30 * 1024 * 1024
MAX_IMAGE_BYTES = 10 * 1024 * 1024
_SHOWN = frozenset(
    f"image/{kind}"
    for kind in ("jpeg", "png", "webp", "gif", "bmp", "x-icon", "vnd.microsoft.icon", "tiff", "heic")
)
_VOICES = frozenset({".opus", ".ogg", ".oga"})
_BY_ENDING = {
    ".pdf": "pdf", ".doc": "doc", ".docx": "doc", ".xls": "xls", ".xlsx": "xls",
    ".ppt": "ppt", ".pptx": "ppt",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Way:
    """How a file goes: its message's type, and the type that it is uploaded as (``""``: a picture)."""

    message: str
    file_type: str = ""
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Voice:
    """What a file is as a voice message, if it is one; ``ms`` 0 where its length is not told."""

    ms: int = 0


def ways(file: OutboundFile, voice: Voice | None = None) -> Iterator[Way]:
    """The forms for ``file``, best first; the last takes anything."""
    if file.kind == FileKind.IMAGE and file.mime in _SHOWN and file.size <= MAX_IMAGE_BYTES:
        yield Way("image")
    ending = PurePath(file.name).suffix.lower()
    if file.kind == FileKind.VIDEO and file.mime == "video/mp4":
        yield Way("media", "mp4")
    if voice is not None:
        yield Way("audio", "opus", voice.ms)
    yield Way("file", _BY_ENDING.get(ending, "stream"))


class FileSender:
    def __init__(self, api: Api, sender: Sender) -> None:
        self._api = api
        self._sender = sender

    async def send(self, file: OutboundFile) -> SendOutcome:
        """Send one file; errors as ``Sender.form``, and ChannelError when the file cannot be read."""
        if file.size <= 0:
            return Refused("it is empty, and Feishu takes no empty files")
        if file.size > MAX_FILE_BYTES:
            return Refused("it is over 30 MB, the most that Feishu takes")
        outcome: SendOutcome | Result = Refused("there is nothing to send")
        for way in ways(file, await asyncio.to_thread(_voice, file)):
            outcome = await self._by(way, file)
            if not isinstance(outcome, Result):
                return outcome
        return refused(outcome) if isinstance(outcome, Result) else outcome

    async def _by(self, way: Way, file: OutboundFile) -> SendOutcome | Result:
        put = await self._put(way, file)
        if put.code:
            return put if put.code in codes.OTHER_FORM else refused(put)
        name = "image_key" if way.message == "image" else "file_key"
        key = text_of(put.data, name)
        return await self._sender.form(file, Form.of(way.message, {name: key}))

    async def _put(self, way: Way, file: OutboundFile) -> Result:
        if way.message == "image":
            content = UploadFile("image", file.name, file.path, file.mime)
            return await self._api.upload("/open-apis/im/v1/images", {"image_type": "message"}, content)
        fields = {"file_type": way.file_type, "file_name": form_name(file.name) or "file"}
        if way.ms:
            fields["duration"] = str(way.ms)
        content = UploadFile("file", file.name, file.path, file.mime or "application/octet-stream")
        return await self._api.upload("/open-apis/im/v1/files", fields, content)


def _voice(file: OutboundFile) -> Voice | None:
    """The bytes decide, as names and types call Opus many things. Blocks.

    Raises:
        ChannelError: the file cannot be read.
    """
    if not file.mime.startswith("audio/") and PurePath(file.name).suffix.lower() not in _VOICES:
        return None
    try:
        start, end = _edges(file.path)
    except OSError:
        raise ChannelError("a file to send cannot be read") from None  # theirs holds its path
    return Voice(opus_ms(start, end)) if is_opus(start) else None


def _edges(path: Path) -> tuple[bytes, bytes]:
    with open_content(path) as file:
        start = file.read(EDGE_BYTES)
        file.seek(max(file.seek(0, os.SEEK_END) - EDGE_BYTES, 0))
        return start, file.read(EDGE_BYTES)
