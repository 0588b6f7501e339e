"""Fetching what a follower sent: by its media id, or from the address that the platform gives instead.

Source: https://developers.weixin.qq.com/doc/offiaccount/Asset_Management/Get_temporary_materials.html
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from bridge.channel import ChannelError, Incoming, RemoteFile
from bridge.channel.http import Stream
from channels.wechat_mp import codes
from channels.wechat_mp.answers import Result
from channels.wechat_mp.api import Api
from channels.wechat_mp.messages import MediaKey

_GET = "/cgi-bin/media/get"
_GET_BETTER = "/cgi-bin/media/get/jssdk"  # a voice at 16 kHz


@asynccontextmanager
async def fetched(api: Api, file: RemoteFile, max_bytes: int) -> AsyncIterator[Incoming]:
    """The file's bytes.

    Raises:
        ChannelError: it cannot be had.
    """
    try:
        key = MediaKey.read(file.key)
    except (ValueError, TypeError):
        raise ChannelError("the file's key is not one of this channel") from None
    async with AsyncExitStack() as stack:
        stream = await _opened(api, key, stack)
        yield Incoming(stream.chunks(max_bytes), stream.name or file.name, stream.mime, stream.size)


async def _opened(api: Api, key: MediaKey, stack: AsyncExitStack) -> Stream:
    """The first way that leads to the bytes.

    The ordinary recording of a voice comes before the better one, which few programs can play. An account
    that may not fetch files can still have its pictures, by the address that came with them.
    """
    refused = Result(None, "nothing to fetch", "the message", {})
    for path, media_id in _ways(key):
        found = await stack.enter_async_context(api.download(path, {"media_id": media_id}))
        if isinstance(found, Stream):
            return found
        if address := found.text("video_url"):
            return await stack.enter_async_context(api.public(address))
        refused = found
    if key.address and refused.code in (None, codes.NOT_GRANTED):
        return await stack.enter_async_context(api.public(key.address))
    raise refused.failed()


def _ways(key: MediaKey) -> Iterator[tuple[str, str]]:
    if key.media_id:
        yield _GET, key.media_id
    if key.better:
        yield _GET_BETTER, key.better
