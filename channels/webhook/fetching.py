"""Fetching the files that a message brought, from its own bytes or from a host that the operator listed."""

import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from yarl import URL

from bridge.channel import ChannelError, Http, Incoming, RemoteFile
from channels.webhook.attached import decode_content
from channels.webhook.settings import WebhookCredentials, WebhookSettings, is_encrypted, names_host

_CHUNK_BYTES = 65_536


def may_fetch(settings: WebhookSettings) -> Callable[[URL], bool]:
    """Whether an address leads to a host that the operator listed, encrypted or explicitly not."""

    def judge(url: URL) -> bool:
        return names_host(settings.file_hosts, url) and is_encrypted(str(url), settings.private_hosts)

    return judge


class Fetcher:
    """Opens the files of messages. The guard judges every address, also of a listed host."""

    def __init__(self, settings: WebhookSettings, credentials: WebhookCredentials, http: Http) -> None:
        self._settings, self._http = settings, http
        self._token = credentials.file_token.get_secret_value()

    @asynccontextmanager
    async def open(self, file: RemoteFile, max_bytes: int) -> AsyncIterator[Incoming]:
        """The file's bytes; what the message said of their size and digest must be true.

        Raises:
            ChannelError: it cannot be had, or is not the file that was announced.
        """
        key: dict[str, str] = json.loads(file.key)
        if "content" in key:
            content = decode_content(key["content"])
            yield Incoming(_pieces(content), file.name, file.mime, len(content))
            return
        async with self._download(key["url"], key.get("sha256", ""), file, max_bytes) as incoming:
            yield incoming

    @asynccontextmanager
    async def _download(
        self, address: str, sha256: str, file: RemoteFile, max_bytes: int
    ) -> AsyncIterator[Incoming]:
        url = URL(address, encoded=address.isascii())
        if not may_fetch(self._settings)(url):
            raise ChannelError("a file's host is not in file_hosts any more")
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        http = self._http.at(str(url.origin()), allow=self._settings.private_hosts, guarded=True)
        async with http.stream(address, headers=headers) as stream:
            if stream.status != 200:
                raise ChannelError(f"a file's host answered with status {stream.status}")
            async with aclosing(_verified(stream.chunks(max_bytes), file.size, sha256)) as chunks:
                yield Incoming(chunks, file.name, file.mime or stream.mime, stream.size)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), _CHUNK_BYTES):
        yield content[at : at + _CHUNK_BYTES]


async def _verified(
    chunks: AsyncGenerator[bytes, None], size: int | None, sha256: str
) -> AsyncGenerator[bytes, None]:
    digest, seen = hashlib.sha256(), 0
    async with aclosing(chunks):
        async for chunk in chunks:
            seen += len(chunk)
            if size is not None and seen > size:
                break
            digest.update(chunk)
            yield chunk
    if size not in (None, seen):
        raise ChannelError("a file is not the one that the message announced: its size differs")
    if sha256 and digest.hexdigest() != sha256:
        raise ChannelError("a file is not the one that the message announced: its sha256 differs")
