"""P1, P4 and P14 once more, with a thousand and a million messages stored: what is remembered costs no speed.

The database is filled by SQL, its indexes made afterwards; how long that took is told. Every message is done,
its reply sent, over the last thirty days, with keys as random as real ones.
"""

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bridge.clock import SystemClock, unix_ms
from bridge.store import schema
from tests.bench import store, webhooks
from tests.bench.figures import Figure, median_of

COUNTS = (1_000, 1_000_000)
DAYS_MS = 30 * 86_400_000
CACHE_KIB = 262_144

_MESSAGES = """
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
    INSERT INTO messages (account, message_id, redelivery, body_digest, conversation, state, reason, payload,
                          received_ms, ended_ms)
    SELECT 'feishu:main', 'om_' || lower(hex(randomblob(16))),
           (:since + n * :step) || ':' || lower(hex(randomblob(16))), '',
           'p2p:oc_' || (n % 1000), 'done', '', '', :since + n * :step, :since + n * :step + 2000
    FROM numbers
"""
_PARTS = """
    INSERT INTO parts (account, reply_id, message, conversation, recipient, reply_to, part, parts, kind, body,
                       client_id, state, transient, carries, own_text, attempts, created_ms, ended_ms,
                       platform_id)
    SELECT account, lower(hex(randomblob(8))), id, conversation, conversation, message_id, 0, 1, 'text', '',
           lower(hex(randomblob(16))), 'sent', 0, 0, '', 1, received_ms, ended_ms, 'om_' || id
    FROM messages
"""


def build(path: Path, count: int) -> float:
    """Make a database with ``count`` messages that are done; the seconds that it took."""
    begun = time.perf_counter()
    schema.open_file(path).close()
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous = OFF")
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        indexes = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name IN ('messages', 'parts') "
            "AND sql IS NOT NULL"
        ).fetchall()
        db.execute("BEGIN")
        for name, _ in indexes:
            db.execute(f"DROP INDEX {name}")
        since = unix_ms(SystemClock().now()) - DAYS_MS
        db.execute(_MESSAGES, {"count": count, "since": since, "step": DAYS_MS // count})
        db.execute(_PARTS)
        for _, sql in indexes:
            db.execute(sql)
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()
    return time.perf_counter() - begun


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    figures: list[Figure] = []
    for count in COUNTS:
        with tempfile.TemporaryDirectory(prefix="tb-bench-") as folder:
            base = Path(folder, "base.db")
            seconds = build(base, count)
            say(f"{count:,} stored messages: {base.stat().st_size / 1_048_576:.0f} MiB in {seconds:.1f} s")
            pushed = webhooks.measure(rounds, say, connections=(64,), database=base)
            figures += [replace(one, what=f"{one.what}; {count:,} stored") for one in pushed]
            figures.append(_through_store(rounds, base, count, say))
    return figures


def _through_store(rounds: int, base: Path, count: int, say: Callable[[str], None]) -> Figure:
    raw_file, store_file = base.with_name("raw.db"), base.with_name("store.db")
    shutil.copyfile(base, raw_file)
    shutil.copyfile(base, store_file)
    raw, ours = [], []
    for number in range(rounds + 1):
        first = number * store.MESSAGES
        raw.append(store.MESSAGES / store.raw_loop(raw_file, store.MESSAGES, first))
        ours.append(store.MESSAGES / store.through_store(store_file, store.MESSAGES, first))
        say(f"P14 {count:,} stored, round {number}: {ours[-1] / raw[-1]:.2f}")
    return Figure(
        name="P14",
        what=f"claim, answer and settle through the store against raw SQLite; {count:,} stored",
        ratios=tuple(own / other for own, other in zip(ours[1:], raw[1:], strict=True)),  # the first warms up
        must=store.MUST,
        aim=store.AIM,
        absolute=f"{median_of(ours[1:]):.0f}/s, raw {median_of(raw[1:]):.0f}/s",
    )
