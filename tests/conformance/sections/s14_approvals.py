"""Section 14: who says yes to a tool call."""

from tests.conformance.client import Client, Event, kinds, one
from tests.conformance.faults import check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

WRITE = "write a.txt words"


async def asked(client: Client, prompt: str = WRITE) -> Event:
    """Start a turn that asks; returns the question."""
    client.ask("turn.start", prompt=prompt)
    return (await client.until("approval.requested"))[-1]


def resolve(client: Client, question: Event, approved: bool = True, **fields: str) -> str:
    return client.ask("approval.resolve", approval_id=question["approval_id"], approved=approved, **fields)


@rule(
    "14.1-on-risk", Need.ECHO, broken_by="asks-for-all approves-all", settings={"approval_policy": "on-risk"}
)
async def on_risk(to: Target) -> None:
    """The policy ``on-risk`` asks for every call but those that only read."""
    client = await to.session()
    check(
        "approval.requested" not in kinds(await client.turn("list")), "a call that only reads was asked for"
    )
    one(await client.turn(WRITE), "approval.requested")


@rule("14.2-always", Need.ECHO, broken_by="approves-all", settings={"approval_policy": "always"})
async def always(to: Target) -> None:
    """The policy ``always`` asks for every call."""
    client = await to.session()
    for prompt in ("list", WRITE):
        one(await client.turn(prompt), "approval.requested")


@rule("14.3-never", Need.ECHO, broken_by="asks-for-all approves-all", settings={"approval_policy": "never"})
async def never(to: Target) -> None:
    """The policy ``never`` asks for nothing: what reads is run, the rest is denied."""
    client = await to.session()
    same(one(await client.turn("list"), "tool.completed").get("success"), True, "whether reading is allowed")
    events = await client.turn(WRITE)
    check("approval.requested" not in kinds(events), "the policy never asked")
    same(one(events, "tool.completed").get("success"), False, "whether writing is allowed")
    check(not (to.workspace / "a.txt").exists(), "the denied call was run")


@rule("14.4-question", Need.ECHO, broken_by="multi-line-summaries wrong-question-cwd odd-risk")
async def question(to: Target) -> None:
    """A question tells the call's name, risk and folder, and in one line what it would do."""
    client = await to.session()
    found = await asked(client)
    same((found.get("name"), found.get("risk")), ("write_file", "filesystem"), "name and risk")
    same(found.get("cwd"), str(to.workspace), "the folder in which the call runs")
    check(
        "a.txt" in found["summary"] and found["summary"].isprintable(), f"the summary is {found['summary']!r}"
    )


@rule("14.5-silent", Need.ECHO, broken_by="answers-resolves")
async def silent(to: Target) -> None:
    """An answer has no reply: the call goes on."""
    client = await to.session()
    resolve(client, await asked(client))
    same((await client.event())["type"], "tool.started", "what follows")
    await client.to_end()
    same((to.workspace / "a.txt").read_text().strip(), "words", "what was written")


@rule("14.6-once", Need.ECHO, broken_by="resolves-anything")
async def once(to: Target) -> None:
    """A question that is unknown or was answered is ``approval_not_found``."""
    client = await to.session()
    found = await asked(client)
    await client.error(
        "approval_not_found", client.ask("approval.resolve", approval_id="none", approved=True)
    )
    resolve(client, found)
    await client.to_end()
    await client.error("approval_not_found", resolve(client, found))


@rule("14.7-own-session", Need.ECHO, broken_by="any-session")
async def own_session(to: Target) -> None:
    """A question is answered under its session's id only, else ``session_not_found``; it stays open."""
    client = await to.client()
    lost = client.say("approval.resolve", session_id="none", approval_id="none", approved=True)
    await client.error("session_not_found", lost)
    await client.start()
    found = await asked(client)
    await client.error("session_not_found", resolve(client, found, session_id="none"))
    await client.quiet("after an answer for another session")
    resolve(client, found)
    same((await client.to_end())[-1]["type"], "turn.completed", "the turn's end")


@rule("14.8-others-answers", Need.ECHO, Need.SHARED, broken_by="any-session shared-approvals")
async def others_answers(to: Target) -> None:
    """Another client cannot answer, whatever ids it knows."""
    client, other = await to.session(), await to.session()
    found = await asked(client)
    await other.error("approval_not_found", resolve(other, found))
    other.session_id = client.session_id
    await other.error("session_not_found", resolve(other, found))
    await client.quiet("after another client's answer")


@rule("14.9-one-call", Need.ECHO, broken_by="approves-for-good")
async def one_call(to: Target) -> None:
    """An approval covers one call: the next is asked for again, under a new id."""
    client = await to.session()
    ids = [one(await client.turn(WRITE), "approval.requested")["approval_id"] for _ in range(2)]
    check(ids[0] != ids[1], "two questions have one id")


@rule("14.10-denials", Need.ECHO, broken_by="talkative-denials runs-denied")
async def denials(to: Target) -> None:
    """A denial tells the model the same fixed text each time, without success."""
    client = await to.session()
    prompts = (WRITE, "write b.txt others")
    found = [one(await client.turn(prompt, approve=False), "tool.completed") for prompt in prompts]
    same({event.get("success") for event in found}, {False}, "success")
    texts = {event["output"] for event in found}
    check(len(texts) == 1 and texts != {""}, f"the texts are {texts}")


@rule("14.11-no-limit", Need.ECHO, broken_by="impatient-approvals")
async def no_limit(to: Target) -> None:
    """A question waits for as long as it takes, where no limit is set."""
    client = await to.session()
    found = await asked(client)
    await to.pass_time(2.0)
    await client.quiet("while a question is open")
    resolve(client, found)
    same(one(await client.to_end(), "tool.completed").get("success"), True, "success")


@rule(
    "14.12-limit",
    Need.ECHO,
    ours=True,
    broken_by="endless-approvals",
    settings={"approval_seconds": 0.05},
)
async def limit(to: Target) -> None:
    """Where a limit is set, a question that nobody answers is withdrawn and the call denied."""
    client = await to.session()
    found = await asked(client)
    report = one(await client.until("turn.completed"), "tool.completed")
    same((report.get("success"), report.get("call_id")), (False, found["call_id"]), "success and call")
    await client.error("approval_not_found", resolve(client, found))
    check(not (to.workspace / "a.txt").exists(), "the call ran after all")
