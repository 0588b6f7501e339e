"""What broke comparable systems when two clients wanted one session; the numbers name the cases."""

from tests.sessions.wire import ENDS, serving


async def test_case_37_a_second_client_of_a_session_is_refused_and_the_first_one_keeps_it() -> None:
    async with serving() as server:
        first = await server.session()
        for _ in range(2):  # neither attempt takes anything away
            second = await server.client()
            second.say(type="session.attach", session_id=first.session_id, cwd=str(server.workspace))
            refused = await second.event()
            assert (refused["type"], refused["code"], refused["fatal"]) == ("error", "invalid_request", False)
            assert "attached elsewhere" in refused["message"]
            await second.close()
        events = await first.turn("hello")
        assert [event["type"] for event in events if event["type"] in ENDS] == ["turn.completed"]
