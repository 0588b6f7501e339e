"""A received item with what was decided on it, on its way into the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from bridge.channel import Edited, Ignored, Inbound, Item, Recalled, Unreadable
from bridge.ids import ConversationKey, MessageId
from bridge.relay import outbox, payload
from bridge.relay.ahead import NOBODY, Ahead
from bridge.relay.intake import WORK, Decision, Fate, Policy, classify, nothing_apart, set_aside
from bridge.relay.outbox import Address
from bridge.relay.room import ClaimRoom
from bridge.relay.texts import language_of, say
from bridge.store.contract import MessageState, NewMessage, Reply
from bridge.values import value

ID_BYTES = 256
NOWHERE = ConversationKey("")


@value
class Draft:
    """``message`` is None where there is no id to store it under.

    A draft for WORK holds its room, one with a notice the turn of its conversation, or sender, to be told;
    what is answered counts against what its sender may ask.
    """

    decision: Decision
    message: NewMessage | None = None
    inbound: Inbound | None = None
    conversation: ConversationKey = NOWHERE

    def take(self, room: ClaimRoom) -> None:
        """Take what was decided on. Nothing fails here."""
        key, senders = self.conversation, room.senders
        match self.decision.fate:
            case Fate.WORK:
                room.take(key)
                senders.take(key, turn=True)
            case Fate.SAID:
                senders.command(key)
            case Fate.BUSY | Fate.NOTICE:
                senders.take(key, turn=False)
        if self._tells(Fate.BUSY):
            room.noticed(key)
        elif self._tells(Fate.OVER):
            senders.told(key, self.decision.reason)

    def give_back(self, room: ClaimRoom) -> None:
        """The item was not stored: what it took is free again."""
        key, senders = self.conversation, room.senders
        match self.decision.fate:
            case Fate.WORK:
                room.give_back(key)
                senders.give_back(key, turn=True)
            case Fate.SAID:
                senders.no_command(key)
            case Fate.BUSY | Fate.NOTICE:
                senders.give_back(key, turn=False)
        if self._tells(Fate.BUSY):
            room.not_noticed(key)
        elif self._tells(Fate.OVER):
            senders.not_told(key, self.decision.reason)

    def _tells(self, fate: Fate) -> bool:
        return self.decision.fate is fate and self.message is not None and self.message.reply is not None


def draft(
    item: Item,
    policy: Policy,
    room: ClaimRoom,
    language: Literal["auto", "en", "zh"],
    apart: Callable[[Inbound], str] = nothing_apart,
    ahead: Ahead = NOBODY,
) -> Draft:
    """Decide on ``item`` and take the room that it needs. ``apart``: why it is only seen."""
    if isinstance(item, Recalled | Edited):
        raise TypeError("a change is no message: it is decided on elsewhere")
    if not isinstance(item, Inbound):
        return _set_aside(item)
    conversation = payload.conversation_of(item)
    if not is_text(f"{item.message_id}{conversation}{item.to}{item.reply_to}{item.body_digest}"):
        return _set_aside(Unreadable("an id is no text", item.message_id))  # no reply could ever be stored
    if not is_id(item.message_id):
        return Draft(Decision(Fate.SEEN, "no usable id"))
    decision = classify(item, conversation, policy, room, apart, ahead)
    drafted = Draft(decision, _decided(item, conversation, decision, language), item, conversation)
    drafted.take(room)  # last: nothing fails behind it
    return drafted


def _decided(
    item: Inbound, conversation: ConversationKey, decision: Decision, language: Literal["auto", "en", "zh"]
) -> NewMessage:
    if decision is WORK:
        return new_message(item, conversation, MessageState.CLAIMED)
    reply = _notice(decision, item, conversation, language)
    state = MessageState.SEEN if reply is None else MessageState.ANSWERED
    message = new_message(item, conversation, state, decision.reason, reply)
    return message if decision.said is None else replace(message, effect=decision.said.effect)


def new_message(
    item: Inbound,
    conversation: ConversationKey,
    state: MessageState,
    reason: str = "",
    reply: Reply | None = None,
) -> NewMessage:
    """What is stored of it; all that it says only where it is worked on."""
    content = payload.encode(item) if state is MessageState.CLAIMED else ""
    key = payload.redelivery_of(item, conversation)
    message_id = MessageId(item.message_id)
    return NewMessage(message_id, state, reason, key, item.body_digest, conversation, content, reply)


def _set_aside(item: Ignored | Unreadable) -> Draft:
    decision = set_aside(item)
    if not is_id(item.message_id):
        return Draft(decision)
    return Draft(decision, NewMessage(MessageId(item.message_id), MessageState.SEEN, decision.reason))


def is_id(message_id: str) -> bool:
    """Whether a message can be stored under it."""
    size = len(message_id)
    return 0 < size <= ID_BYTES and is_text(message_id) and (size * 4 <= ID_BYTES or _fits(message_id))


def _fits(message_id: str) -> bool:
    return len(message_id.encode()) <= ID_BYTES


def is_text(text: str) -> bool:
    """False for half a surrogate pair, which JSON can bring and no store takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _notice(
    decision: Decision, item: Inbound, conversation: ConversationKey, setting: Literal["auto", "en", "zh"]
) -> Reply | None:
    language = language_of(item.text, setting)
    if decision.said is not None:
        text = decision.said.text
    elif decision.text is not None:
        text = say(decision.text, language)
    else:
        return None
    address = Address(conversation, item.to, item.reply_to, language)
    return outbox.notice(text, address, transient=True)
