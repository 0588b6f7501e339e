"""Signs that stand in a chat while a turn runs there: remembered until they are taken away again."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ids import AccountId, MessageId
from bridge.store.step import Query, Step

TYPING, PROGRESS = "typing", "progress"


@dataclass(frozen=True, slots=True)
class Sign:
    """``kind`` is TYPING or PROGRESS, of ``message_id``'s turn; ``handle`` is the platform's id of it."""

    kind: str
    message_id: MessageId
    to: str
    reply_to: str
    handle: str = ""


@dataclass(frozen=True, slots=True)
class PutSign(Step[None]):
    """The sign stands in its chat, or is about to; in place of what was known of it."""

    account: AccountId
    sign: Sign


@dataclass(frozen=True, slots=True)
class DropSign(Step[None]):
    """It was taken away, or never can be."""

    account: AccountId
    sign: Sign


@dataclass(frozen=True, slots=True)
class SignsOf(Query[tuple[Sign, ...]]):
    """The account's signs that nobody has taken away."""

    account: AccountId
