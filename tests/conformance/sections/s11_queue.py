"""Section 11: the turns that wait."""

from typing import Any

from tests.conformance.client import Client, Event, kinds
from tests.conformance.faults import same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

PROMPT_BYTES = 262_144
QUEUE_BYTES = 4_194_304
QUEUE_ITEMS = 64


async def waiting(to: Target, *prompts: str) -> tuple[Client, str, list[Event]]:
    """A session with a turn that runs and others that wait: its client, the turn's id and the entries."""
    client = await to.session()
    turn_id = await client.hold()
    return client, turn_id, await client.queued(*prompts)


def where(entry: Event, revision: int | None = None) -> dict[str, Any]:
    return {"queue_id": entry["queue_id"], "revision": entry["revision"] if revision is None else revision}


async def refused(client: Client, code: str, kind: str, **fields: Any) -> None:
    """Raises BrokenError where it is not refused; a snapshot after a conflict is read, too."""
    await client.error(code, client.ask(kind, **fields))
    for event in await client.others():
        same(event["type"], "queue.snapshot", "what follows the error")


@rule("11.1-enqueued", Need.ECHO, broken_by="positions-from-one revision-zero own-submitters")
async def enqueued(to: Target) -> None:
    """A turn that comes while another runs waits: revision 1, its request id as submitter, positions from
    0."""
    client = await to.session()
    await client.hold()
    for position, prompt in enumerate(("first", "second", "third")):
        request_id = client.ask("turn.start", prompt=prompt)
        event = await client.event("queue.enqueued")
        entry = event["entry"]
        same(
            (event.get("request_id"), event.get("position")),
            (request_id, position),
            "request id and position",
        )
        found = [entry.get(name) for name in ("prompt", "revision", "submitter")]
        same(found, [prompt, 1, request_id], "prompt, revision and submitter")


@rule("11.2-dequeued", Need.ECHO, broken_by="dequeues-early dequeues-silently last-first dequeues-by-new-id")
async def dequeued(to: Target) -> None:
    """After a turn's end the first entry starts: ``queue.dequeued``, then ``turn.started``, with the same
    ids."""
    client, turn_id, entries = await waiting(to, "first", "second")
    await client.cancel(turn_id)
    for entry in entries:
        events = await client.until("turn.completed")
        same(kinds(events)[:2], ["queue.dequeued", "turn.started"], "the first events")
        taken, started = events[:2]
        same(taken.get("queue_id"), entry["queue_id"], "the entry that starts")
        same({event["request_id"] for event in events}, {entry["submitter"]}, "the request ids")
        same(taken.get("turn_id"), started.get("turn_id"), "the turn id")


@rule("11.3-items", Need.ECHO, broken_by="endless-queue short-queue")
async def items(to: Target) -> None:
    """64 turns may wait; one more is ``queue_limit``, and nothing changes."""
    client, _, entries = await waiting(to, *map(str, range(QUEUE_ITEMS)))
    await client.error("queue_limit", client.ask("turn.start", prompt="more"))
    same(await client.position(entries[-1]), QUEUE_ITEMS - 1, "the last position")


@rule("11.4-bytes", Need.ECHO, broken_by="endless-queue")
async def total_bytes(to: Target) -> None:
    """The waiting prompts have at most 4 MiB."""
    count = QUEUE_BYTES // PROMPT_BYTES
    client, _, _ = await waiting(to, *["x" * (PROMPT_BYTES - 1000)] * (count - 1))
    await client.queued("x" * (PROMPT_BYTES - 30_000))
    await client.error("queue_limit", client.ask("turn.start", prompt="x" * PROMPT_BYTES))


@rule("11.5-encoded-bytes", Need.ECHO, ours=True, broken_by="counts-prompts-only")
async def encoded_bytes(to: Target) -> None:
    """What counts of an entry is its JSON, with all escapes."""
    prompt = "\x01" * 170_000  # of 1,020,000 bytes in JSON
    client, _, _ = await waiting(to, *[prompt] * 4)
    await client.error("queue_limit", client.ask("turn.start", prompt=prompt))


