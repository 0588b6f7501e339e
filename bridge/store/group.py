"""One transaction of many steps: each whole or not at all, and all of them with the commit or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeAlias, cast

from bridge.store.contract import Claim, Step
from bridge.store.database import STEP_ERRORS, explain
from bridge.store.messages import claim_together, is_plain
from bridge.store.steps import take

Outcome: TypeAlias = object
"""A step's result, or the StoreError that it ended with."""


class _SpoiledError(Exception):
    """A step failed after it had changed something, so the transaction cannot be committed."""


def commit_group(cursor: sqlite3.Cursor, steps: Sequence[Step[object]]) -> list[Outcome]:
    """Take ``steps`` in order, in one transaction, and return their outcomes once it is on disk.

    Nearly every step succeeds, or fails before it changes anything, and needs no savepoint. A group with
    another failure is taken again, with a savepoint around each step.
    """
    try:
        try:
            return _commit(cursor, steps, savepoints=False)
        except _SpoiledError:
            return _commit(cursor, steps, savepoints=True)
    except STEP_ERRORS as error:
        return [explain(error) for _ in steps]


def _commit(cursor: sqlite3.Cursor, steps: Sequence[Step[object]], *, savepoints: bool) -> list[Outcome]:
    cursor.execute("BEGIN IMMEDIATE")
    try:
        if savepoints:
            outcomes = [_attempt_apart(cursor, step) for step in steps]
        else:
            outcomes = _take_all(cursor, steps)
        cursor.execute("COMMIT")
    except BaseException:  # whatever it was, no transaction stays open
        if cursor.connection.in_transaction:  # after some errors, SQLite has rolled back by itself
            cursor.execute("ROLLBACK")
        raise
    return outcomes


def _take_all(cursor: sqlite3.Cursor, steps: Sequence[Step[object]]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for plain, run in groupby(steps, is_plain):
        if plain:
            outcomes += _attempt_claims(cursor, cast("Iterable[Claim]", run))
        else:
            outcomes += [_attempt(cursor, step) for step in run]
    return outcomes


def _attempt_claims(cursor: sqlite3.Cursor, steps: Iterable[Claim]) -> Sequence[Outcome]:
    try:
        return claim_together(cursor, steps)
    except STEP_ERRORS as error:
        raise _SpoiledError from error


def _attempt(cursor: sqlite3.Cursor, step: Step[object]) -> Outcome:
    db = cursor.connection
    before = db.total_changes
    try:
        return take(cursor, step)
    except STEP_ERRORS as error:
        if db.total_changes != before or not db.in_transaction:
            raise _SpoiledError from error
        return explain(error)


def _attempt_apart(cursor: sqlite3.Cursor, step: Step[object]) -> Outcome:
    cursor.execute("SAVEPOINT step")
    try:
        outcome: Outcome = take(cursor, step)
    except STEP_ERRORS as error:
        if not cursor.connection.in_transaction:
            raise  # the whole group is gone
        cursor.execute("ROLLBACK TO step")
        outcome = explain(error)
    cursor.execute("RELEASE step")
    return outcome
