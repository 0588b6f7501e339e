import os
import sqlite3
import stat
from pathlib import Path

import pytest

from bridge.errors import ConfigError, StoreError
from bridge.store import database
from bridge.store.contract import BindingError
from bridge.store.database import SyncError, explain


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def failure(name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error: om_123")
    error.sqlite_errorcode = getattr(sqlite3, name)
    return error


def test_the_file_and_its_directory_are_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "db"
    before = os.umask(0)
    try:
        database.create_private(path)
    finally:
        os.umask(before)
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    path.chmod(0o644)
    database.create_private(path)
    assert mode(path) == 0o600


def test_the_log_is_as_private_as_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a ?#%20" / "db"
    database.create_private(path)
    db = database.connect_writer(path)
    db.execute("CREATE TABLE t (x)")
    assert {file.name: mode(file) for file in path.parent.iterdir()} == dict.fromkeys(
        ("db", "db-wal", "db-shm"), 0o600
    )
    db.close()


def test_a_link_or_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder", "real/below"):
        with pytest.raises(ConfigError, match="cannot open the database"):
            database.create_private(tmp_path / name)


def test_commits_are_synced_and_checkpoints_are_ours(tmp_path: Path) -> None:
    database.create_private(tmp_path / "db")
    db = database.connect_writer(tmp_path / "db")
    names = ("journal_mode", "synchronous", "wal_autocheckpoint", "mmap_size", "fullfsync")
    found = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    assert found == ["wal", 2, 0, 0, 1]
    db.close()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    database.create_private(tmp_path / "db")
    writer = database.connect_writer(tmp_path / "db")
    writer.execute("CREATE TABLE t (x)")
    reader = database.connect_reader(tmp_path / "db")
    assert reader.execute("SELECT count(*) FROM t").fetchone() == (0,)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("INSERT INTO t VALUES (1)")
    reader.close()
    writer.close()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("SQLITE_FULL", "disk is full"),
        ("SQLITE_READONLY_DBMOVED", "read-only"),
        ("SQLITE_CANTOPEN", "cannot be opened"),
        ("SQLITE_IOERR_WRITE", "failed to read or write"),
        ("SQLITE_BUSY", "another program"),
        ("SQLITE_CORRUPT_INDEX", "damaged"),
        ("SQLITE_NOTADB", "damaged"),
        ("SQLITE_CONSTRAINT_UNIQUE", "exists already"),
        ("SQLITE_PROTOCOL", "the database failed"),
    ],
)
def test_an_error_of_sqlite_says_what_to_do_and_no_value(name: str, says: str) -> None:
    error = explain(failure(name))
    assert says in str(error)
    assert "om_123" not in str(error)
    assert not isinstance(error, SyncError)


@pytest.mark.parametrize("name", ["SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC"])
def test_a_failed_sync_is_told_apart(name: str) -> None:
    assert isinstance(explain(failure(name)), SyncError)


def test_other_errors_become_ours() -> None:
    assert "cannot be stored" in str(explain(OverflowError("17179869184")))
    assert "the database failed" in str(explain(sqlite3.ProgrammingError("closed")))
    ours = BindingError("another identity")
    assert explain(ours) is ours
    assert isinstance(ours, StoreError)


def test_damage_is_known() -> None:
    assert database.is_damage(failure("SQLITE_CORRUPT_VTAB"))
    assert database.is_damage(failure("SQLITE_NOTADB"))
    assert not database.is_damage(failure("SQLITE_FULL"))
    assert not database.is_damage(sqlite3.ProgrammingError("closed"))
