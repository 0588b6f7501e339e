import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.channel.testing.clock import FakeClock, settle
from bridge.errors import ConfigError, StoreError
from bridge.meter import StoreMeter
from bridge.store.checkpoints import Checkpoints
from bridge.store.contract import Step
from bridge.store.workers import InlineWorker
from bridge.store.writer import GROUP_STEPS, Writer
from tests.store.disk import Disk, failure
from tests.store.values import DUPLICATE, NEW, claim, message


class BadCheckpoints(Checkpoints):
    """Fails with ``error``, as long as there is one."""

    error: Exception | None = None

    def run(self, mode: str = "PASSIVE") -> bool:
        if self.error is not None:
            raise self.error
        return super().run(mode)


class Opened:
    def __init__(self, path: Path) -> None:
        self.fatal: list[StoreError] = []
        self.writer = Writer(InlineWorker, self.fatal.append)
        self.writer.open(path)
        assert self.writer._cursor is not None
        self.disk = Disk(self.writer._cursor)
        self.writer._cursor = self.disk  # type: ignore[assignment]  # a fake disk under a real connection
        self.checkpoints = BadCheckpoints(self.disk.connection, path, large_bytes=0)
        self.writer._checkpoints = self.checkpoints


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Opened]:
    one = Opened(folder / "db")
    try:
        yield one
    finally:
        one.writer.close()


async def test_what_waits_is_committed_together(tmp_path: Path) -> None:
    async with opened(tmp_path) as one:
        futures = [one.writer.put(claim(message(str(number % 3)))) for number in range(9)]
        assert one.writer.backlog() == 9
        assert [await future for future in futures] == [(NEW,)] * 3 + [(DUPLICATE,)] * 6
        assert one.writer.backlog() == 0
        assert one.disk.seen.count("COMMIT") == 1


async def test_a_group_is_bounded(tmp_path: Path) -> None:
    async with opened(tmp_path) as one:
        futures = [one.writer.put(claim(message(str(number)))) for number in range(GROUP_STEPS + 1)]
        assert {await future for future in futures} == {(NEW,)}
        assert one.disk.seen.count("COMMIT") == 2


async def test_a_step_whose_caller_has_gone_is_taken(tmp_path: Path) -> None:
    async with opened(tmp_path) as one:
        gone = one.writer.put(claim())
        gone.cancel()
        assert await one.writer.put(claim()) == (DUPLICATE,)


async def test_a_refused_step_reaches_its_caller_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as one:
        futures = [one.writer.put(claim(message(name))) for name in ("a", "\ud800", "b")]
        results: list[object] = []
        for future in futures:
            try:
                results.append(await future)
            except StoreError as error:
                results.append(type(error))
        assert results == [(NEW,), StoreError, (NEW,)]
        assert one.fatal == []


async def test_a_closing_writer_takes_what_waits_and_nothing_more(tmp_path: Path) -> None:
    one = Opened(tmp_path / "db")
    waiting = one.writer.put(claim())
    one.writer.refuse("closing")
    one.writer.refuse("again")
    with pytest.raises(StoreError, match="closing"):
        one.writer.put(claim())
    one.writer.close()
    assert await waiting == (NEW,)
    assert (tmp_path / "db-wal").exists() is False


