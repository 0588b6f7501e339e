"""Sending as the account's customer service, which must be granted to it, and to those who wrote lately.

Source: https://developers.weixin.qq.com/doc/offiaccount/Message_Management/Service_Center_messages.html
"""

from bridge.channel import (
    Delivered,
    OutboundFile,
    OutboundPart,
    OutcomeUnknownError,
    Refused,
    SendOutcome,
    UnreachableError,
)
from bridge.channel.http import UploadFile
from channels.wechat_mp.answers import Result
from channels.wechat_mp.api import Api
from channels.wechat_mp.content import VIDEO, Content, Contents
from channels.wechat_mp.thumb import JPEG

_SEND = "/cgi-bin/message/custom/send"
_TYPING = "/cgi-bin/message/custom/typing"
TYPING_SECONDS = 15.0


class Sender:
    def __init__(self, api: Api, contents: Contents) -> None:
        self._api = api
        self._contents = contents

    async def send(self, part: OutboundPart | OutboundFile) -> SendOutcome:
        """Send one part; the platform knows no client ids.

        Raises:
            UnreachableError: not accepted. OutcomeUnknownError: maybe. CredentialsError: the account is
            refused.
        """
        content = await self._contents.of(part)
        if isinstance(content, Refused):
            return content
        fields = content.fields | await self._cover(content)
        result = await self._api.post(
            _SEND, {"touser": part.to, "msgtype": content.kind, content.kind: fields}
        )
        if result.code is None:
            raise OutcomeUnknownError(str(result.failed()))
        return _refused(result) if result.code else Delivered(keep_file_seconds=content.keep_seconds)

    async def typing(self, to: str) -> None:
        """Show that work is under way, for ``TYPING_SECONDS``.

        Raises:
            ChannelError: it is not shown.
        """
        await self._typing(to, "Typing")

    async def typing_over(self, to: str) -> None:
        """Show it no longer; raises ChannelError."""
        await self._typing(to, "CancelTyping")

    async def _typing(self, to: str, command: str) -> None:
        result = await self._api.post(_TYPING, {"touser": to, "command": command})
        if result.code != 0:
            raise result.failed()

    async def _cover(self, content: Content) -> dict[str, str]:
        """A video wants a picture to show before it is played: a plain one, as we can make none of it."""
        if content.kind != VIDEO:
            return {}
        result = await self._api.upload("thumb", UploadFile("media", "thumb.jpg", JPEG, "image/jpeg"))
        cover = result.text("thumb_media_id") or result.text("media_id")
        if not cover:
            raise UnreachableError(str(result.failed()))
        return {"thumb_media_id": cover}


def _refused(result: Result) -> Refused:
    return Refused(f"WeChat: {result.reason}", str(result.code))
