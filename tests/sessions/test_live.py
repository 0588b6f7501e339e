import asyncio

import pytest

from bridge.channel.testing.clock import settle
from bridge.ids import SessionId
from bridge.sessions.errors import RequestError
from bridge.sessions.live import LiveSessions

A, B = SessionId("a"), SessionId("b")


async def test_a_session_is_on_one_connection_at_most() -> None:
    live = LiveSessions()
    await live.hold(A)
    await live.hold(B)
    with pytest.raises(RequestError) as error:
        await live.hold(A)
    assert error.value.code == "invalid_request"
    live.release(A)
    await live.hold(A)


async def test_a_connection_that_is_closing_is_waited_for() -> None:
    live = LiveSessions()
    await live.hold(A)
    live.closing(A)
    live.closing(B)  # unknown: nothing
    async with asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(live.hold(A))
        await settle()
        assert not taking.done()
        live.release(A)
        await taking
    with pytest.raises(RequestError):
        await live.hold(A)


async def test_a_release_in_the_same_moment_is_noticed() -> None:
    live = LiveSessions()
    await live.hold(A)
    asyncio.get_running_loop().call_soon(live.release, A)
    await live.hold(A)
    live.release(A)
    live.release(A)  # twice: nothing
