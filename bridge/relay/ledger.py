"""What follows from what a turn used, once that is stored: it is metered, it counts, the owner is told."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from bridge.clock import unix_ms
from bridge.errors import StoreError
from bridge.ids import ConversationKey
from bridge.relay.limits import SenderLimits
from bridge.relay.setup import Setup
from bridge.relay.tasks import Tasks
from bridge.relay.texts import Language, Text, say
from bridge.relay.unprompted import note_to
from bridge.store.contract import Notify, OwnerChat, OwnerChats, Reply, Used

TOPIC = "spent"


class Ledger:
    """``deliver`` hands a stored reply to delivery.

    The owner goes on whatever is reached, and is told once when the whole account reaches its limit.
    """

    def __init__(
        self,
        setup: Setup,
        senders: SenderLimits,
        tasks: Tasks,
        deliver: Callable[[str], Coroutine[Any, Any, None]],
    ) -> None:
        self._setup, self._senders, self._tasks, self._deliver = setup, senders, tasks, deliver
        self._told = None if senders.is_of_a_day else ""  # None: as the store has it

    def spent(self, conversation: ConversationKey, used: Used) -> None:
        """A turn of the conversation used so much."""
        self._setup.meter.spent(used.input_tokens or 0, used.output_tokens or 0, used.micros)
        reached = self._senders.spent(conversation, used)
        if reached != self._told:
            self._told = reached
            self._tasks.spawn(self._tell(reached), "spent")

    async def _tell(self, reached: str) -> None:
        """Tell the owner, unless they were told of it last. A store that takes nothing now harms no turn."""
        setup = self._setup
        try:
            reply = self._note(await self._chat(), reached)
            step = Notify(setup.name, f"{TOPIC} {setup.name}", reached, reply, unix_ms(setup.clock.now()))
            if not await setup.store.do(step):
                return
            if reached:
                setup.log.warning("spending.reached", limit=reached)
            if reply is not None:
                await self._deliver(reply.reply_id)
        except StoreError:
            self._told = None

    async def _chat(self) -> OwnerChat | None:
        """Where the owner wrote last; None where that is not known."""
        name, owner = self._setup.name, self._setup.settings.owner
        chats = await self._setup.store.get(OwnerChats())
        return next((one for one in chats if one.account == name and one.owner == owner), None)

    def _note(self, chat: OwnerChat | None, reached: str) -> Reply | None:
        if chat is None or not reached:
            return None
        account, language = self._setup.name, Language(chat.language)
        return note_to(chat, say(Text.ACCOUNT_USED_UP, language, account=account, limit=reached))
