"""The owner's last direct chats as values, and what was told there unasked."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ids import AccountId, ConversationKey
from bridge.store.reply import Reply
from bridge.store.step import Query, Step


@dataclass(frozen=True, slots=True)
class OwnerChat:
    """The direct chat in which the account's owner wrote last, ``owner`` by their id then.

    ``reply_to`` is the handle of that message, ``language`` the one to answer it in.
    """

    account: AccountId
    owner: str
    conversation: ConversationKey
    to: str
    reply_to: str
    language: str
    wrote_ms: int


@dataclass(frozen=True, slots=True)
class NoteOwner(Step[None]):
    """Remember the chat, in place of the account's last one."""

    chat: OwnerChat


@dataclass(frozen=True, slots=True)
class Notify(Step[bool]):
    """Tell an owner how it stands with ``topic``, once: put ``reply`` into the outbox and remember ``state``.

    The topic's first word is also why the bridge says it by itself. ``state`` "": all is well, as it is
    before anything was told. False: that is what was told last, and nothing is stored. Without a reply it
    is only remembered, as if it had been told.
    """

    account: AccountId
    topic: str
    state: str
    reply: Reply | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class OwnerChats(Query[tuple[OwnerChat, ...]]):
    """Every account's, the latest first."""


@dataclass(frozen=True, slots=True)
class ToldOf(Query[str]):
    """The state that the owner was last told of ``topic``; "" for none."""

    topic: str
