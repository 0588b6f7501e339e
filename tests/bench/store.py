"""P14: claim, answer and settle of a message through the store, against SQLite alone.

The yardstick is a plain loop in one thread over the same schema and settings: the statements that these
steps need, one row each, 64 messages to a transaction. The store is asked by 64 callers at a time, each
awaiting its own steps. Rounds of both alternate, each on a new file; the file's folder decides which disk is
measured.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from bridge.ids import AccountId, ConversationKey, MessageId
from bridge.store import schema
from bridge.store.contract import (
    Answer,
    Claim,
    MessageState,
    NewMessage,
    NewPart,
    PartKind,
    PartState,
    Reply,
    Settle,
)
from bridge.store.sqlite import SqliteStore, open_store

ROUNDS = 7
MESSAGES = 4096
AT_A_TIME = 64
MUST, AIM = 0.5, 0.8

ACCOUNT = AccountId("feishu:bench")
PAYLOAD = '{"text": "' + "a question of ordinary length " * 8 + '"}'
TEXT = "an answer of ordinary length " * 16

_CLAIM = """
    INSERT INTO messages (account, message_id, redelivery, body_digest, conversation, state, reason, payload,
                          received_ms, ended_ms)
    VALUES (?, ?, ?, '', ?, 'claimed', '', ?, ?, 0) ON CONFLICT DO NOTHING
"""
_OPEN = "SELECT id FROM messages WHERE account = ? AND message_id = ? AND state IN ('claimed', 'running')"
_ANSWER = "UPDATE messages SET state = 'answered', reason = '' WHERE id = ?"
_PART = """
    INSERT INTO parts (account, reply_id, message, conversation, recipient, reply_to, part, parts, kind, body,
                       client_id, transient, carries, own_text, created_ms)
    VALUES (?, ?, ?, ?, ?, ?, 0, 1, 'text', ?, ?, 0, 0, '', ?)
"""
_SENT = "SELECT message FROM parts WHERE id = ? AND state IN ('pending', 'sending')"
_SETTLE = (
    "UPDATE parts SET state = 'sent', ended_ms = ?, platform_id = ?, reason = '', body = '' WHERE id = ?"
)
_DONE = "UPDATE messages SET state = 'done', payload = '', ended_ms = ? WHERE id = ? AND state = 'answered'"


class Figures(TypedDict):
    """Messages a second, medians; ``ratio`` is the median of the rounds' ratios, with its extremes."""

    raw: float
    store: float
    ratio: float
    lowest: float
    highest: float
    must: float
    aim: float


def measure(folder: Path | None = None, rounds: int = ROUNDS, messages: int = MESSAGES) -> Figures:
    """Run ``rounds`` interleaved rounds of ``messages``; files lie in ``folder``, else where others do."""
    raw, store = [], []
    with tempfile.TemporaryDirectory(dir=folder) as home:
        for number in range(rounds + 1):
            figures = [
                _rate(raw_loop, Path(home, f"raw-{number}.db"), messages),
                _rate(through_store, Path(home, f"store-{number}.db"), messages),
            ]
            if number:  # the first round warms up
                raw.append(figures[0])
                store.append(figures[1])
    ratios = [ours / theirs for ours, theirs in zip(store, raw, strict=True)]
    return Figures(
        raw=statistics.median(raw),
        store=statistics.median(store),
        ratio=statistics.median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
        must=MUST,
        aim=AIM,
    )


def _rate(run: Callable[[Path, int], float], path: Path, messages: int) -> float:
    return messages / run(path, messages)


def raw_loop(path: Path, messages: int, start: int = 0) -> float:
    """The seconds that SQLite alone takes, without opening and closing. Numbers begin at ``start``."""
    db = schema.open_file(path)
    cursor = db.cursor()
    begun = time.perf_counter()
    for first in range(start, start + messages, AT_A_TIME):
        names = [str(number) for number in range(first, first + AT_A_TIME)]
        cursor.execute("BEGIN IMMEDIATE")
        for name in names:
            cursor.execute(_CLAIM, (ACCOUNT, f"om_{name}", f"key_{name}", f"chat_{name}", PAYLOAD, 1000))
        cursor.execute("COMMIT")
        cursor.execute("BEGIN IMMEDIATE")
        ids = []
        for name in names:
            row = cursor.execute(_OPEN, (ACCOUNT, f"om_{name}")).fetchone()[0]
            cursor.execute(_ANSWER, (row,))
            chat = f"chat_{name}"
            cursor.execute(
                _PART, (ACCOUNT, f"re_{name}", row, chat, chat, f"om_{name}", TEXT, f"id_{name}", 2000)
            )
            ids.append(cursor.lastrowid)
        cursor.execute("COMMIT")
        cursor.execute("BEGIN IMMEDIATE")
        for part_id in ids:
            row = cursor.execute(_SENT, (part_id,)).fetchone()[0]
            cursor.execute(_SETTLE, (3000, "om_platform", part_id))
            cursor.execute(_DONE, (3000, row))
        cursor.execute("COMMIT")
    taken = time.perf_counter() - begun
    db.close()
    return taken


def through_store(path: Path, messages: int, start: int = 0) -> float:
    """The seconds that the store takes for the same, asked by ``AT_A_TIME`` callers."""
    return asyncio.run(_through_store(path, messages, start))


async def _through_store(path: Path, messages: int, start: int) -> float:
    async with open_store(path) as store:
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for first in range(AT_A_TIME):
                tasks.create_task(_caller(store, range(start + first, start + messages, AT_A_TIME)))
        return time.perf_counter() - begun


async def _caller(store: SqliteStore, numbers: range) -> None:
    for name in map(str, numbers):
        chat = ConversationKey(f"chat_{name}")
        message_id = MessageId(f"om_{name}")
        message = NewMessage(message_id, MessageState.CLAIMED, "", f"key_{name}", "", chat, PAYLOAD)
        await store.do(Claim(ACCOUNT, (message,), 1000))
        reply = Reply(f"re_{name}", chat, chat, message_id, (NewPart(PartKind.TEXT, TEXT, f"id_{name}"),))
        part_ids = await store.do(Answer(ACCOUNT, message_id, reply, 2000))
        await store.do(Settle(part_ids[0], PartState.SENT, 3000, "om_platform"))


def table(figures: Figures) -> str:
    return (
        f"P14 raw SQLite loop  {figures['raw']:9.0f} messages/s\n"
        f"P14 through store    {figures['store']:9.0f} messages/s\n"
        f"P14 ratio            {figures['ratio']:9.2f} ({figures['lowest']:.2f} to {figures['highest']:.2f})"
        f", must {figures['must']}, aim {figures['aim']}"
    )


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    print(table(measure(folder)))


if __name__ == "__main__":
    main()