@rule("11.6-update", Need.ECHO, broken_by="keeps-revisions loses-attachments keeps-prompts")
async def update(to: Target) -> None:
    """``queue.update`` replaces the prompt, raises the revision, keeps the files and answers the whole
    entry."""
    client, _, _ = await waiting(to)
    file = to.workspace / "a.txt"
    file.write_text("x")
    client.ask("turn.start", prompt="old", attachments=[{"kind": "file", "path": str(file), "size": 1}])
    entry = (await client.event("queue.enqueued"))["entry"]
    request_id = client.ask("queue.update", **where(entry), prompt="new")
    event = await client.event("queue.updated")
    same(event.get("request_id"), request_id, "the request id")
    same(event.get("entry"), {**entry, "prompt": "new", "revision": 2}, "the entry")
    client.ask("queue.update", **where(entry, 2), prompt="newer")
    same((await client.event("queue.updated"))["entry"]["revision"], 3, "the revision")


@rule("11.7-update-refused", Need.ECHO, broken_by="updates-to-blank updates-too-long any-revision")
async def update_refused(to: Target) -> None:
    """An update is refused for its prompt, then its entry, then its revision; nothing changes."""
    client, _, (entry, other) = await waiting(to, "old", "other")
    for prompt in ("", " \n", "x" * (PROMPT_BYTES + 1)):
        await refused(client, "invalid_request", "queue.update", **where(entry), prompt=prompt)
        await refused(client, "invalid_request", "queue.update", queue_id="none", revision=9, prompt=prompt)
    await refused(client, "queue_not_found", "queue.update", queue_id="none", revision=9, prompt="new")
    for revision in (0, 2):
        await refused(client, "queue_conflict", "queue.update", **where(entry, revision), prompt="new")
    client.ask("queue.update", **where(other), prompt="x")
    await client.event("queue.updated")
    client.ask("queue.update", **where(entry), prompt="new")
    same((await client.event("queue.updated"))["entry"]["revision"], 2, "the revision after refusals")


