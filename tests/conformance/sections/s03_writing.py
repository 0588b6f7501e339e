"""Section 3, and the tables of 7 and 8: what a server writes."""

from tests.conformance import wire
from tests.conformance.client import Client, one
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

ODD = 'q " \\ / \b \f \n \r \t \x00 \x1f \x7f \u2028 é 中 \U0001f600'


async def tour(to: Target) -> Client:
    """A session that meets most events; returns its client."""
    client = await to.client()
    client.line("x")
    await client.event()
    await client.start()
    await client.turn(ODD)
    client.ask("session.pause", paused=True)
    await client.event("session.paused")
    file = to.workspace / "tour.txt"
    file.write_text("x")
    attachment = {"kind": "file", "path": str(file), "size": 1, "name": "", "mime": "", "transcript": ""}
    client.ask("turn.start", prompt="a", request_id=ODD)
    client.ask("turn.start", prompt="b", attachments=[attachment])
    first, second = [(await client.event("queue.enqueued"))["entry"] for _ in range(2)]
    where = {"queue_id": second["queue_id"], "revision": second["revision"]}
    client.ask("queue.update", **where, prompt="c")
    where["revision"] = (await client.event("queue.updated"))["entry"]["revision"]
    client.ask("queue.move", **where, before_queue_id=first["queue_id"])
    where["revision"] = (await client.event("queue.moved"))["revision"]
    client.ask("queue.remove", **where)
    await client.event("queue.removed")
    client.ask("session.pause", paused=False)
    await client.until("turn.completed")
    client.ask("session.clear")
    await client.until("queue.snapshot")
    return client


async def tour_of_tools(to: Target) -> Client:
    """What the echo agent makes of tools, approvals, failures and files."""
    client = await to.session(channel="Slack")
    (to.workspace / "tour.txt").write_text("x")
    await client.turn('write "b.txt" "some words"')
    await client.turn('attach tour.txt "a caption"')
    await client.turn("fail context_limit")
    await client.turn("write c.txt no", approve=False)
    await client.cancel(await client.hold())
    return client


def held(client: Client) -> None:
    for line in client.lines:
        wire.check_event(wire.read(line))


@rule("3.30-compact", broken_by="spaced-out escaped-out slashes-out")
async def compact(to: Target) -> None:
    """Frames are compact: no blanks, non-ASCII raw, ``/`` as it is, controls in their one short form."""
    for line in (await tour(to)).lines:
        wire.read(line)


@rule("3.31-order", broken_by="sorted-out tag-last-out")
async def order(to: Target) -> None:
    """Keys come in the order of the tables, the tag first, and every field is of its type."""
    held(await tour(to))


@rule("3.32-free-form", Need.ECHO, broken_by="unsorted-arguments")
async def free_form(to: Target) -> None:
    """The keys of free-form objects are sorted."""
    client = await to.session(channel="Slack")
    (to.workspace / "a.txt").write_text("x")
    events = await client.turn('attach a.txt "b"')
    same(list(one(events, "tool.proposed")["arguments"]), ["caption", "path"], "the keys")


@rule("3.33-left-out", broken_by="null-origin")
async def left_out(to: Target) -> None:
    """An optional field is left out when absent, never null."""
    client = await to.client()
    client.line("x")
    check("request_id" not in await client.event("error"), "an error without a request has a request id")
    await client.start()
    for event in await client.turn():
        check("origin" not in event, f"{event['type']} of a client's turn has an origin")


@rule("3.34-null", broken_by="drops-nulls")
async def null(to: Target) -> None:
    """A field that may be null is written as null when absent."""
    client = await to.session()
    snapshot = client.events[-1]
    check("request_id" in snapshot and snapshot["request_id"] is None, "a snapshot has no null request id")
    same(snapshot.get("entries"), [], "the entries of an empty queue")


@rule("3.35-empty", broken_by="writes-empty-lists")
async def empty(to: Target) -> None:
    """A list or text that may be empty is left out when it is; an optional text that is empty is written."""
    client = await tour(to)
    entries = [event["entry"] for event in client.events if event["type"] == "queue.enqueued"]
    check("attachments" not in entries[0], "an entry without files has a list of them")
    file = entries[1]["attachments"][0]
    check("name" not in file and "mime" not in file, "an empty name is written")
    same(file.get("transcript"), "", "an empty transcript")
    await client.quiet("after the tour")
    client.say("turn.cancel", request_id="", session_id="s", turn_id="t")
    same((await client.event("error")).get("request_id"), "", "an empty request id")


@rule("7.1-events", Need.ECHO, broken_by="renamed-field number-as-text")
async def events(to: Target) -> None:
    """Every event has the fields of its table, in their order, of their types."""
    held(await tour(to))
    held(await tour_of_tools(to))


@rule("7.2-turn-request", Need.ECHO, broken_by="own-request-ids")
async def turn_request(to: Target) -> None:
    """All events of a turn carry the request id of its ``turn.start`` and one turn id."""
    client = await to.session()
    request_id = client.ask("turn.start", prompt="write a.txt words")
    found = [event for event in await client.to_end() if event["type"].startswith(wire.OF_TURNS)]
    same({event.get("request_id") for event in found}, {request_id}, "the request ids")
    same(len({event.get("turn_id") for event in found}), 1, "the number of turn ids")


@rule("7.3-session-id", broken_by="wrong-session-id")
async def session_id(to: Target) -> None:
    """All events of a session carry its id."""
    client = await tour(to)
    found = {event.get("session_id") for event in client.events if event["type"] in wire.NUMBERED}
    same(found, {client.session_id}, "the session ids")


@rule("7.4-risks", Need.ECHO, broken_by="odd-risk")
async def risks(to: Target) -> None:
    """A call's risk is one of the five: what the tools do with files is ``filesystem``, with the chat
    ``network``."""
    client = await to.session(channel="Slack")
    (to.workspace / "a.txt").write_text("x")
    found = []
    for prompt in ("list", "write b.txt words", "attach a.txt"):
        found.append(one(await client.turn(prompt), "approval.requested").get("risk"))
    same(found, ["read_only", "filesystem", "network"], "the risks")


@rule("8.1-status", Need.DAEMON, broken_by="status-without-delegations")
async def status(to: Target) -> None:
    """A daemon's status has all its fields: version, pid, components and delegations."""
    client = await to.client()
    client.say("daemon.control", command={"action": "status"})
    await client.event("daemon.status")
    wire.check_event(wire.read(client.lines[-1]))


@rule("8.2-usage", broken_by="null-usage")
async def usage(to: Target) -> None:
    """Usage is an object, empty where nothing was reported; what was reported is a number, also 0."""
    client = await to.session()
    found = (await client.turn())[-1].get("usage")
    check(isinstance(found, dict), f"the usage is {found!r}")
    wire.check_event(wire.read(client.lines[-1]))


@rule("8.3-attachments-kept", broken_by="loses-transcripts")
async def attachments_kept(to: Target) -> None:
    """An attachment comes back as it was given: kind, path, name, mime, size and transcript."""
    client = await to.session()
    path = to.workspace / "a.txt"
    path.write_text("12345")
    given = {"kind": "audio", "path": str(path), "name": "n", "mime": "a/b", "size": 5, "transcript": "t"}
    client.ask("session.pause", paused=True)
    await client.event("session.paused")
    client.ask("turn.start", prompt="p", attachments=[given])
    if (event := await client.event("queue.enqueued", "turn.started"))["type"] == "queue.enqueued":
        same(event["entry"].get("attachments"), [given], "the attachments")
