"""The outbox: the parts of replies, from pending to final. The parts of one reply have neighbouring ids."""

from __future__ import annotations

from sqlite3 import Cursor
from typing import NamedTuple

from bridge.errors import StoreError
from bridge.ids import AccountId, PartId
from bridge.store import held
from bridge.store.contract import Collect, Hold, Later, Mark, PartState, Reply, Sending, Settle, Settled

_INSERT = """
    INSERT INTO parts (account, reply_id, message, conversation, recipient, reply_to, part, parts, kind, body,
                       client_id, transient, carries, own_text, created_ms, reason)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SENDING = """
    UPDATE parts SET state = 'sending', attempts = attempts + 1, sending_since_ms = :now,
        first_sent_ms = CASE first_sent_ms WHEN 0 THEN :now ELSE first_sent_ms END
    WHERE id = :part AND state IN ('pending', 'sending')
"""
# ``attempts`` are tries that may have arrived: a try that certainly did not is taken back alone.
_NOT_SENT = """
    UPDATE parts SET due_ms = ?, attempts = max(attempts - 1, 0),
        state = CASE WHEN attempts > 1 THEN 'sending' ELSE 'pending' END,
        first_sent_ms = CASE WHEN attempts > 1 THEN first_sent_ms ELSE 0 END,
        sending_since_ms = CASE WHEN attempts > 1 THEN sending_since_ms ELSE 0 END
    WHERE id = ? AND state IN ('pending', 'sending')
"""
_MAYBE_SENT = "UPDATE parts SET due_ms = ? WHERE id = ? AND state IN ('pending', 'sending')"
_MARK = """
    UPDATE parts SET state = 'pending', marked = 1, client_id = ?, due_ms = ?, attempts = 0,
        first_sent_ms = 0, sending_since_ms = 0
    WHERE id = ? AND state IN ('pending', 'sending')
"""
# A select and an update by row cost half of one update with RETURNING.
_PART = """
    SELECT id, message, part, parts, carries, transient, CASE kind WHEN 'file' THEN body END FROM parts
    WHERE id = ? AND state IN ('pending', 'sending')
"""
_END = """
    UPDATE parts SET state = ?, ended_ms = ?, platform_id = ?, reason = ?, dead = ? WHERE id = ?
"""
# A text that has arrived is not kept.
_END_SENT_TEXT = """
    UPDATE parts SET state = 'sent', ended_ms = ?, platform_id = ?, reason = ?, body = '', own_text = ''
    WHERE id = ?
"""
_SKIP = """
    UPDATE parts SET state = 'skipped', ended_ms = ?
    WHERE id BETWEEN ? AND ? AND state IN ('pending', 'sending')
    RETURNING CASE kind WHEN 'file' THEN body END
"""
# All that it was to bring waits on as the dead letter that it was before.
_STILL_HELD = "UPDATE parts SET dead = 0 WHERE id = ?"
_ANY_OPEN = "SELECT EXISTS (SELECT 1 FROM parts WHERE id BETWEEN ? AND ? AND state IN ('pending', 'sending'))"
_DONE = "UPDATE messages SET state = 'done', payload = '', ended_ms = ? WHERE id = ? AND state = 'answered'"
_COLLECTED = """
    SELECT id FROM parts WHERE account = :account AND id <= :after AND state IN ('pending', 'sending')
        AND :to IN ('', recipient)
        AND EXISTS (SELECT 1 FROM parts WHERE id = :after AND account = :account) ORDER BY id
"""
_OPEN = frozenset({PartState.PENDING, PartState.SENDING})
_DEAD = frozenset({PartState.UNKNOWN, PartState.REFUSED, PartState.EXPIRED})
_OVER, _GOES_ON = Settled(True), Settled(False)


class _Ended(NamedTuple):
    """A part that has just become final: its reply and message. ``file`` is a file part's body."""

    part_id: int
    message: int
    part: int
    parts: int
    carries: int
    transient: int
    file: str | None

    @property
    def first(self) -> int:
        return self.part_id - self.part

    @property
    def last(self) -> int:
        return self.first + self.parts - 1


