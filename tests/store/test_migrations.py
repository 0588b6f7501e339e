"""Files of older versions: what is in them outlives the upgrade, and being killed in it at any statement."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.ids import ConversationKey, MessageId, SessionId
from bridge.store import database, schema
from bridge.store.contract import (
    BoundSession,
    IdentityOf,
    LoadSession,
    OpenMessages,
    Prune,
    SessionOf,
    SessionRecord,
    StoredIdentity,
    StoredSession,
)
from bridge.store.group import commit_group
from bridge.store.sqlite import read
from tests.store.values import ACCOUNT, CHAT, SESSION

BUSY, ELSEWHERE = ConversationKey("busy"), ConversationKey("elsewhere")
OLD, OTHER_CLIENT, QUIET = SessionId("old"), SessionId("app"), SessionId("quiet")
DAY_MS = 86_400_000
NOW_MS = 1_900_000_000_000  # later than any clock of today, as the last message is
FIRST_ROWS = f"""
INSERT INTO accounts VALUES ('{ACCOUNT}', 'print', 'there', 'bot', 'Bot');
INSERT INTO messages (account, message_id, redelivery, body_digest, conversation, state, reason, payload,
    session_id, received_ms, ended_ms) VALUES
    ('{ACCOUNT}', 'done', '', '', '{CHAT}', 'done', '', '', '{SESSION}', 5000, 6000),
    ('{ACCOUNT}', 'm', 'k', 'd', '{BUSY}', 'running', '', '{{}}', '{OLD}', 2000, 0),
    ('{ACCOUNT}', 'n', '', '', '{ELSEWHERE}', 'done', '', '', 'theirs', {NOW_MS}, {NOW_MS});
INSERT INTO bindings VALUES ('{ACCOUNT}', '{CHAT}', '{SESSION}', 'owner');
INSERT INTO bindings VALUES ('{ACCOUNT}', '{BUSY}', '{OLD}', 'none');
INSERT INTO bindings VALUES ('{ACCOUNT}', '{ELSEWHERE}', 'theirs', 'none');
INSERT INTO bindings VALUES ('{ACCOUNT}', 'quiet', '{QUIET}', 'none');
INSERT INTO sessions VALUES ('{SESSION}', '/w', '{{}}', 7, 1000);
INSERT INTO sessions VALUES ('{OLD}', '/w', '{{}}', 8, 1500);
INSERT INTO sessions VALUES ('{QUIET}', '/w', '{{}}', 9, 1600);
INSERT INTO sessions VALUES ('{OTHER_CLIENT}', '/w', '{{}}', 10, 1000);
INSERT INTO history VALUES (1, '{SESSION}', 'question');
INSERT INTO history VALUES (2, '{SESSION}', 'answer');
INSERT INTO turns VALUES (1, '{OLD}', 'turn', 'm', 2100);
INSERT INTO last_events VALUES (1, '{SESSION}', x'00ff');
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that the first version made and left, with rows in it."""
    path = tmp_path / "state" / "db"
    database.create_private(path)
    with closing(database.connect_writer(path)) as db:
        schema.migrate(db, schema.migrations()[:1])
        for statement in schema.statements(FIRST_ROWS):
            db.execute(statement)
    return path


def ask(db: sqlite3.Connection, chat: ConversationKey) -> BoundSession | None:
    return read(db, SessionOf(ACCOUNT, chat))


def check_rows(db: sqlite3.Connection) -> None:
    """All that was stored is there, and the use of what tells it is known."""
    assert schema.version(db) == len(schema.migrations())
    assert read(db, IdentityOf(ACCOUNT)) == StoredIdentity("bot", "Bot")
    assert [(one.message_id, one.session_id) for one in read(db, OpenMessages(ACCOUNT))] == [("m", OLD)]
    told = StoredSession(SessionRecord(SESSION, "/w", "{}", 7), ("question", "answer"), (b"\x00\xff",), ())
    assert read(db, LoadSession(SESSION)) == told
    assert ask(db, CHAT) == BoundSession(SESSION, "owner", 5000)
    assert ask(db, BUSY) == BoundSession(OLD, "none", 2000)
    assert ask(db, ELSEWHERE) == BoundSession(SessionId("theirs"), "none", NOW_MS)
    assert ask(db, ConversationKey("quiet")) == BoundSession(QUIET, "none", 1600)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_what_the_first_version_stored_is_there_after_the_upgrade(path: Path) -> None:
    for _ in range(2):
        with closing(schema.open_file(path)) as db:
            check_rows(db)


def test_the_first_upkeep_forgets_nothing_whose_last_use_is_not_known_to_be_long_ago(path: Path) -> None:
    with closing(schema.open_file(path)) as db:
        ((used_ms,),) = db.execute("SELECT used_ms FROM sessions WHERE session_id = ?", (OTHER_CLIENT,))
        commit_group(db.cursor(), [Prune(used_ms - 30 * DAY_MS, 0)])
        left = {name: read(db, LoadSession(name)) is not None for name in (OTHER_CLIENT, OLD, QUIET, SESSION)}
        assert left == {OTHER_CLIENT: True, OLD: True, QUIET: False, SESSION: False}  # OLD: a message runs
        assert ask(db, ELSEWHERE) is not None
        assert [one.message_id for one in read(db, OpenMessages(ACCOUNT))] == [MessageId("m")]


def deaths(path: Path, to: Path, number: int) -> Iterator[Path]:
    """The file and its log as a process leaves them that is killed at each statement of a migration."""
    script = list(schema.statements(schema.migrations()[number - 1]))
    with closing(database.connect_writer(path)) as db:
        schema.migrate(db, schema.migrations()[: number - 1])
        db.execute("PRAGMA cache_size = 1")  # so that what is not committed reaches the log
        for done in range(len(script) + 1):
            db.execute("BEGIN IMMEDIATE")
            for statement in script[:done]:
                db.execute(statement)
            if done == len(script):
                db.execute(f"PRAGMA user_version = {number}")
            yield Path(shutil.copytree(path.parent, to / str(done)), path.name)
            db.execute("ROLLBACK")


@pytest.mark.parametrize("number", range(2, len(schema.migrations()) + 1))
def test_an_upgrade_that_is_killed_at_any_statement_is_made_anew(
    path: Path, tmp_path: Path, number: int
) -> None:
    count = 0
    for dead in deaths(path, tmp_path / "dead", number):
        with closing(database.connect_writer(dead)) as db:
            assert schema.version(db) == number - 1
        with closing(schema.open_file(dead)) as db:
            check_rows(db)
        count += 1
    assert count > 1


def test_the_older_program_refuses_the_newer_file_and_leaves_it_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema.open_file(path).close()
    before, newest, first = path.read_bytes(), len(schema.migrations()), schema.migrations()[:1]
    monkeypatch.setattr(schema, "migrations", lambda: first)
    with pytest.raises(ConfigError, match=f"has schema {newest}, this version knows 1: install the newer"):
        schema.open_file(path)
    assert path.read_bytes() == before


def test_an_upgraded_file_has_the_tables_of_a_new_one(path: Path, tmp_path: Path) -> None:
    columns = "SELECT m.name, p.name, p.type FROM sqlite_master m, pragma_table_info(m.name) p ORDER BY 1, 2"
    with closing(schema.open_file(path)) as old, closing(schema.open_file(tmp_path / "new")) as new:
        assert old.execute(columns).fetchall() == new.execute(columns).fetchall()
