"""Section 12: a session that is paused."""

from tests.conformance.client import Client, kinds
from tests.conformance.faults import same
from tests.conformance.rules import Need, rule
from tests.conformance.sections.s11_queue import waiting
from tests.conformance.target import Target


async def pause(client: Client, paused: bool) -> None:
    request_id = client.ask("session.pause", paused=paused)
    event = await client.event("session.paused")
    same((event.get("request_id"), event.get("paused")), (request_id, paused), "the answer to a pause")


@rule("12.1-answered", broken_by="answers-changes-only")
async def answered(to: Target) -> None:
    """``session.pause`` is always answered, also where it changes nothing."""
    client = await to.session()
    for paused in (False, True, True, False, False):
        await pause(client, paused)


@rule("12.2-nothing-starts", Need.ECHO, broken_by="pause-is-ignored")
async def nothing_starts(to: Target) -> None:
    """While paused, nothing is taken from the queue."""
    client, turn_id, _ = await waiting(to, "a")
    await pause(client, True)
    await client.cancel(turn_id)
    await client.quiet("while paused")


@rule("12.3-running-goes-on", Need.ECHO, broken_by="pause-cancels")
async def running_goes_on(to: Target) -> None:
    """A pause does not touch the turn that runs."""
    client = await to.session()
    client.ask("turn.start", prompt="slow 2")
    await client.event("turn.started")
    await pause(client, True)
    async with to.passing():
        end = (await client.until("turn.completed", "turn.cancelled"))[-1]
    same(end["type"], "turn.completed", "the turn's end")


@rule("12.4-order-kept", Need.ECHO, broken_by="pause-clears last-first")
async def order_kept(to: Target) -> None:
    """Pausing and going on keep the entries and their order."""
    client, turn_id, entries = await waiting(to, "a", "b")
    await pause(client, True)
    await client.cancel(turn_id)
    same([await client.position(entry) for entry in entries], [0, 1], "the positions while paused")
    await pause(client, False)
    for entry in entries:
        same((await client.until("queue.dequeued"))[-1].get("queue_id"), entry["queue_id"], "what starts")


@rule("12.5-goes-on", Need.ECHO, ours=True, broken_by="unpausing-starts-nothing")
async def goes_on(to: Target) -> None:
    """Going on while idle starts the first waiting entry at once."""
    client, turn_id, (entry,) = await waiting(to, "a")
    await pause(client, True)
    await client.cancel(turn_id)
    await pause(client, False)
    events = await client.until("turn.completed")
    same(kinds(events)[:2], ["queue.dequeued", "turn.started"], "what follows")
    same(events[0].get("queue_id"), entry["queue_id"], "the entry that starts")


@rule("12.6-paused-is-queued", ours=True, broken_by="pause-is-ignored starts-while-paused")
async def paused_is_queued(to: Target) -> None:
    """A turn that is asked for while paused and idle waits."""
    client = await to.session()
    await pause(client, True)
    client.ask("turn.start", prompt="hello")
    await client.event("queue.enqueued")
    await client.quiet("while paused")
