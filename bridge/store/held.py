"""Held texts: what never arrived, kept for the conversation's next reply, within bounds."""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Cursor

from bridge.ids import AccountId, ConversationKey

CONVERSATION_TEXTS = 4
CONVERSATION_BYTES = 32 << 10
ACCOUNT_TEXTS = 128
TEXT_BYTES = 8192
KEPT_MS = 7 * 24 * 3600 * 1000

_CARRY = "UPDATE held SET carrier = ? WHERE id = ? AND account = ? AND conversation = ? AND carrier = 0"
_ARRIVED = """
    SELECT EXISTS (SELECT 1 FROM parts AS first JOIN parts AS one
        ON one.id BETWEEN first.id AND first.id + first.parts - 1
        WHERE first.id = ? AND one.kind = 'text' AND one.state = 'sent')
"""
_DELIVERED = "DELETE FROM held WHERE carrier = ? RETURNING origin, origin_parts"
_REVIVED = "UPDATE parts SET dead = 0 WHERE id BETWEEN ? AND ?"
_BACK = "UPDATE held SET carrier = 0 WHERE carrier = ? RETURNING account, conversation"
_SHORTER = "UPDATE held SET text = ?, carrier = 0 WHERE carrier = ?"
_KEEP = """
    INSERT INTO held (account, conversation, text, created_ms, origin, origin_parts) VALUES (?, ?, ?, ?, ?, ?)
"""
_OLD = "DELETE FROM held WHERE account = ? AND carrier = 0 AND created_ms < ?"
_NEWEST = """
    SELECT id, length(CAST(text AS BLOB)) FROM held
    WHERE account = ? AND conversation = ? AND carrier = 0 ORDER BY id DESC
"""
_OVER = """
    DELETE FROM held WHERE id IN (
        SELECT id FROM held WHERE account = ? AND carrier = 0 ORDER BY id DESC LIMIT -1 OFFSET ?)
"""


def carry(
    db: Cursor, account: AccountId, conversation: ConversationKey, ids: Iterable[int], carrier: int
) -> None:
    """Give held texts to the reply whose first part is ``carrier``. One that is gone or carried stays so."""
    db.executemany(_CARRY, [(carrier, held_id, account, conversation) for held_id in ids])


def unload(db: Cursor, carrier: int, now_ms: int) -> bool:
    """A carrier is over: its texts are delivered if a text of it was sent, else held again (True)."""
    if _arrived(db, carrier):
        for origin, parts in db.execute(_DELIVERED, (carrier,)).fetchall():
            db.execute(_REVIVED, (origin, origin + parts - 1))
        return False
    back = db.execute(_BACK, (carrier,)).fetchall()
    for account, conversation in back[:1]:
        trim(db, account, conversation, now_ms)
    return True


def shorten(db: Cursor, carrier: int, rest: str) -> bool:
    """``rest`` never arrived of a carrier that is nothing but a held text: it waits in that one's place.

    False: none of it arrived, so all of it is held again when it is unloaded.
    """
    return bool(rest) and _arrived(db, carrier) and db.execute(_SHORTER, (rest, carrier)).rowcount > 0


def keep(db: Cursor, first: int, parts: int, text: str, returned: bool, now_ms: int) -> bool:
    """Hold what never arrived of the reply with the first part ``first``, unless it is transient.

    ``returned``: ``text`` still contains the texts that the reply carried and that are held again, so its own
    text takes its place. False: it has none.
    """
    row = db.execute(
        "SELECT account, conversation, transient, own_text FROM parts WHERE id = ?", (first,)
    ).fetchone()
    account, conversation, transient, own_text = row
    text = cut(own_text, TEXT_BYTES) if returned else text
    if transient or not text:
        return False
    db.execute(_KEEP, (account, conversation, text, now_ms, first, parts))
    trim(db, account, conversation, now_ms)
    return True


def _arrived(db: Cursor, carrier: int) -> bool:
    return bool(db.execute(_ARRIVED, (carrier,)).fetchone()[0])


def cut(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` UTF-8 bytes, an ellipsis where something is missing."""
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - len("…".encode())].decode(errors="ignore") + "…"


def trim(db: Cursor, account: str, conversation: str, now_ms: int) -> None:
    """Drop what is too old or too much, oldest first."""
    db.execute(_OLD, (account, now_ms - KEPT_MS))
    total, dropped = 0, []
    for place, (held_id, size) in enumerate(db.execute(_NEWEST, (account, conversation)).fetchall()):
        total += size
        if place >= CONVERSATION_TEXTS or total > CONVERSATION_BYTES:
            dropped.append((held_id,))
    db.executemany("DELETE FROM held WHERE id = ?", dropped)
    db.execute(_OVER, (account, ACCOUNT_TEXTS))
