"""Sending a file as a response: streamed, as a download, under whatever name it has."""

from __future__ import annotations

import asyncio
import re
from typing import BinaryIO
from urllib.parse import quote

from aiohttp import web

from bridge.channel.contract import FileAnswer
from bridge.web.connection import SERVER_HEADERS

CHUNK_BYTES = 262_144

_MIME = re.compile(r"[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+")
_UNSAFE = re.compile(r'[^ -~]|["\\%]')


def disposition(name: str) -> str:
    """The ``Content-Disposition`` of a download called ``name``. Source: RFC 6266, section 4."""
    return f"attachment; filename=\"{_UNSAFE.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"


async def send_file(request: web.BaseRequest, answer: FileAnswer) -> web.StreamResponse:
    """Stream the file. A client that does not read is cut by its connection's own timer.

    Raises:
        FileNotFoundError: there is none (any more).
        ConnectionError: the client left, or the file ended too early; the connection is closed then.
    """
    response = web.StreamResponse(
        headers={
            "Content-Type": answer.mime if _MIME.fullmatch(answer.mime) else "application/octet-stream",
            "Content-Disposition": disposition(answer.name),
            "Content-Security-Policy": "sandbox",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-store",
            **SERVER_HEADERS,
        }
    )
    response.content_length = answer.size
    file = await asyncio.to_thread(answer.path.open, "rb")
    try:
        await response.prepare(request)
        if request.method != "HEAD":
            await _copy(file, response, answer.size)
        await response.write_eof()
    finally:
        file.close()
    return response


async def _copy(file: BinaryIO, response: web.StreamResponse, size: int) -> None:
    left = size
    while left:
        chunk = await asyncio.to_thread(file.read, min(CHUNK_BYTES, left))
        if not chunk:
            raise ConnectionError("the file is shorter than announced")
        await response.write(chunk)
        left -= len(chunk)
