"""Texts of the bridge's own that answer no message: into an owner's chat, through the outbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bridge.clock import Clock, unix_ms
from bridge.ids import PartId
from bridge.relay import outbox
from bridge.relay.outbox import Address
from bridge.relay.texts import Language
from bridge.store.contract import OwnerChat, Post, Reply, Store


@runtime_checkable
class Delivers(Protocol):
    """An account that can be told of a reply in its outbox."""

    async def deliver(self, reply_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Posted:
    """A text that is in the outbox, as one part."""

    reply_id: str
    part_id: PartId


def note_to(chat: OwnerChat, text: str, *, transient: bool = False) -> Reply:
    """``text`` as one message, without the handle of a message that may be gone."""
    language = Language(chat.language)
    return outbox.notice(text, Address(chat.conversation, chat.to, "", language), transient=transient)


async def say_in(chat: OwnerChat, text: str, why: str, account: object, store: Store, clock: Clock) -> Posted:
    """Put ``text`` into the outbox and have ``account`` deliver it, where it can. Never held, if refused.

    ``why`` is the word for why the bridge says it.

    Raises:
        StoreError: it was not stored.
    """
    reply = note_to(chat, text, transient=True)
    (part_id,) = await store.do(Post(chat.account, reply, unix_ms(clock.now()), why))
    if isinstance(account, Delivers):  # else its next run takes it from the outbox
        await account.deliver(reply.reply_id)
    return Posted(reply.reply_id, part_id)
