"""Section 24: clients that do not read."""

import asyncio

from tests.conformance.client import Client, encode, kinds, one
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

MUCH = "\n".join(["long 200000"] * 5)  # a thousand deltas and a text of a million characters: more than waits


async def stalled(to: Target) -> tuple[Client, str]:
    """A client that stopped reading in the middle of a long answer; and the turn's id."""
    client = await to.session()
    client.ask("turn.start", prompt=MUCH)
    turn_id = (await client.until("assistant.delta"))[-1]["turn_id"]
    client.listen(False)
    await fill_up(to)
    return client, turn_id


async def fill_up(to: Target) -> None:
    """Let the server do all that it can for clients that do not read."""
    for _ in range(10):
        await to.settle()


def flood(client: Client, count: int = 2000) -> None:
    """Ask for more than is taken for a client that does not read: some 16 MB of answers."""
    asked = {"type": "turn.cancel", "request_id": "x" * 8000, "session_id": "s", "turn_id": "t"}
    client.raw((encode(asked).encode() + b"\n") * count)


@rule("24.1-turns-wait", Need.ECHO, broken_by="drops-events impatient-turns")
async def turns_wait(to: Target) -> None:
    """A turn's events wait for a slow client for as long as it takes: none is lost."""
    client, _ = await stalled(to)
    await asyncio.sleep(2 * to.reply_seconds)
    client.listen(True)
    events = await client.to_end()
    same(events[-1]["type"], "turn.completed", "the turn's end")
    deltas = "".join(event["content"] for event in client.events if event["type"] == "assistant.delta")
    same(len(one(events, "assistant.completed")["content"]), len(deltas), "the length of the text")
    seqs = [event["seq"] for event in client.events if "seq" in event]
    same(seqs, list(range(seqs[0], seqs[0] + len(seqs))), "the numbers")


@rule("24.2-cancel-while-waiting", Need.ECHO, broken_by="uncancellable-waits")
async def cancel_while_waiting(to: Target) -> None:
    """A cancel is heard while events wait for room."""
    client, turn_id = await stalled(to)
    client.ask("turn.cancel", turn_id=turn_id)
    await client.flushed()
    await to.settle()
    client.listen(True)
    events = await client.to_end()
    same(events[-1]["type"], "turn.cancelled", "the turn's end")
    check("assistant.completed" not in kinds(events), "the turn went on to its end")


@rule("24.3-given-up", broken_by="patient-replies")
async def given_up(to: Target) -> None:
    """A client that does not read the answers to its own requests is given up after some seconds."""
    client = await to.session()
    client.listen(False)
    flood(client)
    await asyncio.sleep(2 * to.reply_seconds)
    client.listen(True)
    answers = await client.rest()
    check(len(answers) < 2000, "all requests were answered")


@rule("24.4-others-go-on", Need.ECHO, Need.SHARED, broken_by="one-for-all")
async def others_go_on(to: Target) -> None:
    """A client that does not read delays no other."""
    stuck, _ = await stalled(to)
    flooding = await to.session()
    flooding.listen(False)
    flood(flooding)
    await fill_up(to)
    other = await to.session()
    same((await other.turn())[-1]["type"], "turn.completed", "another client's turn")
    stuck.listen(True)
    same((await stuck.to_end())[-1]["type"], "turn.completed", "the end of the turn that waited")


@rule("24.5-stop-in-time", Need.ECHO, Need.STARTS, broken_by="waits-for-readers")
async def stop_in_time(to: Target) -> None:
    """A client that does not read does not hold up the server's stop."""
    stuck, _ = await stalled(to)
    flooding = await to.session()
    flooding.listen(False)
    flood(flooding)
    await fill_up(to)
    took = await stopping(to)
    stuck.abort()
    check(took < to.stop_seconds + to.patience_seconds, f"the stop took {took:.1f} seconds")


async def stopping(to: Target) -> float:
    """Stop the server; returns the seconds that it took."""
    began = asyncio.get_running_loop().time()
    await to.stop()
    return asyncio.get_running_loop().time() - began
