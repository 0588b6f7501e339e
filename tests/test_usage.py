"""What turns used, as the command line asks for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.channel.testing.clock import START, FakeClock
from bridge.clock import unix_ms
from bridge.health import Health, Snapshot, State
from bridge.protocol import ours
from bridge.sessions.contract import ControlError
from bridge.store.contract import Spend, Store, Used
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan, Supervisor
from bridge.usage import MOST_DAYS, Usages
from tests.store.values import ACCOUNT, OTHER

DAY_MS = 24 * 3600 * 1000
MIDNIGHT_MS = unix_ms(START) - unix_ms(START) % DAY_MS


class Idle:
    name = ACCOUNT

    async def run(self, health: Health) -> None:
        raise AssertionError("it is switched off")


@asynccontextmanager
async def desk(folder: Path) -> AsyncIterator[tuple[Store, Usages]]:
    supervisor, clock = Supervisor(FakeClock()), FakeClock()
    first = Snapshot(ACCOUNT, "feishu", "work", State.DISABLED, START, enabled=False)
    async with open_store(folder / "db") as store, supervisor.running():
        await supervisor.reconcile([Plan(first, 1, Idle)])
        yield store, Usages(supervisor, store, clock)


async def asked(usages: Usages, **command: Any) -> list[tuple[str, str, int]]:
    lines = await usages.handle(ours.UsageList(**command))
    return [(line.account, line.name, line.turns) for line in lines]


async def test_days_are_those_of_utc_and_today_is_one_of_them(tmp_path: Path) -> None:
    async with desk(tmp_path) as (store, usages):
        for at_ms in (MIDNIGHT_MS, MIDNIGHT_MS - 1, MIDNIGHT_MS - 6 * DAY_MS, MIDNIGHT_MS - 7 * DAY_MS):
            await store.do(Spend(ACCOUNT, Used("u", "echo"), at_ms))
        for days, turns in ((1, 1), (2, 2), (None, 3), (8, 4), (MOST_DAYS, 4)):
            assert await asked(usages, days=days) == [(ACCOUNT, ACCOUNT, turns)]


async def test_one_account_is_told_by_sender(tmp_path: Path) -> None:
    async with desk(tmp_path) as (store, usages):
        await store.do(Spend(ACCOUNT, Used("u", "echo"), MIDNIGHT_MS))
        await store.do(Spend(OTHER, Used("v", "echo"), MIDNIGHT_MS))
        assert await asked(usages, by="sender", account=ACCOUNT) == [(ACCOUNT, "u", 1)]
        assert await asked(usages, by="sender", account=OTHER) == [(OTHER, "v", 1)]  # gone from the settings


async def test_an_account_that_has_used_nothing_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    async with desk(tmp_path) as (_, usages):
        assert await asked(usages, account=ACCOUNT) == []
        with pytest.raises(ControlError) as refused:
            await asked(usages, account="feishu:nobody")
        assert refused.value.code == "unknown_account"


@pytest.mark.parametrize("days", [0, MOST_DAYS + 1])
async def test_days_that_are_none_are_refused(days: int, tmp_path: Path) -> None:
    async with desk(tmp_path) as (_, usages):
        with pytest.raises(ControlError, match="number of days"):
            await asked(usages, days=days)
