"""Section 5: how a connection begins and ends, and what of a session outlives it."""

from tests.conformance.client import ENDS, LONG, Client, kinds, one
from tests.conformance.faults import brief, check, same
from tests.conformance.rules import Need, rule
from tests.conformance.sections.s03_reading import REQUIRED
from tests.conformance.target import Target


@rule("5.1-initialize-first", broken_by="needs-no-initialize closes-uninitialized")
async def initialize_first(to: Target) -> None:
    """Any other message before ``initialize`` is ``not_initialized``, and the connection stays."""
    client = await to.connect()
    for kind in [kind for kind in REQUIRED if kind != "initialize"]:
        fields = {**REQUIRED[kind], **({"before_queue_id": None} if kind == "queue.move" else {})}
        client.say(kind, **fields)
        await client.error("not_initialized", "a")
    await client.initialize()


@rule("5.2-other-version", broken_by="any-version mild-version stays-after-version vague-version")
async def other_version(to: Target) -> None:
    """Another version than 3 is ``version_mismatch``, fatal, names the supported one, and the server
    closes."""
    for version in (0, 2, 4, 4294967295):
        client = await to.connect()
        request_id = client.say("initialize", protocol_version=version, client={"name": "n", "version": "v"})
        event = await client.event("error")
        same(event.get("code"), "version_mismatch", f"the answer to version {version}")
        same((event.get("request_id"), event.get("fatal")), (request_id, True), "request id and fatal")
        check("3" in event.get("message", ""), "the supported version is not named")
        check(await client.is_closed(), "the connection stays open")


@rule("5.3-initialized", broken_by="nameless-server")
async def initialized(to: Target) -> None:
    """``initialized`` answers the request with version 3 and the server's name and version."""
    client = await to.connect()
    event = await client.initialize(request_id="mine")
    same((event.get("request_id"), event.get("protocol_version")), ("mine", 3), "request id and version")
    check(event["server"]["name"] and event["server"]["version"], "the server has no name or version")


@rule("5.4-initialize-once", broken_by="initializes-twice closes-second-initialize")
async def initialize_once(to: Target) -> None:
    """A second ``initialize`` is ``invalid_request``, not fatal, and changes nothing."""
    client = await to.session()
    request_id = client.say("initialize", protocol_version=3, client={"name": "n", "version": "v"})
    await client.error("invalid_request", request_id)
    same((await client.turn())[-1]["type"], "turn.completed", "a turn afterwards")


@rule("5.5-control-at-once", Need.DAEMON, broken_by="control-needs-session")
async def control_at_once(to: Target) -> None:
    """``daemon.control`` is answered without a session."""
    client = await to.client()
    request_id = client.say("daemon.control", command={"action": "status"})
    same((await client.event("daemon.status")).get("request_id"), request_id, "the request id")


@rule("5.6-one-session", broken_by="many-sessions")
async def one_session(to: Target) -> None:
    """A second session on a connection is ``invalid_request``, and the first one goes on."""
    client = await to.session()
    request_id = client.say("session.start", cwd=str(to.workspace))
    await client.error("invalid_request", request_id)
    same((await client.turn())[-1]["type"], "turn.completed", "a turn afterwards")


@rule("5.7-try-again", broken_by="one-try")
async def try_again(to: Target) -> None:
    """A start that failed may be tried again."""
    client = await to.client()
    request_id = client.say("session.start", cwd="/no/such/folder")
    await client.error("invalid_request", request_id)
    await client.start()


@rule("5.8-independent", Need.ECHO, Need.SHARED, broken_by="one-turn-for-all")
async def independent(to: Target) -> None:
    """Sessions of different connections run side by side."""
    first, second = await to.session(), await to.session()
    await first.hold()
    same((await second.turn())[-1]["type"], "turn.completed", "a turn beside another")


@rule("5.9-no-broadcast", Need.SHARED, broken_by="broadcasts")
async def no_broadcast(to: Target) -> None:
    """What happens in one session is told to its own client only."""
    first, second = await to.session(), await to.session()
    await second.turn()
    await first.quiet("while another session has a turn")


@rule("5.10-others-sessions", Need.SHARED, broken_by="any-session")
async def others_sessions(to: Target) -> None:
    """A client reaches no session but its own, even knowing its id."""
    first, second = await to.session(), await to.session()
    second.session_id = first.session_id
    request_id = second.ask("turn.start", prompt="hello")
    await second.error("session_not_found", request_id)
    await first.quiet("after a turn was asked for by another client")


@rule("5.11-closed-after-end", broken_by="stays-after-end")
async def closed_after_end(to: Target) -> None:
    """The server closes its side once the client has closed its own."""
    client = await to.session()
    client.half_close()
    check(await client.is_closed(), "the connection stays open")


@rule("5.12-end-cancels", Need.ECHO, Need.SHARED, ours=True, broken_by="turns-outlive-clients")
async def end_cancels(to: Target) -> None:
    """A client's end cancels its turn and drops its queue: who attaches the session finds that."""
    client = await to.session()
    turn_id = await client.hold()
    await client.queued("never")
    await client.close()
    again, events = await attached(to, client.session_id)
    ended = one(events, "turn.cancelled")
    same(ended.get("turn_id"), turn_id, "the turn that was cancelled")
    await again.quiet("in a session whose client had gone")


async def attached(
    to: Target, session_id: str, ends: tuple[str, ...] = ENDS
) -> tuple[Client, list[dict[str, object]]]:
    """A new connection with the stored session, and what it was told up to the end of the last turn."""
    client = await to.client()
    await client.attach(session_id)
    return client, await client.until(*ends)


