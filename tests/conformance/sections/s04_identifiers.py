"""Section 4: ids, and the numbers of events."""

import uuid

from tests.conformance import wire
from tests.conformance.client import LONG, one
from tests.conformance.faults import brief, check, same
from tests.conformance.rules import Need, rule
from tests.conformance.sections.s03_writing import ODD, tour
from tests.conformance.target import Target


@rule("4.1-request-id", broken_by="trims-request-ids short-request-ids")
async def request_id(to: Target) -> None:
    """A request id is any text, and comes back as it was given."""
    client = await to.client()
    for said in (ODD, "", " a ", "x" * 10_000, "0", "\u0000"):
        client.say("turn.cancel", request_id=said, session_id="s", turn_id="t")
        same((await client.event("error")).get("request_id"), said, "the request id")


@rule("4.2-not-unique", broken_by="unique-request-ids")
async def not_unique(to: Target) -> None:
    """A request id may be used again."""
    client = await to.session()
    for _ in range(2):
        client.ask("session.pause", request_id="again", paused=True)
        same((await client.event("session.paused")).get("request_id"), "again", "the request id")


@rule("4.3-uuids", Need.ECHO, broken_by="plain-ids")
async def uuids(to: Target) -> None:
    """Sessions, turns, queue entries and approvals are named by UUIDs that the server makes."""
    client = await to.session()
    turn_id = await client.hold()
    entry = (await client.queued("write a.txt words"))[0]
    await client.cancel(turn_id)
    asked = (await client.until("approval.requested"))[-1]
    for name in (client.session_id, turn_id, entry["queue_id"], asked["turn_id"], asked["approval_id"]):
        check(_is_uuid(name), f"{brief(name)} is no UUID")


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


@rule("4.4-never-again", broken_by="ids-again")
async def never_again(to: Target) -> None:
    """No id is used twice, in one session or over several."""
    seen: list[str] = []
    for _ in range(2):
        client = await to.session()
        seen.append(client.session_id)
        for _ in range(3):
            seen.append((await client.turn())[0]["turn_id"])
        await client.close()
    same(len(set(seen)), len(seen), "the number of different ids")


@rule("4.5-no-id", broken_by="guesses-request-ids")
async def no_id(to: Target) -> None:
    """The error for a line that is no message carries no request id, even where the line holds one."""
    client = await to.client()
    for line in (
        '{"type":"fly","request_id":"a"}',
        '{"request_id":"a"',
        '{"type":"session.clear","request_id":"a"}',
    ):
        await client.refused(line)


@rule("4.6-numbers", Need.ECHO, broken_by="gaps-in-seq seq-from-zero seq-repeats")
async def numbers(to: Target) -> None:
    """``seq`` counts the events of a session from 1 without a gap, those of turns, queue, pause and clear
    alike."""
    client = await tour(to)
    await client.cancel(await client.hold())
    await client.turn("steps 3")
    found = [event.get("seq") for event in client.events if event["type"] in wire.NUMBERED]
    same(found, list(range(1, len(found) + 1)), "the numbers")


@rule("4.7-unnumbered", broken_by="numbers-errors")
async def unnumbered(to: Target) -> None:
    """``initialized``, ``session.started``, ``daemon.status`` and ``error`` carry no number and use none."""
    client = await tour(to)
    for event in client.events:
        check(
            ("seq" in event) == (event["type"] in wire.NUMBERED), f"{event['type']}: seq or its lack is wrong"
        )


@rule("4.8-over-clear", broken_by="clear-resets-seq")
async def over_clear(to: Target) -> None:
    """``session.clear`` does not start the numbers anew."""
    client = await to.session()
    await client.turn()
    last = client.events[-1]["seq"]
    client.ask("session.clear")
    cleared = await client.until("queue.snapshot")
    same([event.get("seq") for event in cleared], [last + 1, last + 2], "the numbers after the clear")


@rule("4.9-each-its-own", Need.ECHO, Need.SHARED, broken_by="shared-seq")
async def each_its_own(to: Target) -> None:
    """Each session has numbers of its own."""
    first, second = await to.session(), await to.session()
    first.ask("turn.start", prompt=LONG)
    await first.event("turn.started")
    events = await second.turn()
    same(one(events, "turn.started").get("seq"), 2, "the number of the second session's first turn")
