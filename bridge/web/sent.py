"""Writing a response that is a send: whoever sends it learns whether there was still somebody to read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from aiohttp import web

from bridge.web.connection import Connection


async def write_sent(
    request: web.BaseRequest, response: web.Response, written: Callable[[bool | None], None]
) -> web.Response:
    """Write ``response`` and tell how that went, as ``SentAnswer`` says.

    A client that has closed its half of the connection counts as gone: mostly it has closed both.

    Raises:
        ConnectionError: the client is gone.
    """
    connection = cast(Connection, request.protocol)
    how: bool | None = False
    try:
        if connection.has_hung_up:
            raise ConnectionError("the client is gone")
        how = None  # from its first byte on, until all of it is out
        await response.prepare(request)
        await response.write_eof()
        how = connection.transport is not None and not connection.transport.is_closing()
    except ConnectionError:
        how = None if request.writer.output_size else False
        raise
    finally:
        written(how)
    return response
