import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from bridge.channel.testing.clock import settle
from bridge.ids import SessionId
from bridge.sessions.errors import RequestError
from bridge.sessions.kept import Kept
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


@dataclass
class Stored:
    """A session, as far as it is looked at."""

    running: bool = True
    cwd: Path = Path("/w")

    @property
    def context(self) -> Any:
        return self


def kept(session: Stored) -> Kept:
    return Kept(cast(Any, session), cast(Any, None))


async def test_a_kept_session_goes_to_the_next_connection_of_its_workspace_once() -> None:
    live, one = LiveSessions(), kept(Stored())
    await live.hold(A)
    live.keep(A, one)
    with pytest.raises(RequestError) as error:
        await live.hold(A, Path("/elsewhere"))
    assert error.value.code == "session_not_found"
    assert not one.taken.is_set()
    assert await live.hold(A, Path("/w")) is one
    assert one.taken.is_set()
    with pytest.raises(RequestError) as held:
        await live.hold(A, Path("/w"))
    assert held.value.code == "invalid_request"


async def test_a_kept_session_whose_turn_is_over_is_waited_for() -> None:
    live, one = LiveSessions(), kept(Stored(running=False))
    await live.hold(A)
    live.keep(A, one)
    async with asyncio.TaskGroup() as tasks:
        holding = tasks.create_task(live.hold(A, Path("/w")))
        await settle()
        assert not holding.done()
        live.closing(A)
        live.release(A)
    assert holding.result() is None
    assert not one.taken.is_set()
