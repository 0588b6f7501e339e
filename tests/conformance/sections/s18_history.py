"""Section 18: what is too much to remember. All of it is shown by the echo agent."""

from tests.conformance.client import Client, Event, kinds, one
from tests.conformance.faults import brief, check, same
from tests.conformance.rules import Need, rule
from tests.conformance.target import Target

SMALL = {"context_max_tokens": 11_264}  # 1024 tokens for messages where there are no tools: some 3000 bytes
LONG_TURNS = {"max_steps": 20_000}
MOST_MESSAGES, MOST_BYTES = 10_000, 16_777_216


async def talked(to: Target, turns: int, prompt: str = "") -> tuple[Client, list[list[Event]]]:
    """A session without tools, and the events of some turns of about 700 bytes each."""
    client = await to.session(no_tools=True)
    return client, [await client.turn(f"{number} {prompt or 'x' * 330}") for number in range(turns)]


@rule("18.1-compacted", Need.ECHO, broken_by="compacts-silently odd-compaction", settings=SMALL)
async def compacted(to: Target) -> None:
    """Where messages do not fit the context, ``context.compacted`` says so before the step's text."""
    _, turns = await talked(to, 8)
    check("context.compacted" not in kinds(turns[0]), "nothing had to be left out of the first turn")
    found = one(turns[-1], "context.compacted")
    same(kinds(turns[-1])[:2], ["turn.started", "context.compacted"], "the first events")
    check(found["removed_messages"] > 0, "nothing was removed")
    check(found["before_tokens"] > found["after_tokens"] > 0, f"the tokens are odd: {brief(found)}")
    same(turns[-1][-1]["type"], "turn.completed", "the end")


@rule("18.2-each-selection", Need.ECHO, broken_by="compacts-once", settings=SMALL)
async def each_selection(to: Target) -> None:
    """It is sent for each step that messages are left out of, also where they are the same as before."""
    client, _ = await talked(to, 8)
    events = await client.turn("steps 3")
    same(kinds(events).count("context.compacted"), 3, "how often it came in three steps")


@rule("18.3-newest-kept", Need.ECHO, broken_by="forgets-newest", settings=SMALL)
async def newest_kept(to: Target) -> None:
    """The newest messages are kept, as many as fit, and the oldest give way."""
    client, _ = await talked(to, 8)
    answer = await client.answer("history")
    check("7 xxx" in answer, f"the newest message is forgotten: {brief(answer)}")
    check("you: 0 xxx" not in answer, f"the oldest message is kept: {brief(answer)}")


@rule("18.4-too-long", Need.ECHO, broken_by="endless-context", settings=SMALL)
async def too_long(to: Target) -> None:
    """A message that alone is too long for the context fails its turn with ``context_limit``."""
    client = await to.session(no_tools=True)
    end = (await client.turn("x" * 6000))[-1]
    same((end["type"], end.get("code")), ("turn.failed", "context_limit"), "the end")
    same((await client.turn())[-1]["type"], "turn.completed", "a turn afterwards")


@rule("18.5-trimmed", Need.ECHO, broken_by="trims-silently own-trim-ids", settings=LONG_TURNS, slow=True)
async def trimmed(to: Target) -> None:
    """Over 10,000 messages the oldest turns go, and ``session.trimmed`` says how many, under the turn's
    request id."""
    client = await to.session(no_tools=True)
    for _ in range(9):
        check("session.trimmed" not in kinds(await client.turn("steps 1000")), "messages go too early")
    await client.turn("steps 900")
    request_id = client.ask("turn.start", prompt="steps 200")
    events = await client.to_end()
    found = one(events, "session.trimmed")
    same(found.get("request_id"), request_id, "the request id")
    check(found["removed_messages"] > 0, "nothing was removed")
    check(0 < found["history_bytes"] <= MOST_BYTES, f"{found['history_bytes']} bytes are left")
    check("turn_id" not in found, "it has a turn id")
    same(events[-1]["type"], "turn.completed", "the end")


@rule("18.6-own-turn", Need.ECHO, broken_by="endless-history", slow=True)
async def own_turn(to: Target) -> None:
    """A turn that alone is over the history's limits fails with ``history_limit``; nothing is trimmed for
    it."""
    client = await to.session(no_tools=True)
    await client.turn("the word is quince")
    events = await client.turn("steps 100 170000")
    same((events[-1]["type"], events[-1].get("code")), ("turn.failed", "history_limit"), "the end")
    check("session.trimmed" not in kinds(events), "something was trimmed")
    check("quince" in await client.answer("history"), "what was said before is forgotten")
