"""Section 9: how a session starts."""

from typing import Any

from tests.conformance.client import Client, kinds, one
from tests.conformance.faults import BrokenError, brief, check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target


async def refused(client: Client, **fields: Any) -> None:
    """Raises BrokenError where a session starts."""
    request_id = client.say("session.start", **{"cwd": str(client.target.workspace), **fields})
    try:
        await client.error("invalid_request", request_id)
    except BrokenError as broken:
        raise BrokenError(f"{brief(fields)}: {broken}") from None


@rule("9.1-answer", broken_by="late-snapshot full-snapshot seq-from-zero")
async def answer(to: Target) -> None:
    """The answer is ``session.started``, then a snapshot: no request id, seq 1, no entries, not paused."""
    client = await to.client()
    request_id = client.say("session.start", cwd=str(to.workspace))
    started, snapshot = await client.event("session.started"), await client.event("queue.snapshot")
    same(started.get("request_id"), request_id, "the request id")
    found = [snapshot.get(name) for name in ("session_id", "request_id", "seq", "entries", "paused")]
    same(found, [started.get("session_id"), None, 1, [], False], "the snapshot")
    await client.quiet("after a session's start")


@rule("9.2-limits", broken_by="no-limits")
async def limits(to: Target) -> None:
    """``session.started`` tells the session's model and its six limits, all above zero."""
    started = await (await to.client()).start()
    check(started["model"], "no model is named")
    names = [name for name in started if name.startswith(("context_max", "max_"))]
    same(len(names), 6, "the number of limits")
    check(all(started[name] > 0 for name in names), f"a limit is zero: {brief(started)}")


@rule("9.3-channel", broken_by="any-channel long-channels")
async def channel(to: Target) -> None:
    """A channel is a name of at most 32 bytes, not blank and without control characters."""
    client = await to.client()
    for name in ("", "  ", "x" * 33, "中" * 11, "a\nb", "a\x00", "\x7fa", "\u0085b"):
        await refused(client, channel=name)
    await client.start(channel="中" * 10 + "ab")


@rule("9.4-cwd", broken_by="any-cwd")
async def cwd(to: Target) -> None:
    """The cwd is a directory that exists."""
    client = await to.client()
    file = to.workspace / "file"
    file.write_text("x")
    for place in (str(to.workspace / "missing"), str(file), "", "a\x00b"):
        await refused(client, cwd=place)
    await client.start()


@rule("9.5-real-path", broken_by="cwd-as-given")
async def real_path(to: Target) -> None:
    """The cwd is resolved, and told as it is then."""
    link = to.workspace / "link"
    link.symlink_to(to.workspace)
    started = await (await to.client()).start(cwd=str(link / "." / "link"))
    same(started.get("cwd"), str(to.workspace), "the cwd")


@rule("9.6-configuration", broken_by="any-provider")
async def configuration(to: Target) -> None:
    """What the server cannot be configured for is ``invalid_request``, with a message that says why."""
    client = await to.client()
    request_id = client.say("session.start", cwd=str(to.workspace), provider="no-such-provider")
    check((await client.error("invalid_request", request_id))["message"].strip(), "the message is blank")
    await client.start()


@rule("9.7-no-tools", Need.ECHO, broken_by="tools-for-all")
async def no_tools(to: Target) -> None:
    """``no_tools`` takes every tool away, also where a channel is given."""
    client = await to.session(no_tools=True, channel="Slack")
    (to.workspace / "a.txt").write_text("x")
    for prompt in ("list", "write b.txt words", "attach a.txt", "progress 1"):
        check("tool.proposed" not in kinds(await client.turn(prompt)), f"{prompt!r} found a tool")


@rule("9.8-tools", Need.ECHO, broken_by="no-tools-for-all")
async def tools(to: Target) -> None:
    """Without ``no_tools``, or with it false, a session has the server's tools."""
    for fields in ({}, {"no_tools": False}, {"no_tools": None}):
        client = await to.session(**fields)
        check("tool.completed" in kinds(await client.turn("list")), f"{fields} leaves no tool")
        await client.close()


@rule("9.9-chat-attach", Need.ECHO, broken_by="attach-for-all attach-for-none")
async def chat_attach(to: Target) -> None:
    """A session with tools and a channel has ``chat_attach``; one without a channel does not."""
    (to.workspace / "a.txt").write_text("x")
    chat = await (await to.session(channel="Feishu")).turn("attach a.txt")
    same(one(chat, "tool.completed").get("name"), "chat_attach", "the tool")
    bare = await (await to.session()).turn("attach a.txt")
    check(
        "chat_attach" not in [event.get("name") for event in bare if event.get("success")],
        "a file was attached",
    )


@rule("9.10-auto-approve", Need.ECHO, broken_by="auto-approves")
async def auto_approve(to: Target) -> None:
    """``auto_approve`` changes nothing for the client's own turns: it is still asked."""
    client = await to.session(auto_approve=True)
    one(await client.turn("write a.txt words"), "approval.requested")


@rule("9.11-all-fields", broken_by="minds-depth")
async def all_fields(to: Target) -> None:
    """A start may say how deep it is delegated, and who it is for."""
    client = await to.client()
    await client.start(no_tools=False, delegation_depth=4_294_967_295, channel="WeChat", auto_approve=False)
    same((await client.turn())[-1]["type"], "turn.completed", "a turn")
