import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.ids import MessageId
from bridge.store import changes, contract, queries, schema
from bridge.store.contract import (
    BindSession,
    BoundSession,
    Counts,
    CountsOf,
    EndTurn,
    HeldTexts,
    Hold,
    IdentityOf,
    LoadSession,
    OpenMessages,
    OpenParts,
    OpenSession,
    PartsOf,
    PartState,
    Post,
    SessionOf,
    SessionRecord,
    SetIdentity,
    Start,
    StoredIdentity,
    StoredSession,
)
from bridge.store.steps import take
from tests.store.values import ACCOUNT, CHAT, SESSION, TURN, claim, reply


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Cursor]:
    connection = schema.open_file(tmp_path / "db")
    yield connection.cursor()
    connection.close()


def test_every_query_of_the_contract_is_read() -> None:
    classes = [one for one in vars(contract).values() if isinstance(one, type)]
    named = {one for one in classes if contract.Query in one.__bases__}
    assert set(queries.READERS) == named


def test_of_nothing_there_is_nothing(db: sqlite3.Cursor) -> None:
    assert queries.read(db, OpenMessages(ACCOUNT)) == ()
    assert queries.read(db, OpenParts(ACCOUNT)) == ()
    assert queries.read(db, PartsOf(ACCOUNT, "r")) == ()
    assert queries.read(db, HeldTexts(ACCOUNT, CHAT)) == ()
    assert queries.read(db, SessionOf(ACCOUNT, CHAT)) is None
    assert queries.read(db, LoadSession(SESSION)) is None
    assert queries.read(db, IdentityOf(ACCOUNT)) is None
    assert queries.read(db, CountsOf(ACCOUNT)) == Counts(0, 0, 0, 0, 0)


def test_what_was_stored_is_read(db: sqlite3.Cursor) -> None:
    record = SessionRecord(SESSION, "/", "{}", 5)
    take(db, SetIdentity(ACCOUNT, "bot", "Bot"))
    take(db, claim())
    take(db, Start(ACCOUNT, MessageId("m"), SESSION, 1500))
    first = take(db, Post(ACCOUNT, reply(reply_id="a"), 2000))
    take(db, Post(ACCOUNT, reply(reply_id="b"), 2500))
    take(db, Hold(first[0], PartState.REFUSED, "lost", 3000))
    take(db, OpenSession(record, 1000))
    take(db, BindSession(ACCOUNT, CHAT, SESSION, "owner", 2000))
    take(db, EndTurn(SESSION, TURN, (b"end",), ("entry",), 5, 3000))
    assert [one.message_id for one in queries.read(db, OpenMessages(ACCOUNT))] == ["m"]
    assert [one.reply_id for one in queries.read(db, OpenParts(ACCOUNT))] == ["b"]
    assert [one.reply_id for one in queries.read(db, PartsOf(ACCOUNT, "b"))] == ["b"]
    assert [one.text for one in queries.read(db, HeldTexts(ACCOUNT, CHAT))] == ["lost"]
    assert queries.read(db, SessionOf(ACCOUNT, CHAT)) == BoundSession(SESSION, "owner", 3000)
    assert queries.read(db, LoadSession(SESSION)) == StoredSession(record, ("entry",), (b"end",), ())
    assert queries.read(db, IdentityOf(ACCOUNT)) == StoredIdentity("bot", "Bot")
    assert queries.read(db, CountsOf(ACCOUNT)) == Counts(1, 1000, 1, 1, 1)


@pytest.mark.parametrize(
    "statement",
    [
        queries._MESSAGES, queries._OPEN_PARTS, queries._PARTS_OF, queries._HELD, queries._COUNTS,
        queries._HISTORY, queries._LAST_EVENTS, queries._TURNS, queries._SESSION, queries._BOUND,
        changes._FIND, changes._SKIP, changes._UNHOLD, changes._EDIT, changes._MESSAGE,
    ],
)  # fmt: skip
def test_no_read_looks_through_what_is_over(db: sqlite3.Cursor, statement: str) -> None:
    """A million stored messages must cost nothing: each table is searched by an index."""
    values = dict.fromkeys(re.findall(r":(\w+)", statement), 1) or [1] * statement.count("?")
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    scans = [line for line in plan if "SCAN" in line]
    assert [line for line in scans if not line.startswith(("SCAN (subquery", "SCAN CONSTANT"))] == []
    assert any("INDEX" in line or "PRIMARY KEY" in line for line in plan)
