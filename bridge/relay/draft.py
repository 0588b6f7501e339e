"""A received item with what was decided on it, on its way into the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bridge.channel import Inbound, Item, Unreadable
from bridge.ids import ConversationKey, MessageId
from bridge.relay import outbox, payload
from bridge.relay.intake import Decision, Fate, Policy, classify
from bridge.relay.outbox import Address
from bridge.relay.room import ClaimRoom
from bridge.relay.texts import language_of, say
from bridge.store.contract import MessageState, NewMessage, Reply

ID_BYTES = 256
NOWHERE = ConversationKey("")


@dataclass(frozen=True, slots=True)
class Draft:
    """``message`` is None where there is no id to store it under.

    A draft for WORK holds its room, one with a busy notice the conversation's turn to be told.
    """

    decision: Decision
    message: NewMessage | None = None
    inbound: Inbound | None = None
    conversation: ConversationKey = NOWHERE

    def give_back(self, room: ClaimRoom) -> None:
        """The item was not stored: what it took is free again."""
        if self.message is None:
            return
        if self.decision.fate is Fate.WORK:
            room.give_back(self.conversation)
        elif self.decision.fate is Fate.BUSY and self.message.reply is not None:
            room.not_noticed(self.conversation)


def draft(item: Item, policy: Policy, room: ClaimRoom, language: Literal["auto", "en", "zh"]) -> Draft:
    """Decide on ``item`` and take the room that it needs."""
    if isinstance(item, Inbound) and not all(map(_is_text, (*_ids(item), item.body_digest))):
        item = Unreadable("an id is no text", item.message_id)  # no reply could ever be stored
    decision = classify(item, policy, room)
    message_id = MessageId(item.message_id)
    if not (message_id and _is_text(message_id) and len(message_id.encode()) <= ID_BYTES):
        return Draft(decision)
    if not isinstance(item, Inbound):
        return Draft(decision, NewMessage(message_id, MessageState.SEEN, decision.reason))
    conversation = payload.conversation_of(item)
    reply = _notice(decision, item, conversation, language)
    working = decision.fate is Fate.WORK
    if working:
        room.take(conversation)
    elif decision.fate is Fate.BUSY and reply is not None:
        room.noticed(conversation)
    message = NewMessage(
        message_id,
        MessageState.CLAIMED if working else MessageState.SEEN if reply is None else MessageState.ANSWERED,
        decision.reason,
        payload.redelivery_of(item),
        item.body_digest,
        conversation,
        payload.encode(item) if working else "",
        reply,
    )
    return Draft(decision, message, item, conversation)


def _ids(message: Inbound) -> tuple[str, ...]:
    """What a reply is addressed and filed by."""
    return message.sender, message.chat, message.thread, message.to, message.reply_to


def _is_text(text: str) -> bool:
    """False for half a surrogate pair, which JSON can bring and no store takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _notice(
    decision: Decision, item: Inbound, conversation: ConversationKey, setting: Literal["auto", "en", "zh"]
) -> Reply | None:
    if decision.text is None:
        return None
    language = language_of(item.text, setting)
    address = Address(conversation, item.to, item.reply_to, language)
    return outbox.notice(say(decision.text, language), address, transient=True)
