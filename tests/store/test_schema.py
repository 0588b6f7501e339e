import random
import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from bridge.errors import ConfigError, StoreError
from bridge.store import database, schema
from bridge.store.contract import CountsOf, HeldTexts, OpenMessages, OpenParts, Post
from bridge.store.group import commit_group
from bridge.store.sqlite import read
from tests.store.values import ACCOUNT, CHAT, claim, message, reply, text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "db"


def filled(path: Path) -> bytes:
    """A closed database of some pages, all of it in the one file."""
    db = schema.open_file(path)
    messages = [
        claim(message(f"m{number}", redelivery=f"k{number}", payload="x" * 300)) for number in range(80)
    ]
    commit_group(db.cursor(), [*messages, *(Post(ACCOUNT, reply(text("y" * 300)), 1) for _ in range(40))])
    db.close()
    return path.read_bytes()


def test_a_new_file_gets_the_newest_schema_and_keeps_it(path: Path) -> None:
    for _ in range(2):
        db = schema.open_file(path)
        assert schema.version(db) == len(schema.migrations()) >= 1
        db.close()


def test_a_script_s_number_is_the_version_that_it_leads_to() -> None:
    scripts = sorted((files("bridge.store") / "migrations").iterdir(), key=lambda file: file.name)
    numbers = [file.name.partition("_")[0] for file in scripts if file.name.endswith(".sql")]
    assert numbers == [f"{number:04}" for number in range(1, len(schema.migrations()) + 1)]


def test_a_newer_schema_is_refused_and_left_as_it_is(path: Path) -> None:
    db = schema.open_file(path)
    db.execute(f"PRAGMA user_version = {len(schema.migrations()) + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="install the newer one"):
        schema.open_file(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, -3])
def test_another_programs_database_is_refused_and_left_as_it_is(path: Path, version: int) -> None:
    database.create_private(path)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="another program's"):
        schema.open_file(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    database.create_private(path)
    path.write_bytes(b"no database at all" * 100)
    for open_it in (schema.open_file, schema.open_reader):
        with pytest.raises(ConfigError, match="is damaged: restore a copy"):
            open_it(path)


def test_a_path_that_cannot_be_used_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot open"):
        schema.open_file(path)
    with pytest.raises(ConfigError, match="cannot open"):
        schema.open_reader(path)


def test_a_reader_opens_beside_the_writer(path: Path) -> None:
    writer = schema.open_file(path)
    reader = schema.open_reader(path)
    assert schema.version(reader) == schema.version(writer)
    reader.close()
    writer.close()


def test_sqlite_must_be_new_enough(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(ConfigError, match="too old"):
        schema.open_file(path)
    assert not path.exists()


SECOND = """
CREATE TABLE more (x TEXT); -- a comment; with a semicolon
INSERT INTO more VALUES ('a;b');
"""


def test_a_migration_is_taken_once(path: Path) -> None:
    db = schema.open_file(path)
    scripts = [*schema.migrations(), SECOND]
    schema.migrate(db, scripts)
    schema.migrate(db, scripts)
    assert db.execute("SELECT x FROM more").fetchall() == [("a;b",)]
    assert schema.version(db) == len(scripts)
    db.close()


@pytest.mark.parametrize("ending", ["", "ROLLBACK;\n"])
def test_a_migration_that_fails_leaves_nothing_of_itself(path: Path, ending: str) -> None:
    db = schema.open_file(path)
    before = schema.version(db)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        schema.migrate(db, [*schema.migrations(), f"{SECOND}{ending}INSERT INTO nowhere VALUES (1);"])
    assert schema.version(db) == before
    assert not db.in_transaction
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)
    db.close()


def test_a_migration_interrupted_at_any_statement_is_taken_anew(path: Path, tmp_path: Path) -> None:
    script = schema.migrations()[0]
    for statements in range(len(list(schema.statements(script)))):
        here = tmp_path / str(statements)
        database.create_private(here)
        db = database.connect_writer(here)
        db.execute("BEGIN IMMEDIATE")
        for statement in list(schema.statements(script))[:statements]:
            db.execute(statement)
        db.close()  # as a killed process does: without a commit
        db = schema.open_file(here)
        assert commit_group(db.cursor(), [claim()]) != []
        db.close()


def read_all(path: Path) -> None:
    """Open, read everything and write, as a daemon would; only our own errors may come out."""
    db = schema.open_file(path)
    try:
        for query in (OpenMessages(ACCOUNT), OpenParts(ACCOUNT), HeldTexts(ACCOUNT, CHAT), CountsOf(ACCOUNT)):
            read(db, query)
        commit_group(db.cursor(), [claim(message(f"new {number}")) for number in range(8)])
    finally:
        db.close()


def spoilt(whole: bytes) -> Iterator[bytes]:
    rng = random.Random(20)
    for number in range(60):
        data = bytearray(whole)
        place = number if number < 20 else rng.randrange(len(data))
        data[place] ^= 1 << rng.randrange(8)
        yield bytes(data)
    for _ in range(20):
        yield whole[: rng.randrange(len(whole))]


def test_a_damaged_file_opens_or_is_refused_in_our_words(path: Path) -> None:
    whole, refused = filled(path), 0
    for data in spoilt(whole):
        for leftover in path.parent.iterdir():
            leftover.unlink()
        path.write_bytes(data)
        try:
            read_all(path)
        except (ConfigError, StoreError):
            refused += 1
    assert refused > 20


def test_damage_inside_is_found_when_the_file_is_small(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bytearray(filled(path))
    size = 4096
    whole[-3 * size : -size] = b"\xff" * (2 * size)
    path.write_bytes(whole)
    with pytest.raises(ConfigError, match="is damaged"):
        schema.open_file(path)
    monkeypatch.setattr(database, "CHECKED_BYTES", 0)
    schema.open_file(path).close()


def test_a_script_s_last_statement_needs_no_semicolon() -> None:
    """And what stands behind it may be a comment."""
    for script in ("CREATE TABLE a (x);\nCREATE TABLE b (x)", "CREATE TABLE a (x);\n-- that is all\n\n"):
        with sqlite3.connect(":memory:") as db:
            for statement in schema.statements(script):
                db.execute(statement)
            names = [row[0] for row in db.execute("SELECT name FROM sqlite_master ORDER BY name")]
        db.close()
        assert names == (["a", "b"] if "b" in script else ["a"])
