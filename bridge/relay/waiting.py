"""Waiting for something to happen, but not for ever, by the injected clock."""

from __future__ import annotations

import asyncio

from bridge.clock import Clock


async def happens(event: asyncio.Event, seconds: float, clock: Clock) -> bool:
    """Whether ``event`` is set within ``seconds``. Returns as soon as it is."""
    if event.is_set() or seconds <= 0:
        return event.is_set()
    async with asyncio.TaskGroup() as tasks:
        waits = {tasks.create_task(event.wait()), tasks.create_task(clock.sleep(seconds))}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()
    return event.is_set()
