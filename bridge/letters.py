"""Dead letters as an operator handles them: listed, read, sent once more, forgotten."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from bridge.clock import Clock, unix_ms
from bridge.ids import PartId
from bridge.protocol import ours
from bridge.sessions.contract import ControlError
from bridge.store.contract import Bury, DeadLetter, DeadLetters, Revive, Store
from bridge.supervisor import Supervisor

MAX_LETTERS = 1000  # of one answer
MAX_ID = 2**63 - 1  # that a store holds; the wire has greater ones

LetterCommand = ours.DeadList | ours.DeadShow | ours.DeadRetry | ours.DeadPrune


@runtime_checkable
class Delivers(Protocol):
    """An account that can be told of a reply in its outbox."""

    async def deliver(self, reply_id: str) -> None: ...


class Letters:
    """Does what a command asks and returns the letters that it is about."""

    def __init__(self, supervisor: Supervisor, store: Store, clock: Clock) -> None:
        self._supervisor, self._store, self._clock = supervisor, store, clock

    async def handle(self, command: LetterCommand) -> tuple[ours.DeadLetter, ...]:
        """After a retry or a pruning: those that are left.

        Raises:
            ControlError: a letter is not there, or cannot be sent again.
        """
        match command:
            case ours.DeadList(account=account):
                return await self._listed(account)
            case ours.DeadShow(id=letter):
                return (await self._shown(letter),)
            case ours.DeadRetry(ids=ids):
                await self._retry(ids)
            case ours.DeadPrune(ids=ids, older_than_days=days):
                await self._prune(ids, days)
        return await self._listed("")

    async def _listed(self, account: str) -> tuple[ours.DeadLetter, ...]:
        letters = await self._store.get(DeadLetters(account, limit=MAX_LETTERS))
        return tuple(_to_wire(letter) for letter in letters)

    async def _shown(self, letter: int) -> ours.DeadLetter:
        found = await self._store.get(DeadLetters(after=min(letter, MAX_ID) - 1, limit=1))
        if not found or found[0].part_id != letter:
            raise _unknown([letter])
        return _to_wire(found[0]).model_copy(update={"to": found[0].to, "text": found[0].text})

    async def _retry(self, ids: Sequence[int]) -> None:
        refused = []
        for letter in ids:
            step = Revive(PartId(letter), secrets.token_hex(8), unix_ms(self._clock.now()))
            revived = await self._store.do(step) if letter <= MAX_ID else None
            if revived is None:
                refused.append(letter)
                continue
            account = self._supervisor.component(revived.account)
            if isinstance(account, Delivers):  # else its next run takes it from the outbox
                await account.deliver(revived.reply_id)
        if refused:
            raise _unknown(refused)

    async def _prune(self, ids: Sequence[int], days: int | None) -> None:
        before_ms = 0
        if days is not None:
            before_ms = max(
                0, unix_ms(self._clock.now()) - int(timedelta(days=1).total_seconds() * 1000) * days
            )
        known = tuple(PartId(letter) for letter in ids if letter <= MAX_ID)
        forgotten = await self._store.do(Bury(known, before_ms))
        if ids and not forgotten:
            raise ControlError("component_error", f"{_joined(ids)}: no dead letter: look at the list")


def _joined(ids: Sequence[int]) -> str:
    return ", ".join(str(letter) for letter in ids)


def _unknown(ids: Sequence[int]) -> ControlError:
    return ControlError(
        "component_error",
        f"{_joined(ids)}: not a dead letter, or one that cannot be sent again (a file is not kept, and a "
        "text may be on its way with a later reply): look at the list",
    )


def _to_wire(letter: DeadLetter) -> ours.DeadLetter:
    return ours.DeadLetter(
        id=letter.part_id,
        account=letter.account,
        kind=letter.kind,
        state=letter.state,
        reason=letter.reason,
        size=letter.size,
        created_unix_seconds=letter.created_ms // 1000,
        ended_unix_seconds=letter.ended_ms // 1000,
    )
