"""Who an account's bot is on its platform, as a durable step."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ids import AccountId
from bridge.store.step import Query, Step


@dataclass(frozen=True, slots=True)
class SetIdentity(Step[None]):
    """Remember who the bot is on its platform, so that a restart needs no answer from it first."""

    account: AccountId
    bot_id: str
    name: str


@dataclass(frozen=True, slots=True)
class StoredIdentity:
    bot_id: str
    name: str


@dataclass(frozen=True, slots=True)
class IdentityOf(Query[StoredIdentity | None]):
    account: AccountId
