"""Reading a request's body: bounded in size, in time, and over all requests together."""

from __future__ import annotations

import asyncio
from typing import cast

from aiohttp import StreamReader, web

from bridge.channel import Answer
from bridge.web.connection import Connection

ALL_BODIES_BYTES = 128 * 1_048_576  # of slow bodies, held at once; those that came in one go are not counted


def refusal(status: int, error: str, **headers: str) -> Answer:
    return Answer(status, b'{"error":"%s"}' % error.encode(), headers=headers)


class BodyReader:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._held = 0

    async def read(self, request: web.BaseRequest, limit: int) -> bytes | Answer:
        """The body, or the refusal: it is over ``limit`` bytes, too slow, compressed, or broken."""
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            return refusal(415, "compressed")
        if (request.content_length or 0) > limit:
            return refusal(413, "too_large")
        content = request.content
        if content.is_eof():  # it came with the header: nothing to wait for
            data = content.read_nowait(-1)
            return data if len(data) <= limit else refusal(413, "too_large")
        return await self._slowly(request, limit)

    async def _slowly(self, request: web.BaseRequest, limit: int) -> bytes | Answer:
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # the answer proper has not begun
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._collect(request.content, limit)
        except TimeoutError:
            return refusal(408, "too_slow")
        except web.RequestPayloadError:
            return refusal(400, "bad_request")
        return refusal(400, "bad_request") if cast(Connection, request.protocol).is_broken else body

    async def _collect(self, content: StreamReader, limit: int) -> bytes | Answer:
        body = bytearray()
        counted = 0
        try:
            while chunk := await content.readany():
                body += chunk
                self._held += len(chunk)
                counted += len(chunk)
                if counted > limit:
                    return refusal(413, "too_large")
                if self._held > ALL_BODIES_BYTES:
                    return refusal(503, "busy", **{"Retry-After": "5"})
            return bytes(body)
        finally:
            self._held -= counted
