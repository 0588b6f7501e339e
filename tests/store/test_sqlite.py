import asyncio
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bridge.errors import ConfigError, StoreError
from bridge.ids import AccountId, MessageId
from bridge.store.contract import CountsOf, MessageState, OpenMessages, OpenParts, Start
from bridge.store.sqlite import SqliteStore, open_store
from bridge.store.workers import InlineWorker
from tests.store.disk import Disk
from tests.store.values import ACCOUNT, DUPLICATE, NEW, SESSION, claim, message, open_ids

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "turnbridge.db"


async def test_every_file_is_private(path: Path) -> None:
    async with open_store(path) as store:
        await store.do(claim())
        files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert files == dict.fromkeys(("turnbridge.db", "turnbridge.db-wal", "turnbridge.db-shm"), 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_closing_finishes_what_waits_and_leaves_one_file_and_no_thread(path: Path) -> None:
    before = threading.active_count()
    async with open_store(path) as store:
        waiting = asyncio.ensure_future(store.do(claim(message("a"))))  # noqa: TID251 - awaited below
        await asyncio.sleep(0)
    assert await waiting == (NEW,)
    assert [file.name for file in path.parent.iterdir()] == ["turnbridge.db"]
    for thread in threading.enumerate():
        if thread.name.startswith("store-"):
            await asyncio.to_thread(thread.join, 10)
    assert threading.active_count() <= before + 1  # the one that joined
    with pytest.raises(StoreError, match="closing"):
        await store.do(claim())
    async with open_store(path) as store:
        assert await open_ids(store) == ["a"]


async def test_a_cancelled_caller_leaves_the_store_working(path: Path) -> None:
    async with open_store(path) as store:
        for number in range(50):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await store.do(claim(message(str(number))))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await store.get(CountsOf(ACCOUNT))
        assert await store.do(claim(message("last"))) == (NEW,)
        assert (await open_ids(store))[-1] == "last"


async def test_an_error_of_the_callers_own_passes_and_closes(path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_store(path) as store:
            await store.do(claim())
            raise ZeroDivisionError
    assert [file.name for file in path.parent.iterdir()] == ["turnbridge.db"]


async def test_a_cancellation_while_open_closes(path: Path) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), open_store(path) as store:
            await store.do(claim())
            await asyncio.Event().wait()
    async with open_store(path) as store:
        assert await store.do(claim()) in ((NEW,), (DUPLICATE,))


async def test_a_caller_reads_its_own_steps(path: Path) -> None:
    async with open_store(path) as store:
        for number in range(100):
            await store.do(claim(message(str(number))))
            assert len(await store.get(OpenMessages(ACCOUNT))) == number + 1


async def test_a_question_that_cannot_be_asked_fails_in_our_words(path: Path) -> None:
    async with open_store(path) as store:
        for query in (OpenParts(ACCOUNT, after=1 << 70), OpenParts(AccountId("\ud800"))):
            with pytest.raises(StoreError, match="cannot be stored"):
                await store.get(query)


async def test_the_backlog_counts_steps_without_an_answer(path: Path) -> None:
    async with open_store(path) as store:
        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(store.do(claim(message(str(number)))))
            await asyncio.sleep(0)
            assert store.backlog() == 20
        assert store.backlog() == 0


@pytest.mark.parametrize("content", [b"no database at all", None])
async def test_a_file_that_cannot_be_used_is_refused_and_leaves_no_thread(
    path: Path, content: bytes | None
) -> None:
    path.parent.mkdir()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content * 100)
    with pytest.raises(ConfigError):
        async with open_store(path):
            pytest.fail("it was opened")
    for thread in threading.enumerate():
        if thread.name.startswith("store-"):
            await asyncio.to_thread(thread.join, 10)
            assert not thread.is_alive()


async def test_a_full_disk_refuses_until_there_is_space(path: Path) -> None:
    async with open_store(path) as store:
        await store.do(claim(message("before")))
        limit(store, "page_count")
        with pytest.raises(StoreError, match="disk is full"):
            await store.do(claim(message("big", payload="x" * 1_000_000)))
        assert await open_ids(store) == ["before"]
        limit(store, "1000000")
        assert await store.do(claim(message("big", payload="x" * 1_000_000))) == (NEW,)


