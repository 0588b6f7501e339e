"""Section 13: cancelling."""

from tests.conformance.client import ENDS, LONG, Client, kinds
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.sections.s11_queue import waiting
from tests.conformance.target import Target


@rule("13.1-cancelled", Need.ECHO, broken_by="cancel-fails-turns cancel-answers own-cancel-ids")
async def cancelled(to: Target) -> None:
    """A cancel has no answer of its own: the turn ends with ``turn.cancelled`` under the turn's request
    id."""
    client = await to.session()
    request_id = client.ask("turn.start", prompt=LONG)
    turn_id = (await client.event("turn.started"))["turn_id"]
    client.ask("turn.cancel", turn_id=turn_id)
    event = await client.event("turn.cancelled")
    same((event.get("request_id"), event.get("turn_id")), (request_id, turn_id), "request id and turn id")
    await client.quiet("after a cancelled turn")


@rule("13.2-not-running", Need.ECHO, broken_by="cancels-anything")
async def not_running(to: Target) -> None:
    """What does not run, or runs in another session, is ``turn_not_found``; what runs goes on."""
    client = await to.session()
    await client.error("turn_not_found", client.ask("turn.cancel", turn_id="none"))
    turn_id = await client.hold()
    await client.error("turn_not_found", client.ask("turn.cancel", turn_id="none"))
    await client.error("turn_not_found", client.ask("turn.cancel", turn_id=turn_id, session_id="none"))
    await client.quiet("after cancels of something else")
    same((await client.cancel(turn_id))["type"], "turn.cancelled", "the turn's end")
    await client.error("turn_not_found", client.ask("turn.cancel", turn_id=turn_id))


@rule("13.3-twice", Need.ECHO, broken_by="second-cancel-refused")
async def twice(to: Target) -> None:
    """A second cancel before the turn's end is accepted silently."""
    client = await to.session()
    turn_id = await client.hold()
    client.raw(cancel(client, turn_id) * 2)
    same((await client.event())["type"], "turn.cancelled", "what follows two cancels")
    await client.quiet("after the cancelled turn")


def cancel(client: Client, turn_id: str) -> bytes:
    fields = f'"request_id":"c","session_id":"{client.session_id}","turn_id":"{turn_id}"'
    return f'{{"type":"turn.cancel",{fields}}}\n'.encode()


@rule("13.4-tools-stop", Need.ECHO, broken_by="tools-run-on")
async def tools_stop(to: Target) -> None:
    """A cancel stops the tool that runs."""
    client = await to.session()
    client.ask("turn.start", prompt="progress 300")
    turn_id = (await client.until("tool.started"))[-1]["turn_id"]
    end = await client.cancel(turn_id)
    same(end["type"], "turn.cancelled", "the turn's end")
    await to.pass_time(1.0)
    await client.quiet("after a cancelled tool")


@rule("13.5-questions-stop", Need.ECHO, broken_by="resolves-anything")
async def questions_stop(to: Target) -> None:
    """A cancel takes back what is being asked."""
    client = await to.session()
    client.ask("turn.start", prompt="write a.txt words")
    asked = (await client.until("approval.requested"))[-1]
    same((await client.cancel(asked["turn_id"]))["type"], "turn.cancelled", "the turn's end")
    request_id = client.ask("approval.resolve", approval_id=asked["approval_id"], approved=True)
    await client.error("approval_not_found", request_id)
    check(not (to.workspace / "a.txt").exists(), "the call ran after all")


@rule("13.6-not-for-waiting", Need.ECHO, broken_by="cancels-waiting")
async def not_for_waiting(to: Target) -> None:
    """What waits is not cancelled but removed: a cancel does not find it."""
    client, _, (entry,) = await waiting(to, "a")
    await client.error("turn_not_found", client.ask("turn.cancel", turn_id=entry["queue_id"]))
    same(await client.position(entry), 0, "the entry's position")


@rule("13.7-next-one", Need.ECHO, broken_by="cancel-drops-queue")
async def next_one(to: Target) -> None:
    """After a cancelled turn the next one starts."""
    client, turn_id, (entry,) = await waiting(to, "a")
    await client.cancel(turn_id)
    events = await client.until(*ENDS)
    same(kinds(events)[:2], ["queue.dequeued", "turn.started"], "what follows")
    same(events[-1].get("request_id"), entry["submitter"], "the request id")
