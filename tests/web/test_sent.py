"""Responses that are sends: it is told whether anybody was there to read them."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.channel import Answer
from bridge.channel.contract import NoAnswer, SentAnswer
from bridge.web.sent import write_sent
from tests.web.raw import FakeAccount, client, post, served


class Sending:
    """An account whose response is a send; ``told`` is how it went."""

    def __init__(self) -> None:
        self.told: list[bool | None] = []
        self.account = FakeAccount(gate=asyncio.Event())
        self.account.answer = SentAnswer(Answer(200, b"hello", "text/plain"), self.told.append)

    async def asked(self) -> None:
        while not self.account.requests:
            await asyncio.sleep(0)

    def let_go(self) -> None:
        assert self.account.gate is not None
        self.account.gate.set()

    async def outcome(self) -> bool | None:
        while not self.told:
            await asyncio.sleep(0)
        return self.told[0]


async def test_a_response_that_was_written_to_an_open_connection_has_gone_out() -> None:
    here = Sending()
    here.let_go()
    async with served(here.account) as listener, client(listener) as caller:
        for _ in range(2):
            await caller.say(post())
            status, headers, body = await caller.answer()
            assert (status, headers["content-type"], body) == (200, "text/plain", b"hello")
    assert here.told == [True, True]


async def test_a_client_that_has_left_got_nothing() -> None:
    here = Sending()
    async with served(here.account) as listener, client(listener) as caller:
        await caller.say(post())
        await here.asked()
        caller.writer.transport.abort()
        await asyncio.sleep(0.01)  # the listener is told of it, which nothing shows
        here.let_go()
        assert await here.outcome() is False


async def test_a_client_that_has_closed_its_half_counts_as_gone() -> None:
    here = Sending()
    async with served(here.account) as listener, client(listener) as caller:
        await caller.say(post())
        await here.asked()
        caller.writer.write_eof()
        await asyncio.sleep(0.01)  # the listener is told of it, which nothing shows
        here.let_go()
        assert await here.outcome() is False
        assert await caller.rest() == b""


async def test_no_answer_ends_the_connection_without_a_byte() -> None:
    account = FakeAccount()
    account.answer = NoAnswer()
    async with served(account) as listener, client(listener) as caller:
        await caller.say(post())
        assert await caller.rest() == b""


class Response:
    """Breaks off: before its first byte, after it, or by being cancelled."""

    def __init__(self, request: Any, error: BaseException, written: int) -> None:
        self._request, self._error, self._written = request, error, written

    async def prepare(self, request: Any) -> None:
        """Headers are written with the body."""

    async def write_eof(self) -> None:
        self._request.writer.output_size = self._written
        raise self._error


@pytest.mark.parametrize(
    ("error", "written", "told"),
    [
        (ConnectionResetError(), 0, False),
        (ConnectionResetError(), 10, None),
        (asyncio.CancelledError(), 0, None),
        (asyncio.CancelledError(), 10, None),
    ],
)
async def test_a_response_that_breaks_off_is_unknown_unless_nothing_was_written(
    error: BaseException, written: int, told: bool | None
) -> None:
    connection = SimpleNamespace(has_hung_up=False, transport=None)
    request: Any = SimpleNamespace(protocol=connection, writer=SimpleNamespace(output_size=0))
    results: list[bool | None] = []
    with pytest.raises(type(error)):
        await write_sent(request, Response(request, error, written), results.append)  # type: ignore[arg-type] # what it uses of one
    assert results == [told]
