"""Section 10: what a turn is made of, and in which order."""

from itertools import pairwise
from typing import Any

from tests.conformance.client import ENDS, Client, Event, kinds, one
from tests.conformance.faults import BrokenError, brief, check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

STEP_TEXT_BYTES = 1_048_576
PROGRESS_BYTES, LINE_BYTES, PACE_SECONDS, STEP_SECONDS = 512, 200, 0.5, 0.1


async def refused(client: Client, code: str, **fields: Any) -> None:
    try:
        await client.error(code, client.ask("turn.start", **{"prompt": "hello", **fields}))
    except BrokenError as broken:
        raise BrokenError(f"{brief(fields)}: {broken}") from None


@rule("10.1-session-first", broken_by="checks-prompt-first any-session")
async def session_first(to: Target) -> None:
    """A turn is judged by its session first: another one, or none, is ``session_not_found``."""
    client = await to.client()
    await refused(client, "session_not_found", session_id="none")
    await client.start()
    for fields in ({}, {"prompt": " "}, {"attachments": [{"kind": "odd", "path": "x", "size": 0}]}):
        await refused(client, "session_not_found", session_id="none", **fields)


@rule("10.2-blank-prompt", broken_by="blank-prompts")
async def blank_prompt(to: Target) -> None:
    """A blank prompt without attachments is ``invalid_request`` and starts nothing."""
    client = await to.session()
    for prompt in ("", " ", "\n\t \u3000"):
        await refused(client, "invalid_request", prompt=prompt)
    await client.quiet("after a blank prompt")


@rule("10.3-files-alone", broken_by="files-need-words")
async def files_alone(to: Target) -> None:
    """A blank prompt with an attachment is a turn."""
    client = await to.session()
    file = to.workspace / "a.txt"
    file.write_text("x")
    events = await client.turn("", attachments=[{"kind": "file", "path": str(file), "size": 1}])
    same(kinds(events)[0], "turn.started", "the first event")


@rule("10.4-at-once", broken_by="queues-when-idle")
async def at_once(to: Target) -> None:
    """In an idle session a turn starts at once, not by way of the queue."""
    client = await to.session()
    request_id = client.ask("turn.start", prompt="hello")
    same((await client.event("turn.started")).get("request_id"), request_id, "the request id")
    await client.to_end()


@rule("10.5-one-end", Need.ECHO, broken_by="two-ends talks-on")
async def one_end(to: Target) -> None:
    """A turn ends with one terminal event, and nothing of it follows."""
    client = await to.session()
    for prompt in ("hello", "fail", "list"):
        events = [*await client.turn(prompt), *await client.others()]
        same(
            [kind for kind in kinds(events) if kind in ENDS], [events[-1]["type"]], f"the ends of {prompt!r}"
        )
        same(kinds(events)[0], "turn.started", f"the first event of {prompt!r}")


@rule("10.6-steps", Need.ECHO, broken_by="miscounts-steps silent-steps")
async def steps(to: Target) -> None:
    """Every step ends with its whole text, and ``steps`` counts them."""
    client = await to.session()
    events = await client.turn("steps 3")
    texts = [event.get("content") for event in events if event["type"] == "assistant.completed"]
    same(len(texts), 3, "the number of texts")
    check(len(set(texts)) == 3, "two steps have the same text")
    same(events[-1].get("steps"), 3, "steps")


@rule("10.7-whole-text", Need.ECHO, broken_by="partial-text")
async def whole_text(to: Target) -> None:
    """Deltas only append: where all were sent, they make up the whole text of ``assistant.completed``."""
    client = await to.session()
    events = await client.turn("long 5000")
    deltas = [event["content"] for event in events if event["type"] == "assistant.delta"]
    text = one(events, "assistant.completed")["content"]
    same(len(text), 5000, "the length of the text")
    check(not deltas or "".join(deltas) == text, "the deltas are not the text")


@rule("10.8-empty-text", Need.ECHO, broken_by="silent-steps")
async def empty_text(to: Target) -> None:
    """A step without words has an ``assistant.completed`` that is empty."""
    client = await to.session()
    same(one(await client.turn("empty"), "assistant.completed").get("content"), "", "the text")


@rule("10.9-tool-order", Need.ECHO, broken_by="starts-before-asking")
async def tool_order(to: Target) -> None:
    """A call is proposed, asked for, started and completed, in this order and under one call id."""
    client = await to.session()
    events = [event for event in await client.turn("write a.txt words") if "call_id" in event]
    order = ["tool.proposed", "approval.requested", "tool.started", "tool.completed"]
    same(kinds(events), order, "the events of the call")
    same(len({event["call_id"] for event in events}), 1, "the number of call ids")
    same({event["name"] for event in events}, {"write_file"}, "the name")
    check(events[-1].get("success") is True, "the call failed")


