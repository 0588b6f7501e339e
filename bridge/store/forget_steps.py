"""The step by which an account's whole state goes, as its operator signs it out."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ids import AccountId
from bridge.store.step import Step


@dataclass(frozen=True, slots=True)
class Forgotten:
    """``copies`` are bodies of file parts that went; ``after`` is where to go on, None when all is gone."""

    copies: tuple[str, ...]
    after: int | None


@dataclass(frozen=True, slots=True)
class Forget(Step[Forgotten]):
    """Forget a piece of the account's state, which no run may use meanwhile: take it until all is gone.

    Its messages and parts, also those that are open, its held texts, its sessions with their histories, what
    was chosen in its conversations and used by its turns, its owner's chat, its signs, and last of all to
    whom it is bound: so what a crash leaves belongs to nobody else. ``limit`` bounds the rows of each kind
    that are looked at, but a session goes whole.
    """

    account: AccountId
    after: int = 0
    limit: int = 1000
