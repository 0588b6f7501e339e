"""Dead letters: parts that were given up, listed, sent once more or forgotten."""

from __future__ import annotations

import json
from hashlib import sha256
from sqlite3 import Cursor

from bridge.ids import AccountId, PartId
from bridge.store.dead_steps import Bury, DeadLetter, DeadLetters, Revive, Revived

_LETTERS = """
    SELECT id, account, recipient, kind, state, reason, body, created_ms, ended_ms FROM parts
    WHERE dead = 1 AND (:account = '' OR account = :account) AND id > :after ORDER BY id LIMIT :limit
"""
_LETTER = """
    SELECT account, conversation, recipient, reply_to, id - part, id - part + parts - 1 FROM parts
    WHERE id = ? AND dead = 1 AND kind = 'text'
"""
_RIDES = "SELECT EXISTS (SELECT 1 FROM held WHERE origin = ? AND carrier > 0)"
# The letter and the texts that were skipped or given up behind it: what arrived has no text any more, nor
# has what was sent once more. One that was marked may have arrived before.
_REST = """
    SELECT id, body, marked OR state = 'unknown' FROM parts
    WHERE id BETWEEN ? AND ? AND kind = 'text' AND body != '' AND (dead = 1 OR state = 'skipped') ORDER BY id
"""
_INSERT = """
    INSERT INTO parts (account, reply_id, message, conversation, recipient, reply_to, part, parts, kind, body,
                       client_id, marked, transient, carries, own_text, created_ms)
    VALUES (?, ?, 0, ?, ?, ?, ?, ?, 'text', ?, ?, ?, 0, 0, '', ?)
"""
_MOVED = "UPDATE parts SET dead = 0, body = '' WHERE id = ?"
_ALIVE = "UPDATE parts SET dead = 0 WHERE id = ? AND dead = 1"
_UNHOLD = "DELETE FROM held WHERE origin = ? AND carrier = 0"
# What is held of a reply is the text of the last letter of it, with all that was behind.
_UNHOLD_LAST = """
    DELETE FROM held WHERE carrier = 0 AND origin = (SELECT id - part FROM parts WHERE id = :part)
        AND NOT EXISTS (SELECT 1 FROM parts WHERE dead = 1 AND kind = 'text'
            AND id > :part AND id < origin + origin_parts)
"""
_OLD = "SELECT id FROM parts WHERE dead = 1 AND ended_ms < ?"


def letters(db: Cursor, query: DeadLetters) -> tuple[DeadLetter, ...]:
    values = {"account": query.account, "after": query.after, "limit": query.limit}
    rows = db.execute(_LETTERS, values).fetchall()
    return tuple(_letter(*row) for row in rows)


def revive(db: Cursor, step: Revive) -> Revived | None:
    row = db.execute(_LETTER, (step.part_id,)).fetchone()
    if row is None:
        return None
    account, conversation, to, reply_to, first, last = row
    if db.execute(_RIDES, (first,)).fetchone()[0]:
        return None
    rest = db.execute(_REST, (step.part_id, last)).fetchall()
    for number, (part_id, body, marked) in enumerate(rest):
        client_id = sha256(f"{step.reply_id}.{number}".encode()).hexdigest()[:32]
        values = (account, step.reply_id, conversation, to, reply_to, number, len(rest), body, client_id)
        db.execute(_INSERT, (*values, marked, step.now_ms))
        db.execute(_MOVED, (part_id,))
    db.execute(_UNHOLD, (first,))
    return Revived(AccountId(account), step.reply_id)


def bury(db: Cursor, step: Bury) -> int:
    ids = [*step.part_ids, *(row[0] for row in db.execute(_OLD, (step.before_ms,)).fetchall())]
    buried = 0
    for part_id in dict.fromkeys(ids):
        if db.execute(_ALIVE, (part_id,)).rowcount:
            buried += 1
            db.execute(_UNHOLD_LAST, {"part": part_id})
    return buried


def _letter(
    part_id: int,
    account: str,
    to: str,
    kind: str,
    state: str,
    reason: str,
    body: str,
    created_ms: int,
    ended_ms: int,
) -> DeadLetter:
    file = json.loads(body) if kind == "file" else {}
    text, size = file.get("name", body), file.get("size", len(body.encode()))
    return DeadLetter(
        PartId(part_id), AccountId(account), to, kind, state, reason, text, size, created_ms, ended_ms
    )