def insert(
    db: Cursor, account: AccountId, reply: Reply, message: int, now_ms: int, reason: str = ""
) -> tuple[PartId, ...]:
    """Store a reply's parts and give it the held texts that it carries. ``message`` is a row, 0 for none.

    ``reason`` is why an unprompted one is said, until it tells how the part ended.
    """
    parts, ids = len(reply.parts), []
    carries = bool(reply.carried)
    for number, part in enumerate(reply.parts):
        values = (
            account, reply.reply_id, message, reply.conversation, reply.to, reply.reply_to, number, parts,
            part.kind._value_, part.body, part.client_id, reply.transient, carries,
            "" if number else reply.own_text, now_ms, reason,
        )  # fmt: skip
        db.execute(_INSERT, values)
        ids.append(PartId(db.lastrowid or 0))
    if carries and ids:
        held.carry(db, account, reply.conversation, reply.carried, ids[0])
    return tuple(ids)


def sending(db: Cursor, step: Sending) -> bool:
    if db.execute(_SENDING, {"now": step.now_ms, "part": step.part_id}).rowcount:
        return True
    _must_exist(db, step.part_id)
    return False


def later(db: Cursor, step: Later) -> None:
    statement = _MAYBE_SENT if step.accepted_possible else _NOT_SENT
    if not db.execute(statement, (step.due_ms, step.part_id)).rowcount:
        _must_exist(db, step.part_id)


def mark(db: Cursor, step: Mark) -> None:
    if not db.execute(_MARK, (step.client_id, step.now_ms, step.part_id)).rowcount:
        _must_exist(db, step.part_id)


def settle(db: Cursor, step: Settle) -> Settled:
    ended = _end(db, step.part_id, step.state, step.now_ms, step.platform_id, step.reason)
    if ended is None:
        return _ended_before(db, step.part_id)
    going_on = ended.parts > 1 and db.execute(_ANY_OPEN, (ended.first, ended.last)).fetchone()[0]
    if not going_on:
        _finish(db, ended, step.now_ms)
    if ended.file is None or step.keep_until_ms > step.now_ms:
        return _GOES_ON if going_on else _OVER
    return Settled(not going_on, (ended.file,))


def hold(db: Cursor, step: Hold) -> Settled:
    ended = _end(db, step.part_id, step.state, step.now_ms, "", step.reason)
    if ended is None:
        return _ended_before(db, step.part_id)
    files = [ended.file]
    if ended.parts > 1:
        files += [row[0] for row in db.execute(_SKIP, (step.now_ms, ended.first, ended.last)).fetchall()]
    shortened = bool(ended.carries) and held.shorten(db, ended.first, step.held_text)
    returned = _finish(db, ended, step.now_ms)
    if step.held_text and (
        shortened or not held.keep(db, ended.first, ended.parts, step.held_text, returned, step.now_ms)
    ):
        db.execute(_STILL_HELD, (ended.part_id,))
    return Settled(True, tuple(file for file in files if file is not None))


def collect(db: Cursor, step: Collect) -> tuple[Settled, ...]:
    values = {"account": step.account, "after": step.after, "to": step.to}
    rows = db.execute(_COLLECTED, values).fetchall()
    return tuple(settle(db, Settle(PartId(row[0]), PartState.SENT, step.now_ms)) for row in rows)


def _end(
    db: Cursor, part_id: PartId, state: PartState, now_ms: int, platform_id: str, reason: str
) -> _Ended | None:
    """Make an open part final; None when it was."""
    row = db.execute(_PART, (part_id,)).fetchone()
    if row is None:
        return None
    ended = _Ended._make(row)
    if state is PartState.SENT and ended.file is None:
        db.execute(_END_SENT_TEXT, (now_ms, platform_id, reason, part_id))
    elif state in _OPEN:
        raise StoreError("the step was refused: a part is settled with a final state")
    else:
        dead = state in _DEAD and not ended.transient
        db.execute(_END, (state.value, now_ms, platform_id, reason, dead, part_id))
    return ended


def _finish(db: Cursor, ended: _Ended, now_ms: int) -> bool:
    """End the message of a reply that is over, and what it carried. True: held texts came back."""
    if ended.message:
        db.execute(_DONE, (now_ms, ended.message))
    return bool(ended.carries) and held.unload(db, ended.first, now_ms)


def _ended_before(db: Cursor, part_id: PartId) -> Settled:
    part, parts = _must_exist(db, part_id)
    first = part_id - part
    still_open = db.execute(_ANY_OPEN, (first, first + parts - 1)).fetchone()[0]
    return Settled(not still_open)


def _must_exist(db: Cursor, part_id: PartId) -> tuple[int, int]:
    row = db.execute("SELECT part, parts FROM parts WHERE id = ?", (part_id,)).fetchone()
    if row is None:
        raise StoreError("the step was refused: there is no such part")
    return row[0], row[1]
