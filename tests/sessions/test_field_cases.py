"""What broke comparable systems in the field, tried on the session server; the numbers name the cases."""

from tests.sessions.test_calls import Notes, calling
from tests.sessions.wire import ENDS, Client, serving


async def asked(client: Client) -> str:
    """Start a turn that waits for an approval; the approval's id."""
    client.ask("turn.start", prompt="go", request_id="held")
    return str((await client.until("approval.requested"))[-1]["approval_id"])


async def test_case_60_an_approval_is_taken_at_once_while_turns_queue_behind_the_one_that_asks() -> None:
    async with serving(calling("write", {}), tools=Notes()) as server:
        client = await server.session()
        approval_id = await asked(client)
        client.ask("turn.start", prompt="next", request_id="queued")
        await client.until("queue.enqueued")
        client.ask("approval.resolve", approval_id=approval_id, approved=True)
        events = await client.until(*ENDS)
        assert [event["type"] for event in events][:2] == ["tool.started", "tool.completed"]
        assert {event["request_id"] for event in events} == {"held"}


async def test_case_62_an_approval_is_found_by_the_id_that_was_given_out_and_by_nothing_else() -> None:
    async with serving(calling("write", {}), tools=Notes()) as server:
        one, two = await server.session(), await server.session()
        first, second = await asked(one), await asked(two)
        one.ask("approval.resolve", approval_id=second, approved=True)
        assert await one.error() == "approval_not_found"
        two.ask("approval.resolve", approval_id=second, approved=True)
        assert (await two.until(*ENDS))[-1]["type"] == "turn.completed"
        one.ask("approval.resolve", approval_id=first, approved=False)
        denied = await one.until("tool.completed")
        assert [event["type"] for event in denied] == ["tool.completed"]
        assert not denied[-1]["success"]


async def test_case_96_a_running_turn_is_cancelled_where_it_runs_whoever_tries_to_take_it_up() -> None:
    async with serving() as server:
        client, other = await server.session(), await server.client()
        client.ask("turn.start", prompt="slow 20")
        turn_id = (await client.until("turn.started"))[-1]["turn_id"]
        other.say(type="session.attach", session_id=client.session_id, cwd=str(server.workspace))
        assert await other.error() == "invalid_request"
        client.ask("turn.cancel", turn_id=turn_id)
        ends = [event["type"] for event in await client.until(*ENDS) if event["type"] in ENDS]
        client.ask("session.clear")
        ends += [event["type"] for event in await client.until("session.cleared") if event["type"] in ENDS]
        assert ends == ["turn.cancelled"]


async def test_case_97_one_sessions_open_question_holds_up_no_other_session() -> None:
    async with serving(calling("write", {}), tools=Notes()) as server:
        waiting = await server.session()
        await asked(waiting)
        other = await server.session()
        assert (await other.turn("go"))[-1]["type"] == "turn.completed"
        other.say(type="daemon.control", command={"action": "status"})
        assert (await other.event())["type"] == "daemon.status"
