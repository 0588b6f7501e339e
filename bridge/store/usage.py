"""What turns have used: counted with the end of their message, summed up when it is asked for."""

from __future__ import annotations

from sqlite3 import Cursor

from bridge.ids import AccountId
from bridge.store.usage_steps import HoursOf, HourUsage, Spend, Usage, UsageBy, UsageOf, Used, bounded

HOUR_MS = 3_600_000

_COUNT = """
    INSERT INTO usage VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET turns = turns + 1, input_tokens = input_tokens + excluded.input_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cost_micros = cost_micros + excluded.cost_micros,
        uncounted = uncounted + excluded.uncounted, unpriced = unpriced + excluded.unpriced
"""
_SUMS = (
    "sum(turns) AS turns, sum(input_tokens) AS input, sum(output_tokens) AS output,"
    " sum(cost_micros) AS cost, sum(uncounted) AS uncounted, sum(unpriced) AS unpriced"
)
_NAMES = {
    UsageBy.SENDER: ("account", "sender"),
    UsageBy.ACCOUNT: ("account", "account"),
    UsageBy.DAY: ("''", "date(hour_ms / 1000, 'unixepoch')"),
    UsageBy.AGENT: ("''", "agent"),
}
# A window over the sums finds each one's place: what comes behind the limit is one sum without a name.
_BY = {
    by: f"""
    WITH sums AS (SELECT {account} AS account, {name} AS name, {_SUMS} FROM usage
        WHERE hour_ms >= :since AND :account IN ('', account) GROUP BY 1, 2),
    placed AS (SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM sums)
    SELECT account, name, turns, input, output, cost, uncounted, unpriced FROM placed WHERE place <= :limit
    UNION ALL SELECT * FROM (
        SELECT '', '', sum(turns) AS turns, sum(input), sum(output), sum(cost), sum(uncounted), sum(unpriced)
        FROM placed WHERE place > :limit) WHERE turns > 0
"""  # noqa: S608 - our own words
    for by, (account, name) in _NAMES.items()
    for order in ["name DESC" if by is UsageBy.DAY else "cost DESC, input + output DESC, account, name"]
}
_HOURS = """
    SELECT sender, hour_ms, sum(input_tokens + output_tokens), sum(cost_micros) FROM usage
    WHERE account = ? AND hour_ms >= ? GROUP BY hour_ms, sender ORDER BY hour_ms DESC, sender LIMIT ?
"""
_FORGET = """
    DELETE FROM usage WHERE account = :account AND (hour_ms, sender, agent) IN (
        SELECT hour_ms, sender, agent FROM usage WHERE account = :account LIMIT :limit)
"""
_PRUNE = """
    DELETE FROM usage WHERE (account, hour_ms, sender, agent) IN (
        SELECT account, hour_ms, sender, agent FROM usage WHERE hour_ms < ? LIMIT ?)
"""


def count(db: Cursor, account: AccountId, used: Used, now_ms: int) -> None:
    hour_ms = now_ms - now_ms % HOUR_MS
    uncounted = used.input_tokens is None and used.output_tokens is None
    db.execute(
        _COUNT,
        (
            account, hour_ms, used.sender, used.agent, bounded(used.input_tokens),
            bounded(used.output_tokens), used.micros, uncounted, used.cost_micros is None,
        ),
    )  # fmt: skip


def spend(db: Cursor, step: Spend) -> None:
    count(db, step.account, step.used, step.now_ms)


def usage_of(db: Cursor, query: UsageOf) -> tuple[Usage, ...]:
    values = {"since": query.since_ms, "account": query.account, "limit": query.limit}
    rows = db.execute(_BY[query.by], values)
    found = [Usage(*row) for row in rows]
    return tuple(reversed(found) if query.by is UsageBy.DAY else found)


def hours_of(db: Cursor, query: HoursOf) -> tuple[HourUsage, ...]:
    rows = db.execute(_HOURS, (query.account, query.since_ms, query.limit)).fetchall()
    return tuple(HourUsage(*row) for row in reversed(rows))


def forget(db: Cursor, account: AccountId, limit: int) -> int:
    """Forget ``limit`` of the account's hours at most; returns how many went."""
    return db.execute(_FORGET, {"account": account, "limit": limit}).rowcount


def prune(db: Cursor, before_ms: int, limit: int) -> None:
    db.execute(_PRUNE, (before_ms, limit))
