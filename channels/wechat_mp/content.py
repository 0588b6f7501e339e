"""What one message holds, made of a part of a reply: a text, picture, voice or video, or a link to a file.

Source: https://developers.weixin.qq.com/doc/offiaccount/Asset_Management/New_temporary_materials.html
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from bridge.channel import OutboundFile, OutboundPart, Place, Refused, UnreachableError
from bridge.channel.addresses import SignedFiles, expiry, shown_name
from bridge.channel.http import UploadFile
from bridge.channel.text import clean, truncate
from channels.wechat_mp.api import Api
from channels.wechat_mp.wire import Fields, harmless

TEXT, IMAGE, VOICE, VIDEO = "text", "image", "voice", "video"
TEXT_BYTES: Final = 2048
_MIB: Final = 1024 * 1024
_NAME_BYTES = 300
_TITLE_BYTES = 60
_SHOWN = {  # by type: the message's kind, the most bytes, the ending that an upload wants
    "image/png": (IMAGE, 10 * _MIB, "png"),
    "image/jpeg": (IMAGE, 10 * _MIB, "jpg"),
    "image/gif": (IMAGE, 10 * _MIB, "gif"),
    "audio/amr": (VOICE, 2 * _MIB, "amr"),
    "audio/mpeg": (VOICE, 2 * _MIB, "mp3"),
    "audio/mp3": (VOICE, 2 * _MIB, "mp3"),
    "video/mp4": (VIDEO, 10 * _MIB, "mp4"),
}


@dataclass(frozen=True, slots=True)
class Content:
    """A message's kind with its fields, as the customer service's call has them.

    For ``keep_seconds`` more the copy of its file is fetched from us.
    """

    kind: str
    fields: Fields
    keep_seconds: float = 0.0


def text(said: str) -> Content:
    return Content(TEXT, {"content": harmless(clean(said))})


class Contents:
    """Makes contents; files go to the platform, or stay here under an address."""

    def __init__(self, api: Api, place: Place, files: SignedFiles) -> None:
        self._api = api
        self._place = place
        self._files = files

    async def of(self, part: OutboundPart | OutboundFile) -> Content | Refused:
        """What ``part`` goes as.

        Raises:
            ChannelError: its file could not be put on the platform now; which one as ``Api`` raises.
        """
        if isinstance(part, OutboundPart):
            return text(part.text) if part.text.strip() else Refused("WeChat shows no empty texts")
        if not await asyncio.to_thread(Path.is_file, part.path):
            return Refused("the file is gone")
        return await self._uploaded(part) or self._link(part)

    async def _uploaded(self, file: OutboundFile) -> Content | None:
        """As the platform shows it; None where it does not take it, which it may say only then."""
        kind, most_bytes, ending = _SHOWN.get(file.mime.lower(), ("", 0, ""))
        if not 0 < file.size <= most_bytes:
            return None
        upload = UploadFile("media", f"{kind}.{ending}", file.path, file.mime)
        result = await self._api.upload(kind, upload)
        media_id = result.text("media_id")
        if media_id:
            return Content(kind, {"media_id": media_id, **_titled(kind, file.name)})
        if result.code:
            return None
        raise UnreachableError(str(result.failed()))

    def _link(self, file: OutboundFile) -> Content | Refused:
        if not self._place.address:
            return Refused("WeChat does not take this file, and a link to it needs [web] public_url")
        now = self._api.now()
        expires = expiry(file.created_at or now, now)
        address = f"{self._place.address}/files/{self._files.token(file.path.name, expires)}"
        name = truncate(shown_name(file.name), _NAME_BYTES)
        said = text(f"{name} ({_shown_size(file.size)})\n{address}")
        return Content(said.kind, said.fields, (expires - now).total_seconds())


def _titled(kind: str, name: str) -> Fields:
    stem = harmless(PurePath(shown_name(name)).stem)
    return {"title": truncate(stem, _TITLE_BYTES)} if kind == VIDEO else {}


def _shown_size(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.1f} KiB" if size < _MIB else f"{size / _MIB:.1f} MiB"