@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_READONLY"])
async def test_a_commit_that_fails_fails_its_group_and_the_writer_goes_on(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as one:
        one.disk.fail = {"COMMIT": name}
        futures = [one.writer.put(claim(message(letter))) for letter in "ab"]
        for future in futures:
            with pytest.raises(StoreError):
                await future
        one.disk.fail = {}
        assert await one.writer.put(claim(message("a"))) == (NEW,)
        assert one.fatal == []


async def test_a_sync_that_fails_ends_it_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as one:
        one.disk.fail = {"COMMIT": "SQLITE_IOERR_FSYNC"}
        futures = [one.writer.put(claim(message(str(number)))) for number in range(GROUP_STEPS + 2)]
        for future in futures:
            with pytest.raises(StoreError):
                await future
        one.disk.fail = {}
        with pytest.raises(StoreError, match="started again"):
            await one.writer.put(claim())
        assert ["failed to sync" in str(error) for error in one.fatal] == [True]
        assert one.disk.seen.count("COMMIT") == 1


@pytest.mark.parametrize("error", [failure("SQLITE_IOERR_WRITE"), failure("SQLITE_FULL"), OSError("gone")])
async def test_a_checkpoint_that_fails_harms_nobody(tmp_path: Path, error: Exception) -> None:
    async with opened(tmp_path) as one:
        one.checkpoints.error = error
        assert await one.writer.put(claim(message("a"))) == (NEW,)
        assert await one.writer.put(claim(message("b"))) == (NEW,)
        one.checkpoints.error = None
        assert one.fatal == []


async def test_a_checkpoint_whose_sync_fails_ends_it_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as one:
        one.checkpoints.error = failure("SQLITE_IOERR_FSYNC")
        assert await one.writer.put(claim(message("a"))) == (NEW,)
        with pytest.raises(StoreError, match="started again"):
            await one.writer.put(claim(message("b")))
        assert len(one.fatal) == 1


async def test_a_bug_ends_it_all_and_nobody_waits_for_ever(tmp_path: Path) -> None:
    bugs: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: bugs.append(context))
    async with opened(tmp_path) as one:
        for future in (one.writer.put(Step()), one.writer.put(claim())):
            with pytest.raises(StoreError, match="started again"):
                await future
        assert [type(bug["exception"]) for bug in bugs] == [KeyError]
        with pytest.raises(StoreError, match="started again"):
            await one.writer.put(claim())
        assert len(one.fatal) == 1


class Late(deque[Any]):
    """Looks empty at the first look, as where a step comes just after it."""

    looks = 0

    def __bool__(self) -> bool:
        self.looks += 1
        return self.looks > 1 and len(self) > 0


async def test_a_step_that_comes_as_the_writer_falls_asleep_is_not_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as one:
        one.writer._waiting = Late()
        assert await one.writer.put(claim()) == (NEW,)


async def test_no_step_is_shown_when_an_answer_cannot_be_given(tmp_path: Path) -> None:
    shown: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: shown.append(str(context)))
    async with opened(tmp_path) as one:
        future = one.writer.put(claim())
        one.writer._waiting[0] = (one.writer._waiting[0][0], future.get_loop())  # type: ignore[assignment]  # no future
        await settle()
    assert len(shown) == 1
    assert "Claim(" not in shown[0]


async def test_idle_moments_are_used(tmp_path: Path) -> None:
    idle: list[Callable[[], None]] = []

    class Watched(InlineWorker):
        def __init__(self, name: str, when_idle: Callable[[], None]) -> None:
            super().__init__(name, when_idle)
            idle.append(when_idle)

    writer = Writer(Watched, lambda _: None)
    idle[0]()  # before it is open, nothing happens
    writer.open(tmp_path / "db")
    await writer.put(claim(message(payload="x" * 50_000)))
    before = (tmp_path / "db").stat().st_size
    idle[0]()
    assert (tmp_path / "db").stat().st_size > before
    writer.close()


async def test_one_that_could_not_be_opened_can_be_closed(tmp_path: Path) -> None:
    writer = Writer(InlineWorker, lambda _: None)
    with pytest.raises(ConfigError):
        writer.open(tmp_path)
    writer.close()


async def test_each_commit_is_measured_with_its_steps(tmp_path: Path) -> None:
    meter = StoreMeter(FakeClock())
    writer = Writer(InlineWorker, lambda _: None, meter)
    writer.open(tmp_path / "db")
    for future in [writer.put(claim(message(str(number)))) for number in range(5)]:
        await future
    writer.close()
    assert (meter.steps, sum(meter.commits.counts)) == (5, 1)