@rule("5.13-attach-unknown", ours=True, broken_by="attaches-anything")
async def attach_unknown(to: Target) -> None:
    """``session.attach`` of an unknown id is ``session_not_found``, and a session may be started then."""
    client = await to.client()
    for name in ("none", "", "7e2f9a52-1df1-4d4b-9f0a-3d8c8f0f7a11"):
        request_id = await client.attach(name)
        await client.error("session_not_found", request_id)
    await client.start()


@rule("5.14-attach-elsewhere", Need.SHARED, ours=True, broken_by="attaches-in-any-cwd")
async def attach_in_other_cwd(to: Target) -> None:
    """A session is attached with the folder that it was started in; another is ``session_not_found``."""
    client = await to.session()
    await client.close()
    other = to.workspace / "other"
    other.mkdir(exist_ok=True)
    again = await to.client()
    for cwd in (str(other), "/no/such/folder"):
        request_id = await again.attach(client.session_id, cwd=cwd)
        await again.error("session_not_found", request_id)


@rule("5.15-attached-once", Need.SHARED, ours=True, broken_by="attaches-twice")
async def attached_once(to: Target) -> None:
    """A session that another connection has is not attached: ``invalid_request``."""
    client, other = await to.session(), await to.client()
    request_id = await other.attach(client.session_id)
    await other.error("invalid_request", request_id)
    same((await client.turn())[-1]["type"], "turn.completed", "a turn of its owner")


@rule("5.16-attach-answer", Need.SHARED, ours=True, broken_by="attach-tells-nothing")
async def attach_answer(to: Target) -> None:
    """An attach answers with ``session.started``, the snapshot, and how the last turn ended, under its own
    ids."""
    client = await to.session()
    request_id = client.ask("turn.start", prompt="hello", request_id="the turn's")
    before = await client.to_end()
    await client.close()
    again = await to.client()
    asked = await again.attach(client.session_id)
    events = await again.until("turn.completed")
    wanted = ["session.started", "queue.snapshot", "assistant.completed", "turn.completed"]
    same(kinds(events), wanted, "what is told")
    same(events[0].get("request_id"), asked, "the request id of session.started")
    same({event.get("request_id") for event in events[2:]}, {request_id}, "the turn's request id")
    for kind in wanted[2:]:
        for name in ("turn_id", "content", "steps", "usage"):
            same(one(events, kind).get(name), one(before, kind, last=True).get(name), f"{kind}'s {name}")
    await again.quiet("after an attach")


@rule("5.17-attach-files", Need.ECHO, Need.SHARED, ours=True, broken_by="attach-tells-no-files")
async def attach_files(to: Target) -> None:
    """Of the last turn's tools, those that attached a file are told again."""
    client = await to.session(channel="Slack")
    (to.workspace / "a.txt").write_text("x")
    before = one(await client.turn("list\nattach a.txt"), "tool.completed", last=True)
    await client.close()
    _, events = await attached(to, client.session_id)
    again = one(events, "tool.completed")
    for name in ("request_id", "turn_id", "call_id", "name", "success", "output"):
        same(again.get(name), before.get(name), f"the tool's {name}")


@rule("5.18-attach-seq", Need.SHARED, ours=True, broken_by="attach-resets-seq")
async def attach_seq(to: Target) -> None:
    """``seq`` goes on above all numbers that were used before."""
    client = await to.session()
    await client.turn()
    last = client.events[-1]["seq"]
    await client.close()
    again, events = await attached(to, client.session_id)
    found = [event["seq"] for event in [*events, *await again.turn()] if "seq" in event]
    check(found[0] > last, f"the first number is {found[0]} after {last}")
    same(found, list(range(found[0], found[0] + len(found))), "the numbers")


@rule("5.19-attach-history", Need.ECHO, Need.SHARED, ours=True, broken_by="attach-forgets")
async def attach_history(to: Target) -> None:
    """An attached session knows what was said before."""
    client = await to.session()
    await client.turn("the word is plum")
    await client.close()
    again, _ = await attached(to, client.session_id)
    answer = await again.answer("history")
    check("the word is plum" in answer, f"the history is {brief(answer)}")


@rule("5.20-never-widened", Need.ECHO, Need.SHARED, ours=True, broken_by="attach-widens")
async def never_widened(to: Target) -> None:
    """An attached session has the tools that it was started with, not more."""
    client = await to.session(no_tools=True)
    await client.turn()
    await client.close()
    again, _ = await attached(to, client.session_id)
    check("tool.proposed" not in kinds(await again.turn("list")), "a session without tools got some")


@rule("5.21-crash", Need.ECHO, Need.STARTS, ours=True, broken_by="crash-forgotten")
async def crash(to: Target) -> None:
    """A turn that the server's death cut off ends at the next attach as ``turn.failed``,
    ``internal_error``."""
    client = await to.session()
    await client.turn("before")
    request_id = client.ask("turn.start", prompt=LONG)
    turn_id = (await client.event("turn.started"))["turn_id"]
    await to.kill()
    await to.start()
    again, events = await attached(to, client.session_id, ("turn.failed",))
    failed = one(events, "turn.failed")
    same((failed.get("request_id"), failed.get("turn_id")), (request_id, turn_id), "the turn that failed")
    same(failed.get("code"), "internal_error", "the code")
    same((await again.turn())[-1]["type"], "turn.completed", "a turn afterwards")


@rule("5.22-over-restart", Need.ECHO, Need.STARTS, ours=True, broken_by="attach-forgets")
async def over_restart(to: Target) -> None:
    """A session outlives the server: after a restart it is attached as after a reconnect."""
    client = await to.session()
    await client.turn("the word is pear")
    await to.stop()
    await to.start()
    again, _ = await attached(to, client.session_id)
    answer = await again.answer("history")
    check("the word is pear" in answer, f"the history is {brief(answer)}")
