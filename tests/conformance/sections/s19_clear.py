"""Section 19: a session that is cleared."""

from tests.conformance.client import Client, kinds
from tests.conformance.faults import brief, check, same
from tests.conformance.rules import Need, rule
from tests.conformance.sections.s12_pause import pause
from tests.conformance.target import Target


async def clear(client: Client) -> None:
    request_id = client.ask("session.clear")
    cleared, snapshot = await client.event("session.cleared"), await client.event("queue.snapshot")
    same(cleared.get("request_id"), request_id, "the request id")
    same((snapshot.get("request_id"), snapshot.get("entries")), (None, []), "the snapshot")


@rule("19.1-answer", broken_by="clears-silently")
async def answer(to: Target) -> None:
    """A clear is answered with ``session.cleared``, then a snapshot without request id and entries."""
    client = await to.session()
    await clear(client)
    await client.turn()
    await clear(client)
    await client.quiet("after a clear")


@rule("19.2-idle", Need.ECHO, broken_by="clears-while-busy")
async def idle(to: Target) -> None:
    """While a turn runs a clear is ``turn_active``, and changes nothing."""
    client = await to.session()
    turn_id = await client.hold()
    (entry,) = await client.queued("a")
    await client.error("turn_active", client.ask("session.clear"))
    same(await client.position(entry), 0, "the position of what waits")
    same((await client.cancel(turn_id))["type"], "turn.cancelled", "the turn's end")


@rule("19.3-own-session", broken_by="any-session")
async def own_session(to: Target) -> None:
    """A clear of no session or another one is ``session_not_found``."""
    client = await to.client()
    await client.error("session_not_found", client.say("session.clear", session_id="none"))
    await client.start()
    await client.error("session_not_found", client.ask("session.clear", session_id="none"))


@rule("19.4-history", Need.ECHO, broken_by="clear-remembers")
async def history(to: Target) -> None:
    """After a clear nothing of before is known."""
    client = await to.session()
    await client.turn("the word is fig")
    await clear(client)
    answer = await client.answer("history")
    check("fig" not in answer, f"the history is {brief(answer)}")


@rule("19.5-queue", broken_by="clear-keeps-queue")
async def queue(to: Target) -> None:
    """A clear drops what waits."""
    client = await to.session()
    await pause(client, True)
    entries = await client.queued("a", "b")
    await clear(client)
    for entry in entries:
        where = {"queue_id": entry["queue_id"], "revision": 1}
        await client.error("queue_not_found", client.ask("queue.remove", **where))
    await pause(client, False)
    await client.quiet("after a clear")


@rule("19.6-pause", broken_by="clear-unpauses")
async def stays_paused(to: Target) -> None:
    """A clear keeps the pause."""
    client = await to.session()
    await pause(client, True)
    client.ask("session.clear")
    events = await client.until("queue.snapshot")
    same(
        (kinds(events), events[-1].get("paused")), (["session.cleared", "queue.snapshot"], True), "the answer"
    )
    await client.queued("a")
    await client.quiet("while paused")