@rule("10.10-unasked", Need.ECHO, broken_by="asks-for-all")
async def unasked(to: Target) -> None:
    """A call that the policy allows is not asked for."""
    client = await to.session()
    events = [event for event in await client.turn("list") if "call_id" in event]
    same(kinds(events), ["tool.proposed", "tool.started", "tool.completed"], "the events of the call")


@rule("10.11-refused-arguments", Need.ECHO, broken_by="starts-bad-calls")
async def refused_arguments(to: Target) -> None:
    """A call with arguments that the tool refuses is proposed and completed, neither asked for nor
    started."""
    client = await to.session(channel="Slack")
    events = [event for event in await client.turn("progress 0") if "call_id" in event]
    same(kinds(events), ["tool.proposed", "tool.completed"], "the events of the call")
    same(events[-1].get("success"), False, "success")


@rule("10.12-denied", Need.ECHO, broken_by="runs-denied")
async def denied(to: Target) -> None:
    """A denied call is completed without success and without having started, and the turn goes on."""
    client = await to.session()
    events = await client.turn("write a.txt words", approve=False)
    order = ["tool.proposed", "approval.requested", "tool.completed"]
    same(kinds([event for event in events if "call_id" in event]), order, "the events of the call")
    same(one(events, "tool.completed").get("success"), False, "success")
    same(events[-1]["type"], "turn.completed", "the end")
    check(not (to.workspace / "a.txt").exists(), "the denied call was run")


@rule("10.13-failures", Need.ECHO, broken_by="fails-by-error")
async def failures(to: Target) -> None:
    """A turn that has started fails by ``turn.failed`` with a code and a message, never by ``error``."""
    client = await to.session()
    for code in ("provider_error", "step_limit"):
        events = await client.turn(f"fail {code}")
        same(kinds(events), ["turn.started", "turn.failed"], "the events of a turn that fails")
        same(events[-1].get("code"), code, "the code")
        check(events[-1]["message"].strip(), "the message is blank")


@rule("10.14-failed-is-forgotten", Need.ECHO, broken_by="remembers-failures")
async def failed_is_forgotten(to: Target) -> None:
    """A turn that failed or was cancelled leaves the history as it was before."""
    client = await to.session()
    await client.turn("kept words")
    await client.turn("lost words\nfail")
    turn_id = await client.hold()
    await client.cancel(turn_id)
    answer = await client.answer("history")
    check("kept words" in answer, "what was completed is not remembered")
    check("lost words" not in answer and "slow" not in answer, f"what failed is remembered: {brief(answer)}")


@rule("10.15-failed-tools", Need.ECHO, broken_by="tools-fail-turns")
async def failed_tools(to: Target) -> None:
    """A tool that fails is a result for the model; the turn goes on."""
    client = await to.session()
    events = await client.turn("read missing.txt")
    same(one(events, "tool.completed").get("success"), False, "success")
    same(events[-1]["type"], "turn.completed", "the end")


async def progress(to: Target, seconds: int) -> tuple[list[Event], list[float]]:
    """The events of a call that shows its progress, and when each came."""
    client = await to.session()
    client.ask("turn.start", prompt=f"progress {seconds}")
    events, times = [await client.event()], [to.now()]
    async with to.passing(STEP_SECONDS):
        while events[-1]["type"] not in ENDS:
            events.append(await client.event())
            times.append(to.now())
    return events, times


@rule("10.16-progress", Need.ECHO, broken_by="late-progress rough-progress long-progress")
async def shown_progress(to: Target) -> None:
    """``tool.progress`` stays between start and completion, in clean lines of 200 bytes, 512 in all."""
    events, _ = await progress(to, 3)
    order = [kind for kind in kinds(events) if kind.startswith("tool.")]
    same(order[:2], ["tool.proposed", "tool.started"], "the first events of the call")
    same(order[-1], "tool.completed", "the last event of the call")
    shown = [event for event in events if event["type"] == "tool.progress"]
    check(shown, "no progress is shown")
    for event in shown:
        text = event["text"]
        check(len(text.encode()) <= PROGRESS_BYTES, "a progress has over 512 bytes")
        for line in text.split("\n"):
            check(len(line.encode()) <= LINE_BYTES, "a line of progress has over 200 bytes")
            check(line.isprintable(), f"a line of progress has control characters: {line!r}")
    same({event["call_id"] for event in shown}, {one(events, "tool.started")["call_id"]}, "the call ids")


@rule("10.17-progress-pace", Need.ECHO, broken_by="fast-progress")
async def progress_pace(to: Target) -> None:
    """A call shows its progress at most twice in a second."""
    events, times = await progress(to, 4)
    shown = [at for event, at in zip(events, times, strict=True) if event["type"] == "tool.progress"]
    check(len(shown) > 1, "too little progress is shown")
    gaps = [later - earlier for earlier, later in pairwise(shown)]
    check(
        min(gaps) > PACE_SECONDS - STEP_SECONDS - 0.01,
        f"progress came {min(gaps):.2f} seconds after progress",
    )


