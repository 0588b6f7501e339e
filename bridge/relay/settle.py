"""Run something to its end in a task of its own, so that its error is a value and not the end of others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from bridge.errors import BridgeError

R = TypeVar("R")


async def settled(work: Coroutine[Any, Any, R], name: str) -> R | Exception:
    """What ``work`` returns, or the unexpected error that ended it; errors of ours are raised.

    An unexpected error in one message, an adapter's bug for example, must not end what runs beside it.
    Cancelling cancels ``work`` and waits for it.
    """
    task = asyncio.create_task(work, name=name)  # noqa: TID251 - awaited below
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
        await asyncio.wait([task])
    error = task.exception()
    if isinstance(error, Exception) and not isinstance(error, BridgeError):
        return error
    return task.result()