@rule("11.8-update-bytes", Need.ECHO, broken_by="counts-old-prompts updates-over-limit")
async def update_bytes(to: Target) -> None:
    """An update is held to the queue's bytes with the old prompt taken out."""
    prompt = "x" * (PROMPT_BYTES - 10_000)
    client, _, entries = await waiting(to, *[prompt] * (QUEUE_BYTES // PROMPT_BYTES))
    client.ask("queue.update", **where(entries[0]), prompt=prompt)
    entry = (await client.event("queue.updated"))["entry"]
    await client.queued("z" * 155_000)
    longer = "y" * PROMPT_BYTES
    await client.error("queue_limit", client.ask("queue.update", **where(entry), prompt=longer))


@rule("11.9-move", Need.ECHO, broken_by="moves-behind keeps-revisions")
async def move(to: Target) -> None:
    """``queue.move`` puts an entry right before another, or last, raises its revision and tells its
    position."""
    client, turn_id, (a, b, c) = await waiting(to, "a", "b", "c")
    await moved(client, c, a, 0, 2)
    await moved(client, a, None, 2, 2)
    await moved(client, {**a, "revision": 2}, b, 1, 3)
    await client.cancel(turn_id)
    order = [event["queue_id"] for event in await all_dequeued(client, 3)]
    same(order, [entry["queue_id"] for entry in (c, a, b)], "the order in which they start")


async def moved(client: Client, entry: Event, before: Event | None, position: int, revision: int) -> None:
    request_id = client.ask("queue.move", **where(entry), before_queue_id=before and before["queue_id"])
    event = await client.event("queue.moved")
    found = [event.get(name) for name in ("request_id", "queue_id", "position", "revision")]
    same(
        found, [request_id, entry["queue_id"], position, revision], "request id, entry, position and revision"
    )


async def all_dequeued(client: Client, count: int) -> list[Event]:
    events: list[Event] = []
    while len(events) < count:
        events.append((await client.until("queue.dequeued"))[-1])
    return events


@rule("11.10-move-nowhere", Need.ECHO, broken_by="moves-raise-always")
async def move_nowhere(to: Target) -> None:
    """To move an entry before itself is granted and changes nothing, not even its revision."""
    client, _, (_, entry) = await waiting(to, "a", "b")
    for _ in range(2):
        await moved(client, entry, entry, 1, 1)


@rule("11.11-move-refused", Need.ECHO, broken_by="any-revision moves-to-unknown")
async def move_refused(to: Target) -> None:
    """A move is refused for its entry, its revision, then for a target that does not wait; nothing
    changes."""
    client, turn_id, (a, b) = await waiting(to, "a", "b")
    before = {"before_queue_id": b["queue_id"]}
    await refused(client, "queue_not_found", "queue.move", queue_id="none", revision=1, **before)
    await refused(client, "queue_not_found", "queue.move", queue_id=turn_id, revision=1, **before)
    await refused(client, "queue_conflict", "queue.move", **where(a, 2), **before)
    await refused(client, "queue_not_found", "queue.move", **where(a), before_queue_id="none")
    same([await client.position(a), await client.position(b)], [0, 1], "the positions")


@rule("11.12-remove", Need.ECHO, broken_by="removal-raises-revision any-revision removes-nothing")
async def remove(to: Target) -> None:
    """``queue.remove`` takes an entry out and tells its last revision; a wrong revision is a conflict."""
    client, turn_id, (a, b) = await waiting(to, "a", "b")
    await refused(client, "queue_conflict", "queue.remove", **where(a, 2))
    request_id = client.ask("queue.remove", **where(a))
    event = await client.event("queue.removed")
    found = [event.get(name) for name in ("request_id", "queue_id", "revision")]
    same(found, [request_id, a["queue_id"], 1], "request id, entry and revision")
    await refused(client, "queue_not_found", "queue.remove", **where(a))
    same(await client.position(b), 0, "the position of what is left")
    await client.cancel(turn_id)
    same((await client.event("queue.dequeued")).get("queue_id"), b["queue_id"], "what starts next")


@rule("11.13-started", Need.ECHO, broken_by="dequeues-late")
async def started(to: Target) -> None:
    """An entry whose turn has started is ``queue_not_found``."""
    client, turn_id, (entry,) = await waiting(to, "slow 3000")
    await client.cancel(turn_id)
    await client.until("turn.started")
    await refused(client, "queue_not_found", "queue.update", **where(entry), prompt="new")
    await refused(client, "queue_not_found", "queue.remove", **where(entry))
    await refused(client, "queue_not_found", "queue.move", **where(entry), before_queue_id=None)


@rule("11.14-own-session", Need.ECHO, broken_by="any-session")
async def own_session(to: Target) -> None:
    """The queue is changed under its session's id only."""
    client, _, (entry,) = await waiting(to, "a")
    wrong = {"session_id": "none", **where(entry)}
    await refused(client, "session_not_found", "queue.update", **wrong, prompt="new")
    await refused(client, "session_not_found", "queue.move", **wrong, before_queue_id=None)
    await refused(client, "session_not_found", "queue.remove", **wrong)


@rule(
    "11.15-conflict-snapshot", Need.ECHO, ours=True, broken_by="conflicts-without-snapshot nameless-snapshots"
)
async def conflict_snapshot(to: Target) -> None:
    """After a ``queue_conflict`` comes a snapshot with the request's id and the entries as they are."""
    client, _, entries = await waiting(to, "a", "b")
    request_id = client.ask("queue.remove", **where(entries[0], 7))
    await client.error("queue_conflict", request_id)
    snapshot = await client.event("queue.snapshot")
    same(
        (snapshot.get("request_id"), snapshot.get("entries")), (request_id, entries), "request id and entries"
    )
    await client.quiet("after the snapshot")


@rule(
    "11.16-large-snapshot",
    Need.ECHO,
    ours=True,
    broken_by="fails-at-large-snapshots",
    settings={"max_server_frame_bytes": 65_536},
)
async def large_snapshot(to: Target) -> None:
    """The snapshot after a conflict is left out where it does not fit a frame."""
    client, _, entries = await waiting(to, "x" * 40_000, "y" * 40_000)
    await client.error("queue_conflict", client.ask("queue.remove", **where(entries[0], 7)))
    await client.quiet("in place of a snapshot that is too large")


@rule("11.17-refused-is-not-queued", Need.ECHO, broken_by="queues-blanks")
async def refused_is_not_queued(to: Target) -> None:
    """What would not start does not wait either: blank prompts and bad files are refused as ever."""
    client, _, (entry,) = await waiting(to, "a")
    await client.error("invalid_request", client.ask("turn.start", prompt=" "))
    bad = [{"kind": "file", "path": "/no/such/file", "size": 1}]
    await client.error("invalid_request", client.ask("turn.start", prompt="p", attachments=bad))
    same((await client.queued("b"))[0].get("prompt"), "b", "the next entry")
    same(await client.position(entry), 0, "the position of the first")
