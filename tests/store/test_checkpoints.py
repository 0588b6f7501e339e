import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.store import checkpoints, database, schema
from bridge.store.checkpoints import Checkpoints
from bridge.store.group import commit_group
from tests.store.values import claim, message

LARGE = 256 << 10


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = schema.open_file(tmp_path / "db")
    connection.execute(f"PRAGMA journal_size_limit = {LARGE // 2}").fetchall()
    yield connection
    connection.close()


def write(db: sqlite3.Connection, number: int) -> None:
    commit_group(db.cursor(), [claim(message(str(number), payload="x" * 20_000))])


def log_bytes(folder: Path) -> int:
    return (folder / "db-wal").stat().st_size


def test_under_constant_load_the_log_stays_small(db: sqlite3.Connection, tmp_path: Path) -> None:
    under_test, largest = Checkpoints(db, tmp_path / "db", LARGE), 0
    for number in range(100):
        write(db, number)
        largest = max(largest, log_bytes(tmp_path))
        under_test.after_commit()
    assert LARGE < largest < 2 * LARGE
    assert (tmp_path / "db").stat().st_size > 4 * LARGE


def test_without_a_checkpoint_the_log_grows(db: sqlite3.Connection, tmp_path: Path) -> None:
    for number in range(100):
        write(db, number)
    assert log_bytes(tmp_path) > 4 * LARGE


def test_a_reader_delays_a_checkpoint_until_the_log_has_grown_further(
    db: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "RETRY_BYTES", LARGE)
    under_test = Checkpoints(db, tmp_path / "db", LARGE)
    reader = database.connect_reader(tmp_path / "db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages").fetchall()
    runs: list[str] = []
    db.set_trace_callback(lambda text: runs.append(text) if "wal_checkpoint" in text else None)
    while log_bytes(tmp_path) < LARGE * 2:
        write(db, log_bytes(tmp_path))
        under_test.after_commit()
    assert len(runs) == 1
    reader.execute("ROLLBACK")
    reader.close()
    while log_bytes(tmp_path) > LARGE:
        write(db, len(runs) + log_bytes(tmp_path) * 1000)
        under_test.after_commit()
    assert len(runs) == 2


def test_an_idle_moment_checkpoints_once_for_what_was_written(db: sqlite3.Connection, tmp_path: Path) -> None:
    under_test = Checkpoints(db, tmp_path / "db")
    runs: list[str] = []
    db.set_trace_callback(lambda text: runs.append(text) if "wal_checkpoint" in text else None)
    under_test.when_idle()
    under_test.when_idle()
    assert len(runs) == 1
    write(db, 1)
    under_test.after_commit()
    under_test.when_idle()
    under_test.when_idle()
    assert len(runs) == 2


def test_the_last_one_leaves_an_empty_log(db: sqlite3.Connection, tmp_path: Path) -> None:
    write(db, 1)
    assert Checkpoints(db, tmp_path / "db").run("TRUNCATE") is True
    assert log_bytes(tmp_path) == 0
