"""Run something to its end in a task of its own, so that its error is a value and not the end of others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from bridge.errors import BridgeError


async def settled(work: Coroutine[Any, Any, None], name: str) -> Exception | None:
    """The error that ended ``work``, if it is none of ours; ours are raised. Cancelling cancels ``work``.

    An unexpected error in one message, an adapter's bug for example, must not end what runs beside it.
    """
    task = asyncio.create_task(work, name=name)  # noqa: TID251 - awaited below
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
        await asyncio.wait([task])
    error = task.exception()
    if error is None:
        return None
    if isinstance(error, Exception) and not isinstance(error, BridgeError):
        return error
    raise error
