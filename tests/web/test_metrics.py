"""The text of /metrics is made in a thread, when somebody asks, and not for each who does."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from bridge.channel import Answer
from bridge.channel.testing.clock import START, FakeClock
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.meter import Meter
from bridge.web.metrics import KEPT_SECONDS, Metrics

PIGEON = Snapshot(AccountId("pigeon:main"), "pigeon", "main", State.CONNECTED, START)


@dataclass
class Asked:
    """Counts how often the accounts were measured."""

    times: int = 0

    async def __call__(self) -> Sequence[Snapshot]:
        self.times += 1
        await asyncio.sleep(0)
        return [PIGEON]


def metrics(clock: FakeClock, asked: Asked, database: Path) -> Metrics:
    return Metrics(Meter(clock), asked, lambda: 7, database, clock, "1.2.3")


def values(answer: Answer) -> dict[str, float]:
    """What has no label."""
    families = text_string_to_metric_families(answer.body.decode())
    return {one.name: one.value for family in families for one in family.samples if not one.labels}


async def test_the_text_shows_the_daemon_and_its_files(tmp_path: Path) -> None:
    database = tmp_path / "turnbridge.db"
    database.write_bytes(b"x" * 11)
    answer = await metrics(FakeClock(), Asked(), database).answer()
    assert (answer.status, answer.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    shown = values(answer)
    assert shown["turnbridge_store_database_bytes"] == 11
    assert shown["turnbridge_store_wal_bytes"] == 0
    assert shown["turnbridge_store_backlog"] == 7


async def test_whoever_asks_again_at_once_gets_the_same_text(tmp_path: Path) -> None:
    clock, asked = FakeClock(), Asked()
    told = metrics(clock, asked, tmp_path / "none")
    async with asyncio.TaskGroup() as tasks:
        answers = [tasks.create_task(told.answer()) for _ in range(5)]
    assert len({one.result().body for one in answers}) == 1
    assert asked.times == 1
    await clock.advance(KEPT_SECONDS)
    await told.answer()
    assert asked.times == 2


def test_the_library_is_not_loaded_before_somebody_asks() -> None:
    program = "import sys, bridge.daemon; print('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
