"""Sending a file as a response: streamed, as a download, under whatever name it has."""

from __future__ import annotations

import asyncio
import re
from typing import BinaryIO

from aiohttp import web

from bridge.channel.contract import FileAnswer
from bridge.channel.multipart import disposition
from bridge.web.connection import SERVER_HEADERS

CHUNK_BYTES = 262_144

_MIME = re.compile(r"[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+")


async def send_file(request: web.BaseRequest, answer: FileAnswer) -> web.StreamResponse:
    """Stream the file, or the range of it that is asked for.

    A client that does not read is cut by its connection's own timer.

    Raises:
        FileNotFoundError: there is none (any more).
        ConnectionError: the client left, or the file ended too early; the connection is closed then.
    """
    part = wanted_range(request, answer.size)
    if not part and answer.size:
        return web.Response(status=416, headers={"Content-Range": f"bytes */{answer.size}", **SERVER_HEADERS})
    response = web.StreamResponse(
        status=200 if len(part) == answer.size else 206,
        headers={
            "Content-Type": answer.mime if _MIME.fullmatch(answer.mime) else "application/octet-stream",
            "Content-Disposition": disposition(answer.name),
            "Content-Security-Policy": "sandbox",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-store",
            "Accept-Ranges": "bytes",
            **SERVER_HEADERS,
        },
    )
    response.content_length = len(part)
    if response.status == 206:
        response.headers["Content-Range"] = f"bytes {part[0]}-{part[-1]}/{answer.size}"
    file = await asyncio.to_thread(answer.path.open, "rb")
    try:
        await response.prepare(request)
        if request.method != "HEAD":
            await _copy(file, response, part)
        await response.write_eof()
    finally:
        file.close()
    return response


def wanted_range(request: web.BaseRequest, size: int) -> range:
    """The positions of the bytes that are asked for: all of them, unless a GET asks for one range that is.

    Several ranges, and one that cannot be read or has a condition, are answered with everything. Empty: the
    range begins behind the end. Source: RFC 9110, section 14 (read 2026-11-30).
    """
    whole = range(size)
    if request.method != "GET" or "If-Range" in request.headers:
        return whole
    try:
        return whole[request.http_range]
    except ValueError:
        return whole


async def _copy(file: BinaryIO, response: web.StreamResponse, part: range) -> None:
    left = len(part)
    file.seek(part.start)
    while left:
        chunk = await asyncio.to_thread(file.read, min(CHUNK_BYTES, left))
        if not chunk:
            raise ConnectionError("the file is shorter than announced")
        await response.write(chunk)
        left -= len(chunk)
