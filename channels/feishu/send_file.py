"""Sending a file: put it on the platform, then send its key, in the best form that the platform takes.

Source: https://open.feishu.cn/document/server-docs/im-v1/image/create and …/im-v1/file/create
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from bridge.channel import FileKind, OutboundFile, Refused, SendOutcome
from bridge.channel.http import UploadFile
from channels.feishu import codes
from channels.feishu.api import Api, Result
from channels.feishu.send import Form, Sender, refused
from channels.feishu.wire import text_of

MAX_FILE_BYTES = 30 * 1024 * 1024
MAX_IMAGE_BYTES = 10 * 1024 * 1024
_SHOWN = frozenset(
    f"image/{kind}"
    for kind in ("jpeg", "png", "webp", "gif", "bmp", "x-icon", "vnd.microsoft.icon", "tiff", "heic")
)
_BY_ENDING = {
    ".pdf": "pdf", ".doc": "doc", ".docx": "doc", ".xls": "xls", ".xlsx": "xls",
    ".ppt": "ppt", ".pptx": "ppt",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Way:
    """How a file goes: its message's type, and the type that it is uploaded as (``""``: a picture)."""

    message: str
    file_type: str = ""


def ways(file: OutboundFile) -> Iterator[Way]:
    """The forms for ``file``, best first; the last takes anything."""
    if file.kind == FileKind.IMAGE and file.mime in _SHOWN and file.size <= MAX_IMAGE_BYTES:
        yield Way("image")
    ending = PurePath(file.name).suffix.lower()
    if file.kind == FileKind.VIDEO and file.mime == "video/mp4":
        yield Way("media", "mp4")
    if file.kind == FileKind.AUDIO and (file.mime == "audio/opus" or ending == ".opus"):
        yield Way("audio", "opus")
    yield Way("file", _BY_ENDING.get(ending, "stream"))


class FileSender:
    def __init__(self, api: Api, sender: Sender) -> None:
        self._api = api
        self._sender = sender

    async def send(self, file: OutboundFile) -> SendOutcome:
        """Send one file; errors as ``Sender.form``, and ChannelError when the file cannot be read."""
        if file.size <= 0:
            return Refused("Feishu takes no empty files")
        if file.size > MAX_FILE_BYTES:
            return Refused("the file is over 30 MB, the most that Feishu takes")
        outcome: SendOutcome | Result = Refused("there is nothing to send")
        for way in ways(file):
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
        fields = {"file_type": way.file_type, "file_name": plain_file_name(file.name)}
        content = UploadFile("file", file.name, file.path, file.mime or "application/octet-stream")
        return await self._api.upload("/open-apis/im/v1/files", fields, content)


def plain_file_name(name: str) -> str:
    """``name`` in its own letters: only what no name may hold becomes ``_``."""
    return "".join("_" if each in '"\\' or not each.isprintable() else each for each in name) or "file"
