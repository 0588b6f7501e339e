"""Section 23: the codes of errors."""

from tests.conformance import wire
from tests.conformance.client import PEER
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.sections.s03_reading import REQUIRED
from tests.conformance.sections.s03_writing import tour
from tests.conformance.target import Target


@rule("23.1-codes", broken_by="own-codes")
async def codes(to: Target) -> None:
    """An error's code is one of the published ones, its message says something, and it is not fatal."""
    client = await tour(to)
    for kind, fields in REQUIRED.items():
        client.say(kind, **{**fields, "before_queue_id": None})
        client.line("{")
    events = [event for event in [*client.events, *await client.others()] if event["type"] == "error"]
    check(len(events) > len(REQUIRED), "too few errors came")
    for event in events:
        check(event["code"] in wire.ERROR_CODES, f"there is no code {event['code']}")
        check(event["message"].strip() and event["fatal"] is False, f"the error is {event}")


@rule("23.2-fatal", broken_by="fatal-errors")
async def only_version_is_fatal(to: Target) -> None:
    """Only a wrong version is fatal: after any other error the connection goes on."""
    client = await to.connect()
    for line in (
        "",
        "x",
        '{"type":"fly"}',
        "x" * 1_100_000,
        '{"type":"session.clear","request_id":"a","session_id":"s"}',
    ):
        client.line(line)
        same(
            (await client.event("error")).get("fatal"), False, f"whether the error for {line[:20]!r} is fatal"
        )
    client.say("initialize", protocol_version=3, client=PEER)
    await client.event("initialized")


@rule("23.3-one-answer", broken_by="errors-twice")
async def one_answer(to: Target) -> None:
    """A request is refused with one error."""
    client = await to.session()
    for kind in ("turn.cancel", "queue.remove", "approval.resolve"):
        client.ask(kind, **{**REQUIRED[kind], "session_id": client.session_id})
        await client.event("error")
    await client.quiet("after one error for each request")


@rule("23.4-no-daemon", Need.STDIO, broken_by="control-on-stdio")
async def no_daemon(to: Target) -> None:
    """Without a daemon, on standard input and output, ``daemon.control`` is ``unsupported``."""
    client = await to.client()
    request_id = client.say("daemon.control", command={"action": "status"})
    await client.error("unsupported", request_id)


@rule("23.5-texts-are-safe", broken_by="quotes-requests")
async def texts_are_safe(to: Target) -> None:
    """An error for a line that is not read quotes nothing of it."""
    client = await to.client()
    for line in (
        '{"type":"sesame-4711"}',
        "sesame-4711",
        '{"type":"session.clear","request_id":["sesame-4711"]}',
    ):
        client.line(line)
        check("sesame" not in (await client.event("error"))["message"], "the message quotes the line")
