"""Section 27: what the published protocol leaves open, as we settled it."""

from tests.conformance.client import ENDS, PEER, kinds
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.sections.s05_connection import attached
from tests.conformance.sections.s11_queue import where
from tests.conformance.target import Target


@rule("27.1-unreadable-first", ours=True, broken_by="order-before-json")
async def unreadable_first(to: Target) -> None:
    """A line that cannot be read is ``invalid_json``, also before ``initialize``."""
    client = await to.connect()
    for line in ("", "{", '{"type":"fly","request_id":"a"}', '{"type":"session.clear"}'):
        await client.refused(line)
    await client.initialize()


@rule("27.2-second-initialize", ours=True, broken_by="version-before-order")
async def second_initialize(to: Target) -> None:
    """A second ``initialize`` is ``invalid_request`` and not fatal, whatever its version."""
    client = await to.client()
    for version in (2, 3, 4):
        request_id = client.say("initialize", protocol_version=version, client=PEER)
        await client.error("invalid_request", request_id)


@rule("27.3-cancel-without-session", ours=True, broken_by="cancel-needs-session")
async def cancel_without_session(to: Target) -> None:
    """``turn.cancel`` without a session, or under another session's id, is ``turn_not_found``."""
    client = await to.client()
    await client.error("turn_not_found", client.say("turn.cancel", session_id="none", turn_id="none"))
    await client.start()
    await client.error("turn_not_found", client.say("turn.cancel", session_id="none", turn_id="none"))


@rule("27.4-silence-after-end", Need.ECHO, ours=True, broken_by="speaks-after-end")
async def silence_after_end(to: Target) -> None:
    """Once the client has ended its side nothing more is sent: its turn ends in silence."""
    client = await to.session()
    await client.hold()
    await client.queued("never")
    client.half_close()
    same(kinds(await client.rest()), [], "what follows the client's end")


@rule("27.5-unbuilt-actions", Need.DAEMON, ours=True, broken_by="unbuilt-is-invalid")
async def unbuilt_actions(to: Target) -> None:
    """A published action that a daemon does not have is a ``delegation_error`` or ``restart_error`` that
    says so."""
    client = await to.client()
    for action, code in (
        ("delegations", "delegation_error"),
        ("delegation_kill", "delegation_error"),
        ("restart_when_idle", "restart_error"),
    ):
        request_id = client.say("daemon.control", command={"action": action})
        event = await client.event("error", "daemon.status")
        same(event.get("request_id"), request_id, "the request id")
        if event["type"] == "error":
            same(event.get("code"), code, f"the code for {action}")
            check(event["message"].strip(), "the message is blank")


@rule("27.6-files-need-no-words", Need.ECHO, ours=True, broken_by="files-need-words")
async def files_need_no_words(to: Target) -> None:
    """``queue.update`` may blank the prompt of an entry that has attachments."""
    client = await to.session()
    await client.hold()
    file = to.workspace / "a.txt"
    file.write_text("x")
    client.ask("turn.start", prompt="a", attachments=[{"kind": "file", "path": str(file), "size": 1}])
    entry = (await client.event("queue.enqueued"))["entry"]
    client.ask("queue.update", **where(entry), prompt="")
    same((await client.event("queue.updated"))["entry"].get("prompt"), "", "the prompt")


@rule("27.7-attached-empty", Need.ECHO, Need.SHARED, ours=True, broken_by="attach-keeps-pause")
async def attached_empty(to: Target) -> None:
    """An attached session's queue is empty and it is not paused, whatever it was before."""
    client = await to.session()
    turn_id = await client.hold()
    await client.queued("a")
    client.ask("session.pause", paused=True)
    await client.event("session.paused")
    await client.cancel(turn_id)
    await client.close()
    again, events = await attached(to, client.session_id)
    snapshot = events[1]
    found = [snapshot.get(name) for name in ("type", "entries", "paused")]
    same(found, ["queue.snapshot", [], False], "the snapshot")
    again.ask("turn.start", prompt="hello")
    same((await again.until("turn.started", "queue.enqueued"))[-1]["type"], "turn.started", "a turn's answer")
    await again.until(*ENDS)


@rule("27.8-exit-code", Need.STDIO, Need.ECHO, ours=True, broken_by="fails-at-the-end")
async def exit_code(to: Target) -> None:
    """On standard input and output the client's end is the server's: exit code 0, also while a turn runs."""
    client = await to.session()
    await client.hold()
    client.half_close()
    same(kinds(await client.rest()), [], "what follows the client's end")
    same(await to.exit_code(client), 0, "the exit code")
