"""Dead letters as values: what was given up, and what an operator does about it."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ids import AccountId, PartId
from bridge.store.step import Query, Step


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A part that was given up. ``state`` is how it ended: ``refused``, ``expired`` or ``unknown``.

    ``text`` and ``to`` are private; a file's text is its name. ``size`` is in bytes.
    """

    part_id: PartId
    account: AccountId
    to: str
    kind: str
    state: str
    reason: str
    text: str
    size: int
    created_ms: int
    ended_ms: int


@dataclass(frozen=True, slots=True)
class DeadLetters(Query[tuple[DeadLetter, ...]]):
    """Up to ``limit`` dead letters with ids over ``after``, oldest first; of one account or, "", of all."""

    account: str = ""
    after: int = 0
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class Revived:
    """The reply that is to be delivered now, and whose it is."""

    account: AccountId
    reply_id: str


@dataclass(frozen=True, slots=True)
class Revive(Step[Revived | None]):
    """Send a dead letter once more: its text and what was skipped behind it, as a new reply.

    What may have arrived before is marked. It is no dead letter then, and no later reply carries its text.
    None: there is no such dead letter, it is a file, whose copy is gone, or its text rides in a reply that is
    on its way. The new client ids are made of ``reply_id``, which must be new and random.
    """

    part_id: PartId
    reply_id: str
    now_ms: int


@dataclass(frozen=True, slots=True)
class Bury(Step[int]):
    """Forget these dead letters, and all that ended before ``before_ms``, with the held texts of both.

    Returns how many there were.
    """

    part_ids: tuple[PartId, ...] = ()
    before_ms: int = 0