async def test_after_a_failed_sync_the_file_is_left_as_it_is(path: Path) -> None:
    fatal: list[StoreError] = []
    async with open_store(path, fatal=fatal.append) as store:
        await store.do(claim(message("a")))
        assert store._writer._cursor is not None
        disk = Disk(store._writer._cursor)
        store._writer._cursor = disk  # type: ignore[assignment]  # a fake disk under a real connection
        disk.fail = {"COMMIT": "SQLITE_IOERR_FSYNC"}
        for name in "bc":
            with pytest.raises(StoreError):
                await store.do(claim(message(name)))
        disk.fail = {}
    assert len(fatal) == 1
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    async with open_store(path) as store:
        assert await open_ids(store) == ["a"]


FULL = """
import asyncio, resource, sys
from pathlib import Path
from bridge.errors import StoreError
from bridge.store.sqlite import open_store
from tests.store.values import claim, message, open_ids

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    stored, refused, fatal = [], 0, []
    async with open_store(Path(sys.argv[1]), fatal=fatal.append) as store:
        limit(700_000)
        for number in range(40):
            try:
                await store.do(claim(message(str(number), payload="x" * 20_000)))
                stored.append(str(number))
            except StoreError:
                refused += 1
        limit(resource.RLIM_INFINITY)
        await store.do(claim(message("after")))
        assert await open_ids(store) == [*stored, "after"]
    assert refused > 10 and len(stored) > 10 and not fatal

asyncio.run(main())
"""


def test_files_that_may_not_grow_refuse_steps_and_nothing_else(path: Path) -> None:
    child = subprocess.run([sys.executable, "-c", FULL, str(path)], cwd=ROOT, capture_output=True, text=True)
    assert (child.returncode, child.stderr) == (0, "")


def limit(store: SqliteStore, pages: str) -> None:
    """Let the database grow to this many pages; the writer's thread is idle."""
    cursor = store._writer._cursor
    assert cursor is not None
    if pages == "page_count":
        (pages,) = cursor.execute("PRAGMA page_count").fetchone()
    cursor.execute(f"PRAGMA max_page_count = {pages}").fetchall()


@pytest.mark.parametrize("damage", ["state = 'clbimed'", "payload = CAST(x'ff' AS TEXT)", "drop"])
async def test_a_read_of_damaged_values_fails_in_our_words(path: Path, damage: str) -> None:
    async with open_store(path, workers=InlineWorker) as store:
        await store.do(claim(message("m", MessageState.CLAIMED)))
        cursor = store._writer._cursor
        assert cursor is not None
        if damage == "drop":
            cursor.execute("DROP TABLE messages")
        else:
            cursor.execute(f"UPDATE messages SET {damage}")
            cursor.execute("DROP INDEX messages_open")
            cursor.execute("CREATE INDEX messages_open ON messages (account)")
        query = OpenMessages(ACCOUNT)
        if damage.startswith("state"):
            cursor.execute("UPDATE parts SET state = 'x'")
            assert await store.get(query) == ()  # such a message is not open
        else:
            with pytest.raises(StoreError):
                await store.get(query)
        assert cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0  # it holds nothing back


CHILD = """
import asyncio, sys
from pathlib import Path
from bridge.store.sqlite import open_store
from tests.store.values import claim, message

async def caller(store, name):
    number = 0
    while True:
        await store.do(claim(message(f"{name}-{number}")))
        print(f"{name}-{number}", flush=True)
        number += 1

async def main():
    async with open_store(Path(sys.argv[1])) as store, asyncio.TaskGroup() as tasks:
        for name in range(8):
            tasks.create_task(caller(store, name))

asyncio.run(main())
"""


@pytest.mark.parametrize("lines", [1, 100, 1000])
def test_what_was_acknowledged_survives_a_kill(path: Path, lines: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    told = [child.stdout.readline().strip() for _ in range(lines)]
    child.kill()
    told += [line.strip() for line in child.stdout.readlines() if line.endswith("\n")]
    child.stdout.close()
    child.wait(10)
    assert len(set(told)) == len(told) >= lines
    verdicts = asyncio.run(claim_all(path, told))
    assert verdicts == {(DUPLICATE,)}


async def claim_all(path: Path, names: list[str]) -> set[object]:
    async with open_store(path) as store:
        assert await store.do(Start(ACCOUNT, MessageId(names[0]), SESSION, 1)) is True
        return {await store.do(claim(message(name))) for name in names}
