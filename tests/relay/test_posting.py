"""What an operator sends is stored in time, or never sent; on a running account."""

import asyncio

import pytest

from bridge.channel.testing.clock import settle, until
from bridge.errors import BridgeError, StoreError
from bridge.relay import posting
from bridge.store.contract import CountsOf, Hold, Post, Step
from tests.relay.harness import NAME, Desk, desk


class Stalled:
    """The account's store on a disk that takes nothing until ``opened``; ``errors`` are raised then."""

    def __init__(self, here: Desk) -> None:
        self._real = here.store
        self.opened = asyncio.Event()
        self.errors: dict[type[Step[object]], StoreError] = {}
        here.account._store = self  # type: ignore[assignment]  # a store, but for its delays

    async def do(self, step: Step[object]) -> object:
        await self.opened.wait()
        if type(step) in self.errors:
            raise self.errors[type(step)]
        return await self._real.do(step)

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "POST_SECONDS", 0.02)


async def counts(here: Desk) -> tuple[int, int]:
    found = await here.store.get(CountsOf(NAME))
    return found.open_parts, found.dead


async def test_what_is_stored_in_time_is_sent_also_by_an_account_that_begins_later() -> None:
    async with desk() as here:
        assert await here.account.post("to-x", "hello", ()) == 1
        assert await here.answered(1) == ["hello"]
    async with desk(run=False) as here:
        assert await here.account.post("to-x", "x" * 5000, ()) == 2
        assert await counts(here) == (2, 0)


async def test_what_the_disk_does_not_take_in_time_is_an_error_and_never_sent() -> None:
    async with desk() as here:
        store = Stalled(here)
        with pytest.raises(BridgeError, match="nothing is sent"):
            await here.account.post("to-x", "x" * 5000, ())
        store.opened.set()
        await until(lambda: here.store.backlog() == 0)
        await settle()
        assert (here.channel.sent, await counts(here)) == ([], (0, 0))
        assert await here.account.post("to-x", "the next", ()) == 1
        assert await here.answered(1) == ["the next"]


async def test_what_its_sender_waits_for_no_more_is_not_sent_either() -> None:
    async with desk() as here, asyncio.TaskGroup() as tasks:
        store = Stalled(here)
        sending = tasks.create_task(here.account.post("to-x", "hello", ()))
        await settle()
        sending.cancel()
        await settle()
        store.opened.set()
        await settle()
        assert (here.channel.sent, await counts(here)) == ([], (0, 0))


async def test_what_the_store_refuses_is_its_error_and_ends_no_run() -> None:
    async with desk() as here:
        store = Stalled(here)
        store.opened.set()
        store.errors = {Post: StoreError("the disk is full")}
        with pytest.raises(StoreError, match="full"):
            await here.account.post("to-x", "hello", ())
        store.errors = {}
        assert await here.account.post("to-x", "again", ()) == 1
        assert await here.answered(1) == ["again"]


async def test_a_disk_that_fills_up_while_it_is_taken_back_or_told_of_ends_no_run() -> None:
    for refused in (Hold, Post):
        async with desk() as here:
            store = Stalled(here)
            with pytest.raises(BridgeError, match="nothing is sent"):
                await here.account.post("to-x", "hello", ())
            store.errors = {refused: StoreError("the disk is full")}
            store.opened.set()
            await settle()
            assert here.channel.sent == []
            store.errors = {}
            assert await here.account.post("to-x", "again", ()) == 1
            assert "again" in await here.answered(1)
