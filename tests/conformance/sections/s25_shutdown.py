"""Section 25: how a server stops."""

import asyncio

from tests.conformance.client import Event, kinds
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.sections.s24_backpressure import stopping
from tests.conformance.target import Target


@rule("25.1-turns-end", Need.ECHO, Need.STARTS, ours=True, broken_by="stops-in-silence")
async def turns_end(to: Target) -> None:
    """A stop ends each running turn with ``turn.cancelled`` and closes the connections; what waits is
    dropped."""
    clients = [await to.session() for _ in range(3)]
    for client in clients:
        await client.hold()
        await client.queued("never")
    reading: list[asyncio.Task[list[Event]]] = []
    async with asyncio.TaskGroup() as tasks:
        reading = [tasks.create_task(client.rest()) for client in clients]
        await to.stop()
    for task in reading:
        same(kinds(task.result()), ["turn.cancelled"], "what a stop says")


@rule("25.2-recorded", Need.ECHO, Need.STARTS, ours=True, broken_by="stops-unrecorded")
async def recorded(to: Target) -> None:
    """A turn that a stop ended is told as cancelled to who attaches its session to the next server."""
    client = await to.session()
    turn_id = await client.hold()
    await to.stop()
    await to.start()
    again = await to.client()
    await again.attach(client.session_id)
    events = await again.until("turn.cancelled", "turn.failed", "turn.completed")
    same((events[-1]["type"], events[-1].get("turn_id")), ("turn.cancelled", turn_id), "the turn's end")


@rule("25.3-in-parallel", Need.ECHO, Need.STARTS, broken_by="stops-one-by-one")
async def in_parallel(to: Target) -> None:
    """All connections are ended side by side, within the time for one."""
    for _ in range(8):
        await (await to.session()).hold()
    took = await stopping(to)
    check(took < to.stop_seconds + to.patience_seconds, f"the stop took {took:.1f} seconds")


@rule("25.4-nobody-new", Need.STARTS, broken_by="lingers")
async def nobody_new(to: Target) -> None:
    """A server that has stopped takes nobody."""
    await to.stop()
    try:
        client = await to.connect()
    except OSError:
        return
    check(await client.is_closed(), "a server that stopped takes clients")
