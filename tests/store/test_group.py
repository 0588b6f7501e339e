import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.errors import StoreError
from bridge.ids import PartId
from bridge.store import queries, schema, steps
from bridge.store.contract import (
    EndTurn,
    LoadSession,
    OpenMessages,
    OpenSession,
    Sending,
    SessionRecord,
    Step,
)
from bridge.store.group import commit_group
from tests.store.values import ACCOUNT, DUPLICATE, NEW, SESSION, TURN, claim, message

BAD = "\ud800"  # has no UTF-8 form


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Cursor]:
    connection = schema.open_file(tmp_path / "db")
    yield connection.cursor()
    connection.close()


@pytest.fixture
def seen(db: sqlite3.Cursor) -> list[str]:
    """The statements that were executed, by their first word."""
    words: list[str] = []
    db.connection.set_trace_callback(lambda statement: words.append(statement.split()[0]))
    return words


def opened(db: sqlite3.Cursor) -> list[str]:
    return [one.message_id for one in queries.read(db, OpenMessages(ACCOUNT))]


def test_a_group_is_one_transaction(db: sqlite3.Cursor, seen: list[str]) -> None:
    group: list[Step[object]] = [claim(message(name)) for name in "abcabc"]
    group.insert(3, OpenSession(SessionRecord(SESSION, "/", "{}", 1), 1000))
    outcomes = commit_group(db, group)
    assert outcomes == [(NEW,), (NEW,), (NEW,), None, (DUPLICATE,), (DUPLICATE,), (DUPLICATE,)]
    assert (seen.count("BEGIN"), seen.count("COMMIT")) == (1, 1)
    assert opened(db) == ["a", "b", "c"]


def test_claims_that_follow_each_other_share_statements(db: sqlite3.Cursor, seen: list[str]) -> None:
    outcomes = commit_group(db, [claim(message(str(number))) for number in range(63)])
    assert outcomes == [(NEW,)] * 63
    assert seen.count("INSERT") == 6


def test_of_claims_that_share_a_statement_each_has_its_own_verdict(db: sqlite3.Cursor) -> None:
    commit_group(db, [claim(message("b"))])
    names = ["a", "a", "b", "c", "c", "d", "a", "e"]
    outcomes = commit_group(db, [claim(message(name)) for name in names])
    assert [one == (NEW,) for one in outcomes] == [True, False, False, True, False, True, False, True]
    assert set(outcomes) == {(NEW,), (DUPLICATE,)}
    again = commit_group(db, [claim(message(name)) for name in names])
    assert again == [(DUPLICATE,)] * 8


def test_a_message_shut_out_by_its_second_key_does_not_take_the_place_of_a_later_one(
    db: sqlite3.Cursor,
) -> None:
    keys = [("a", "1"), ("b", "1"), ("a", ""), ("b", "")]
    outcomes = commit_group(db, [claim(message(name, redelivery=key)) for name, key in keys])
    assert outcomes == [(NEW,), (DUPLICATE,), (DUPLICATE,), (NEW,)]


def test_a_step_that_fails_before_it_changes_anything_costs_the_others_nothing(
    db: sqlite3.Cursor, seen: list[str]
) -> None:
    failed, stored = commit_group(db, [Sending(PartId(9), 1), claim()])
    assert isinstance(failed, StoreError)
    assert stored == (NEW,)
    assert "SAVEPOINT" not in seen


def test_a_step_that_fails_half_done_is_undone_alone(db: sqlite3.Cursor, seen: list[str]) -> None:
    commit_group(db, [OpenSession(SessionRecord(SESSION, "/", "{}", 1), 1000)])
    half = EndTurn(SESSION, TURN, (), ("entry", BAD), 9, 2000)
    outcomes = commit_group(db, [claim(message("a")), half, claim(message("b")), half])
    assert [type(outcome) for outcome in outcomes] == [tuple, StoreError, tuple, StoreError]
    assert opened(db) == ["a", "b"]
    loaded = queries.read(db, LoadSession(SESSION))
    assert loaded is not None
    assert (loaded.record.seq, loaded.history) == (1, ())
    assert seen.count("SAVEPOINT") == 4


def test_a_claim_that_cannot_be_stored_fails_alone_among_its_like(db: sqlite3.Cursor) -> None:
    outcomes = commit_group(db, [claim(message(name)) for name in ("a", "b", BAD, "c")])
    assert [type(outcome) for outcome in outcomes] == [tuple, tuple, StoreError, tuple]
    assert opened(db) == ["a", "b", "c"]


def test_a_full_disk_fails_the_group_and_it_goes_on_once_there_is_space(db: sqlite3.Cursor) -> None:
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    outcomes = commit_group(db, [claim(message("a", payload="x" * 100_000)), claim(message("b"))])
    assert any("disk is full" in str(outcome) for outcome in outcomes)
    stored = [name for name, outcome in zip("ab", outcomes, strict=True) if outcome == (NEW,)]
    assert opened(db) == stored
    assert not db.connection.in_transaction
    db.execute("PRAGMA max_page_count = 100000").fetchall()
    assert commit_group(db, [claim(message("c"))]) == [(NEW,)]


def test_a_read_only_database_fails_the_group(db: sqlite3.Cursor) -> None:
    db.execute("PRAGMA query_only = ON")
    outcomes = commit_group(db, [claim(message("a")), claim(message("b"))])
    assert ["read-only" in str(outcome) for outcome in outcomes] == [True, True]
    db.execute("PRAGMA query_only = OFF")
    assert commit_group(db, [claim()]) == [(NEW,)]


@dataclass(frozen=True, slots=True)
class Lost(Step[None]):
    """Ends the transaction, as SQLite does by itself after some errors."""


@pytest.mark.parametrize("first", [[], [claim(message("a"))]])
def test_when_the_transaction_is_gone_nobody_is_told_that_it_was_committed(
    db: sqlite3.Cursor, monkeypatch: pytest.MonkeyPatch, first: list[Step[object]]
) -> None:
    def lose(cursor: sqlite3.Cursor, step: Lost) -> None:
        cursor.execute("ROLLBACK")
        raise StoreError("gone")

    monkeypatch.setitem(steps.TAKERS, Lost, lose)
    outcomes = commit_group(db, [*first, Lost(), claim(message("b"))])
    assert {str(outcome) for outcome in outcomes} == {"gone"}
    assert opened(db) == []


def test_a_bug_in_a_step_leaves_no_transaction_open(db: sqlite3.Cursor) -> None:
    with pytest.raises(KeyError):
        commit_group(db, [claim(), Step()])
    assert not db.connection.in_transaction
    assert opened(db) == []