@rule("10.18-progress-is-no-history", Need.ECHO, broken_by="progress-in-output")
async def progress_is_no_history(to: Target) -> None:
    """Progress is for display: it enters no output."""
    events, _ = await progress(to, 2)
    output = one(events, "tool.completed")["output"]
    for event in events:
        check(
            event["type"] != "tool.progress" or event["text"] not in output, "progress is part of the output"
        )


@rule("10.19-long-text", Need.ECHO, broken_by="endless-text")
async def long_text(to: Target) -> None:
    """A step's text of over 1 MiB ends the turn with ``response_limit``."""
    client = await to.session()
    events = await client.turn("\n".join(["long 200000"] * 6))
    same((events[-1]["type"], events[-1].get("code")), ("turn.failed", "response_limit"), "the end")
    check(
        all(len(event["content"]) <= STEP_TEXT_BYTES for event in events if "content" in event), "it was sent"
    )
    same((await client.turn())[-1]["type"], "turn.completed", "a turn afterwards")


@rule(
    "10.20-long-frame",
    Need.ECHO,
    broken_by="huge-frames vague-frame-limit",
    settings={"max_server_frame_bytes": 65_536},
)
async def long_frame(to: Target) -> None:
    """An event that does not fit a frame is not sent: the turn fails with ``response_limit``."""
    client = await to.session()
    events = await client.turn("long 70000")
    same((events[-1]["type"], events[-1].get("code")), ("turn.failed", "response_limit"), "the end")
    seqs = [event["seq"] for event in events]
    same(seqs, list(range(seqs[0], seqs[0] + len(seqs))), "the numbers")
    same((await client.turn())[-1]["type"], "turn.completed", "a turn afterwards")


@rule("10.21-usage", broken_by="no-usage")
async def usage(to: Target) -> None:
    """``turn.completed`` tells steps and usage; a part of the usage that nobody reported stays absent."""
    client = await to.session()
    end = (await client.turn())[-1]
    same(end["type"], "turn.completed", "the end")
    check(end["steps"] >= 1 and isinstance(end["usage"], dict), f"steps or usage are odd: {brief(end)}")


@rule("10.22-unknown-tool", Need.ECHO, broken_by="starts-unknown-tools")
async def unknown_tool(to: Target) -> None:
    """A call of a tool that is not there is proposed and completed, neither asked for nor started."""
    client = await to.session(channel="Slack")
    events = await client.turn('call nothing "a=1"')
    order = kinds([event for event in events if "call_id" in event])
    same(order, ["tool.proposed", "tool.completed"], "the events of the call")
    same(one(events, "tool.completed").get("success"), False, "success")
    same(events[-1]["type"], "turn.completed", "the end")


@rule("10.23-calls", Need.ECHO, broken_by="many-calls few-calls")
async def most_calls(to: Target) -> None:
    """A step asks for up to 32 calls; more are ``tool_limit``, and none of them runs."""
    client = await to.session()
    events = await client.turn("calls 32")
    same(kinds(events).count("tool.completed"), 32, "the number of calls")
    same(events[-1]["type"], "turn.completed", "the end of a turn of 32 calls")
    events = await client.turn("calls 33")
    same((events[-1]["type"], events[-1].get("code")), ("turn.failed", "tool_limit"), "the end")
    check("tool.started" not in kinds(events), "a call ran")


@rule("10.24-arguments", Need.ECHO, broken_by="long-arguments")
async def most_arguments(to: Target) -> None:
    """A call's arguments have at most 256 KiB; more are ``tool_limit``, and no call of the step runs."""
    client = await to.session()
    events = await client.turn("calls 2 270000")
    same((events[-1]["type"], events[-1].get("code")), ("turn.failed", "tool_limit"), "the end")
    check("tool.started" not in kinds(events), "a call ran")


@rule("10.25-step-limit", Need.ECHO, broken_by="endless-steps", settings={"max_steps": 3})
async def step_limit(to: Target) -> None:
    """A turn that takes too many steps fails with ``step_limit``: no further request is made."""
    client = await to.session()
    same((await client.turn("steps 3"))[-1]["type"], "turn.completed", "the end of a turn of three steps")
    events = await client.turn("steps 4")
    same((events[-1]["type"], events[-1].get("code")), ("turn.failed", "step_limit"), "the end")
    same(kinds(events).count("assistant.completed"), 3, "the number of steps")


@rule("10.26-cancelled-late", Need.ECHO, broken_by="waits-for-the-stubborn")
async def cancelled_late(to: Target) -> None:
    """An agent that does not stop when told to holds up its turn's end for some seconds only."""
    client = await to.session()
    client.ask("turn.start", prompt="steps 2\nhang 6")
    turn_id = (await client.until("assistant.completed"))[-1]["turn_id"]
    await to.settle()
    try:
        same((await client.cancel(turn_id))["type"], "turn.cancelled", "the end")
        same((await client.turn())[-1]["type"], "turn.completed", "a turn afterwards")
    finally:
        await to.pass_time(6.0)  # it must not outlive the rule
