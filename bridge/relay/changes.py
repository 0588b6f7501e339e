"""Recalls and edits: first in the store, which decides whether they come in time, then in what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from bridge.channel import Claimed, Edited, Inbound, Item, Recalled
from bridge.clock import unix_ms
from bridge.errors import BridgeError, StoreError
from bridge.ids import ConversationKey, MessageId
from bridge.relay import outbox, payload
from bridge.relay.commands import Command, command_of
from bridge.relay.conversations import Conversations
from bridge.relay.draft import is_id, is_text, new_message
from bridge.relay.outbox import Address
from bridge.relay.settle import settled
from bridge.relay.tasks import Tasks
from bridge.relay.texts import Text, language_of, say
from bridge.relay.work import Work
from bridge.store.change_steps import RECALLED
from bridge.store.contract import (
    Changed,
    Claim,
    Edit,
    MessageOf,
    MessageState,
    PartsOf,
    Recall,
    StoredMessage,
)

_STOPPING = "the account stops: it has to come again"
_ANSWERS = {
    Changed.DONE: Claimed.ACCEPTED,
    Changed.KNOWN: Claimed.DUPLICATE,
    Changed.TOO_LATE: Claimed.IGNORED,
    Changed.OTHER: Claimed.IGNORED,
}


class Changes:
    """``drop`` takes the parts of a recalled message's reply out of delivery."""

    def __init__(
        self, work: Work, conversations: Conversations, tasks: Tasks, drop: Callable[[MessageId], None]
    ) -> None:
        self._work, self._conversations, self._tasks, self._drop = work, conversations, tasks, drop

    async def take(self, item: Item, now_ms: int) -> Claimed:
        """What became of a recall or an edit, once it is durable.

        It is carried out to its end even if whoever brought it hangs up.

        Raises:
            StoreError: it was not stored, or the account stops: it has to come again.
        """
        carrying = self._tasks.spawn(self._carry_out(item, now_ms), "change")
        if carrying is None:
            raise StoreError(_STOPPING)
        await asyncio.wait([carrying])  # also one that is cancelled before it has begun
        result = StoreError(_STOPPING) if carrying.cancelled() else carrying.result()
        if isinstance(result, Exception):
            raise result
        return result

    async def _carry_out(self, item: Item, now_ms: int) -> Claimed | Exception:
        try:
            return await settled(self._take(item, now_ms), name="change")
        except BridgeError as error:
            return error

    async def _take(self, item: Item, now_ms: int) -> Claimed:
        match item:
            case Recalled():
                change = await self._recall(item, MessageId(item.message_id), now_ms)
            case Edited():
                change = await self._edit(item, MessageId(item.message.message_id))
            case _:
                raise AssertionError("neither a recall nor an edit")
        self._work.log.info("intake.changed", kind=type(item).__name__.lower(), result=change)
        return _ANSWERS[change]

    async def _recall(self, recalled: Recalled, message_id: MessageId, now_ms: int) -> Changed:
        """Whose message it is is read before; of one that comes meanwhile it is read once more."""
        work = self._work
        if not is_id(message_id):
            return Changed.TOO_LATE
        known = await work.store.get(MessageOf(work.account, message_id))
        if known is not None and not _may_take_back(recalled, known):
            return Changed.TOO_LATE
        conversation = known.conversation if known is not None else None
        taken = await work.store.do(Recall(work.account, message_id, conversation, now_ms))
        if taken.change is Changed.OTHER:
            return await self._recall(recalled, message_id, now_ms)
        if conversation is not None:
            self._conversations.take_back(conversation, message_id)
        self._drop(message_id)
        work.release(outbox.copies_of(taken.released))
        return taken.change

    async def _edit(self, edited: Edited, message_id: MessageId) -> Changed:
        work, message = self._work, edited.message
        conversation = payload.conversation_of(message)
        ids = f"{message_id}{conversation}{message.to}{message.reply_to}"
        if not is_id(message_id) or not is_text(ids) or not work.policy.answers(message.sender):
            return Changed.TOO_LATE
        if (command := command_of(message)) is not None:
            return await self._dropped(edited, message_id, conversation, command)
        step = Edit(work.account, message_id, conversation, payload.encode(message), edited.revision)
        change = await work.store.do(step)
        if change is Changed.DONE:
            now_ms = unix_ms(work.clock.now())
            self._conversations.edit(
                conversation, work.claimed(message_id, message, now_ms, now_ms, edited.revision)
            )
        return change

    async def _dropped(
        self, edited: Edited, message_id: MessageId, conversation: ConversationKey, command: Command
    ) -> Changed:
        """No edit is a command, nor does the agent get one: the message leaves the queue, its sender is told.

        An edit that comes again is told what was not stored of it.
        """
        work = self._work
        known = await work.store.get(MessageOf(work.account, message_id))
        if known is None or known.conversation != conversation:
            return Changed.TOO_LATE
        now_ms = unix_ms(work.clock.now())
        change = Changed.KNOWN
        if known.state is MessageState.CLAIMED:
            change = (await work.store.do(Recall(work.account, message_id, conversation, now_ms))).change
            self._conversations.take_back(conversation, message_id)
        elif known.reason != RECALLED:
            return Changed.TOO_LATE
        await self._tell(edited, conversation, command, now_ms)
        return change

    async def _tell(
        self, edited: Edited, conversation: ConversationKey, command: Command, now_ms: int
    ) -> None:
        """Once: the edit is remembered as a message of its own."""
        work, message = self._work, edited.message
        language = language_of(message.text, work.language)
        said = say(Text.EDIT_NO_COMMAND, language, command=command.shown(language))
        address = Address(conversation, message.to, message.reply_to, language)
        reply = outbox.notice(said, address, transient=True)
        edit = replace(message, message_id=f"{message.message_id}#{edited.revision}")
        stored = new_message(edit, conversation, MessageState.ANSWERED, "edited", reply)
        await work.store.do(Claim(work.account, (stored,), now_ms))
        work.deliver(list(await work.store.get(PartsOf(work.account, reply.reply_id))))


def is_taken_back(message: Inbound, batch: Sequence[Item]) -> bool:
    """Whether ``batch`` holds the recall of a message of its own."""
    return any(
        isinstance(item, Recalled)
        and item.message_id == message.message_id
        and item.sender in ("", message.sender)
        and item.chat in ("", message.chat)
        for item in batch
    )


def _may_take_back(recalled: Recalled, known: StoredMessage) -> bool:
    """Whether it comes from the message's own chat and sender; a notice that may list others' stays."""
    if known.state is MessageState.ANSWERED and known.reason == Text.MISSED:
        return False
    return payload.is_from(known.conversation, recalled.chat, recalled.sender)
