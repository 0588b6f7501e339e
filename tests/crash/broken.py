"""Daemons that are wrong on purpose: a crash run that does not catch them proves nothing.

Each variant wraps the store, or puts something wrong into the place of a part of the daemon. Several may be
wrong at once.
"""

import argparse
import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from bridge.ids import new_uuid
from bridge.relay.approvals import Question
from bridge.relay.conversations import Conversations
from bridge.relay.judge import Answer as Decision
from bridge.store import schema
from bridge.store.change_steps import STOPPED
from bridge.store.contract import (
    Answer,
    Changed,
    Choose,
    Claim,
    ClaimVerdict,
    Effect,
    Post,
    Recall,
    Step,
    Store,
    TakenBack,
)
from bridge.tools import keeper
from bridge.tools.files import WriteFile
from tests.crash.saying import SAID
from tests.store.around import Around

R = TypeVar("R")

LATE_SECONDS = 0.4


class Wrong(Around):
    """A store that takes each step as ``_do`` has it."""

    async def do(self, step: Step[R]) -> R:
        return cast(R, await self._do(step))

    async def _do(self, step: Step[Any]) -> Any:
        return await self._store.do(step)


class AckFirst(Wrong):
    """Says that a message is stored, and stores it a little later."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._late: set[asyncio.Task[object]] = set()

    async def _do(self, step: Step[Any]) -> Any:
        if not isinstance(step, Claim):
            return await self._store.do(step)
        late = asyncio.create_task(self._later(step))  # noqa: TID251 - nobody waits: that is the fault
        self._late.add(late)
        late.add_done_callback(self._late.discard)
        return tuple(ClaimVerdict.NEW for _ in step.messages)

    async def _later(self, step: Claim) -> None:
        await asyncio.sleep(LATE_SECONDS)
        await self._store.do(step)


class LosesRecalls(Wrong):
    """Says that a message is taken back, and does not write it down."""

    async def _do(self, step: Step[Any]) -> Any:
        return TakenBack(Changed.DONE) if isinstance(step, Recall) else await self._store.do(step)


class LosesReasons(Wrong):
    """Writes down that a message is over, and not that it was stopped."""

    async def _do(self, step: Step[Any]) -> Any:
        if isinstance(step, Answer) and step.reason == STOPPED:
            step = replace(step, reason="")
        return await self._store.do(_without_effect(step))


class SaysTwice(Wrong):
    """Answers each command once more, at the next start."""

    async def _do(self, step: Step[Any]) -> Any:
        result = await self._store.do(step)
        if not isinstance(step, Claim):
            return result
        for message in step.messages:
            if message.reason == SAID and message.reply is not None:
                parts = tuple(replace(part, client_id=new_uuid()) for part in message.reply.parts)
                again = replace(message.reply, reply_id=new_uuid(), parts=parts)
                await self._store.do(Post(step.account, again, step.now_ms))
        return result


class AnswersAgain(Wrong):
    """Writes down the reply of a turn for one of its messages, and leaves the others open."""

    async def _do(self, step: Step[Any]) -> Any:
        return await self._store.do(replace(step, along=()) if isinstance(step, Answer) else step)


class StopsNothing(Wrong):
    """Says that all is stopped, and goes on."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        Conversations.stop = lambda self, key: None  # type: ignore[method-assign]  # that is the fault

    async def _do(self, step: Step[Any]) -> Any:
        return await self._store.do(_without_effect(step))


def _without_effect(step: Step[Any]) -> Step[Any]:
    if not isinstance(step, Claim):
        return step
    return replace(step, messages=tuple(replace(one, effect=Effect.NONE) for one in step.messages))


def runs_refused(store: Store) -> Store:
    """Every answer is a yes."""
    decide = Question.decide
    Question.decide = lambda self, answer: decide(self, Decision(True))  # type: ignore[method-assign]  # that is the fault
    return store


def runs_twice(store: Store) -> Store:
    """A call is made once more, to be sure."""
    run = WriteFile.run

    async def twice(self: WriteFile, arguments: Any, place: Any) -> Any:
        await run(self, arguments, place)
        return await run(self, arguments, place)

    WriteFile.run = twice  # type: ignore[method-assign]  # that is the fault
    return store


def leaves_behind(store: Store) -> Store:
    """What a turn started goes on when the daemon does not."""
    keeper.__file__ = str(Path(__file__).with_name("careless.py"))
    return store


class ForgetsChoices(Wrong):
    """Says that it is chosen, and does not write it down."""

    async def _do(self, step: Step[Any]) -> Any:
        return None if isinstance(step, Choose) else await self._store.do(step)


NO_UNIQUE_KEY = "no-unique-key"
_BREAK: dict[str, Callable[[Store], Store]] = {
    "ack-first": AckFirst,
    "lost-recalls": LosesRecalls,
    "lost-reasons": LosesReasons,
    "said-twice": SaysTwice,
    "answered-again": AnswersAgain,
    "stops-nothing": StopsNothing,
    "runs-refused": runs_refused,
    "runs-twice": runs_twice,
    "leaves-behind": leaves_behind,
    "lost-choices": ForgetsChoices,
}
VARIANTS = (NO_UNIQUE_KEY, *_BREAK)


def read(text: str) -> tuple[str, ...]:
    """Variants from a command line, with ``+`` between them."""
    names = tuple(filter(None, text.split("+")))
    if not set(names) <= set(VARIANTS):
        raise argparse.ArgumentTypeError(f"each must be one of {', '.join(VARIANTS)}")
    return names


def broken(store: Store, variants: Sequence[str]) -> Store:
    """The daemon of ``store`` with all that is wrong in ``variants``; what is left of it to use."""
    for name in variants:
        if name != NO_UNIQUE_KEY:
            store = _BREAK[name](store)
    return store


def drop_unique_keys(path: Path) -> None:
    """Take the keys off the messages, so that every repetition is a new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    schema.open_file(path).close()
    with sqlite3.connect(path) as db:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'messages' "
            "AND sql LIKE 'CREATE UNIQUE%'"
        ).fetchall():
            db.execute(f"DROP INDEX {name}")
    db.close()
