"""All conversations of an account's run, by their keys."""

from __future__ import annotations

from bridge.ids import ConversationKey, MessageId
from bridge.relay.conversation import Conversation, Now
from bridge.relay.room import ClaimRoom
from bridge.relay.tasks import Tasks
from bridge.relay.work import Message, Work


class Conversations:
    """Made when a message needs one, closed when it was idle for long or another needs the place."""

    def __init__(self, work: Work, room: ClaimRoom, tasks: Tasks) -> None:
        self._work, self._room, self._tasks = work, room, tasks
        self.by_key: dict[ConversationKey, Conversation] = {}

    def enqueue(self, key: ConversationKey, message: Message) -> None:
        """Hand a durable message, which has its room, to its conversation."""
        conversation = self._of(key)
        if conversation.add(message):
            self._tasks.spawn(conversation.work(), "answer")

    def arrive(self, key: ConversationKey, message: Message) -> None:
        """Hand on a message that has just come: it may end, or join, what is worked on."""
        self.enqueue(key, message)
        if (doing := self.by_key[key].arrived(message)) is not None:
            self._tasks.spawn(doing, "arrived")

    def edit(self, key: ConversationKey, edited: Message) -> None:
        """Hand on a message that was changed in the store while it waited."""
        if not self.holds(key, edited.message_id):
            self._room.take(key)
        conversation = self._of(key)
        if conversation.edit(edited):
            self._tasks.spawn(conversation.work(), "answer")

    def take_back(self, key: ConversationKey, message_id: MessageId) -> None:
        """Hand on that a message was recalled in the store. Its turn is cancelled, in a task of its own."""
        conversation = self.by_key.get(key)
        working = conversation.take_back(message_id) if conversation is not None else None
        if working is not None:
            self._tasks.spawn(working.cancel_turn(), "cancel")

    def stop(self, key: ConversationKey) -> None:
        """End all that a conversation works on or has waiting, which is over in the store."""
        conversation = self.by_key.get(key)
        working = conversation.stop() if conversation is not None else None
        if working is not None:
            self._tasks.spawn(working.cancel_turn(), "cancel")

    def renew(self, key: ConversationKey) -> None:
        """Leave a conversation's session, which is unbound in the store, once nothing runs on it."""
        conversation = self.by_key.get(key)
        if conversation is not None and conversation.idle_seconds >= 0:
            self.retire(key)
        elif conversation is not None:
            conversation.renew()

    def now(self, key: ConversationKey) -> Now:
        """What a conversation has to do."""
        return self.by_key[key].now if key in self.by_key else Now()

    def holds(self, key: ConversationKey, message_id: MessageId) -> bool:
        """Whether the message waits or runs in its conversation."""
        return key in self.by_key and self.by_key[key].holds(message_id)

    def is_busy(self, key: ConversationKey) -> bool:
        """Whether a message of the conversation waits or runs."""
        return key in self.by_key and self.by_key[key].is_busy

    def retire(self, key: ConversationKey) -> None:
        """Close an idle conversation, and forget it unless it was needed meanwhile."""

        async def retire() -> None:
            await conversation.retire()
            if not conversation.has_session:
                del self.by_key[key]

        conversation = self.by_key[key]
        conversation.leave()
        self._tasks.spawn(retire(), "close")

    async def close(self) -> None:
        """Hang up everywhere."""
        for conversation in self.by_key.values():
            await conversation.close()

    def _of(self, key: ConversationKey) -> Conversation:
        conversation = self.by_key.get(key)
        if conversation is None:
            self._make_room()
            conversation = self.by_key[key] = Conversation(key, self._work, self._room.give_back)
        return conversation

    def _make_room(self) -> None:
        """Before one more conversation: at the limit, those that have been idle longest are closed."""
        staying = {key: one.idle_seconds for key, one in self.by_key.items() if not one.leaving}
        over = len(staying) + 1 - self._work.limits.sessions
        longest = sorted((key for key in staying if staying[key] >= 0), key=staying.__getitem__, reverse=True)
        for key in longest[: max(0, over)]:
            self.retire(key)
