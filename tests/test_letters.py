"""Dead letters by command: private things are told only of one that is asked for; a retry is delivered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bridge.channel.testing.clock import START, FakeClock, until
from bridge.clock import unix_ms
from bridge.health import Health, Snapshot, State
from bridge.ids import PartId
from bridge.letters import Letters
from bridge.protocol import ours
from bridge.sessions.contract import ControlError
from bridge.store.contract import Hold, OpenParts, PartState, Settle, Store
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan, Supervisor
from tests.store.values import ACCOUNT, file, post, reply, text

DAY_MS = 24 * 3600 * 1000
NOW_MS = unix_ms(START)


@dataclass
class Carrier:
    """An account that notes which replies it is to deliver."""

    told: list[str] = field(default_factory=list)
    name: str = ACCOUNT

    async def run(self, health: Health) -> None:
        health.contact()
        await asyncio.Event().wait()

    async def deliver(self, reply_id: str) -> None:
        self.told.append(reply_id)


@dataclass
class Desk:
    letters: Letters
    store: Store
    carrier: Carrier

    async def give_up(self, body: str = "hello", at_ms: int = NOW_MS) -> PartId:
        (part_id,) = await post(self.store, reply(text(body)))
        await self.store.do(Hold(part_id, PartState.REFUSED, body, at_ms, "too long"))
        return part_id


@asynccontextmanager
async def desk(folder: Path, *, running: bool = True) -> AsyncIterator[Desk]:
    clock, carrier = FakeClock(), Carrier()
    supervisor = Supervisor(clock)
    first = Snapshot(ACCOUNT, "feishu", "work", State.STARTING, START)
    async with open_store(folder / "db") as store, supervisor.running():
        if running:
            await supervisor.reconcile([Plan(first, 1, lambda: carrier)])
            await until(lambda: supervisor.component(ACCOUNT) is carrier)
        yield Desk(Letters(supervisor, store, clock), store, carrier)


async def test_a_list_shows_neither_text_nor_recipient_and_one_letter_shows_both(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        part_id = await one.give_up("私密")
        (listed,) = await one.letters.handle(ours.DeadList())
        assert (listed.id, listed.account, listed.kind, listed.state) == (part_id, ACCOUNT, "text", "refused")
        assert (listed.reason, listed.size, listed.ended_unix_seconds) == ("too long", 6, NOW_MS // 1000)
        assert (listed.to, listed.text) == (None, None)
        (shown,) = await one.letters.handle(ours.DeadShow(id=part_id))
        assert (shown.to, shown.text) == ("to", "私密")
        assert await one.letters.handle(ours.DeadList(account="webhook:other")) == ()


@pytest.mark.parametrize("wanted", [1, 2, 99, 2**63 - 1, 2**63, 2**64 - 1])
async def test_what_is_not_there_is_not_shown(tmp_path: Path, wanted: int) -> None:
    async with desk(tmp_path) as one:
        await post(one.store, reply())
        await post(one.store, reply())
        await one.give_up()
        with pytest.raises(ControlError, match="look at the list"):
            await one.letters.handle(ours.DeadShow(id=wanted))


async def test_a_retry_is_delivered_by_the_account_that_runs(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        part_id = await one.give_up("again")
        assert await one.letters.handle(ours.DeadRetry(ids=(part_id,))) == ()
        (part,) = await one.store.get(OpenParts(ACCOUNT))
        assert (part.body, [part.reply_id]) == ("again", one.carrier.told)


async def test_a_retry_waits_in_the_outbox_of_an_account_that_does_not_run(tmp_path: Path) -> None:
    async with desk(tmp_path, running=False) as one:
        part_id = await one.give_up()
        await one.letters.handle(ours.DeadRetry(ids=(part_id,)))
        assert len(await one.store.get(OpenParts(ACCOUNT))) == 1
        assert one.carrier.told == []


async def test_a_retry_names_those_that_cannot_be_sent_and_sends_the_others(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        (copy,) = await post(one.store, reply(file('{"path": "/x", "name": "a.png", "size": 3}')))
        await one.store.do(Settle(copy, PartState.REFUSED, NOW_MS))
        part_id = await one.give_up()
        with pytest.raises(ControlError, match=f"^{2**64 - 1}, {copy}, 99: .*a file is not kept"):
            await one.letters.handle(ours.DeadRetry(ids=(2**64 - 1, copy, part_id, PartId(99))))
        assert len(one.carrier.told) == 1


async def test_case_58_dead_letters_are_listed_shown_retried_and_pruned_and_then_the_count_is_clear(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path) as one:
        old = await one.give_up("old", NOW_MS - 40 * DAY_MS)
        ids = [await one.give_up(body) for body in ("a", "b")]
        assert [letter.id for letter in await one.letters.handle(ours.DeadList())] == [old, *ids]
        left = await one.letters.handle(ours.DeadPrune(older_than_days=30))
        assert [letter.id for letter in left] == ids
        assert [letter.id for letter in await one.letters.handle(ours.DeadRetry(ids=(ids[0],)))] == [ids[1]]
        assert await one.letters.handle(ours.DeadPrune(ids=(ids[1],))) == ()
        await one.give_up()
        assert await one.letters.handle(ours.DeadPrune(older_than_days=2**32 - 1)) != ()


async def test_pruning_letters_none_of_which_is_there_is_refused(tmp_path: Path) -> None:
    async with desk(tmp_path) as one:
        part_id = await one.give_up()
        with pytest.raises(ControlError, match=r"^9998, 9999: no dead letter"):
            await one.letters.handle(ours.DeadPrune(ids=(PartId(9998), PartId(9999))))
        with pytest.raises(ControlError, match=f"^{2**63}: no dead letter"):
            await one.letters.handle(ours.DeadPrune(ids=(2**63,)))
        assert await one.letters.handle(ours.DeadPrune(ids=(PartId(9999), part_id, 2**64 - 1))) == ()
        assert await one.letters.handle(ours.DeadPrune(older_than_days=1)) == ()
