"""What owners are told unasked: where one of them wrote last, once per change, and in the log in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from bridge.channel import Inbound
from bridge.clock import Clock, unix_ms
from bridge.errors import StoreError
from bridge.logs import Logger
from bridge.media.disk import Disk
from bridge.relay import outbox, payload
from bridge.relay.outbox import Address
from bridge.relay.setup import Setup
from bridge.relay.texts import Language, Text, language_of, say
from bridge.store.contract import NoteOwner, Notify, OwnerChat, OwnerChats, Store, ToldOf

NOTE_SECONDS = 600.0  # the same chat is not written down more often
DISK_SECONDS = 30.0


class OwnerNote:
    """Remembers in which direct chat the owner of one account wrote last."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._policy = setup, setup.policy
        self._to, self._due_at = "", 0.0

    def of(self, message: Inbound) -> Coroutine[Any, Any, None] | None:
        """What writes it down, where a claimed message makes that necessary."""
        if not self._policy.is_owner(message):
            return None
        now = self._setup.clock.monotonic()
        if message.to == self._to and now < self._due_at:
            return None
        self._to, self._due_at = message.to, now + NOTE_SECONDS
        return self._note(message)

    async def _note(self, message: Inbound) -> None:
        """A courtesy: a store that takes nothing now harms no message."""
        setup = self._setup
        chat = OwnerChat(
            setup.name,
            message.sender,
            payload.conversation_of(message),
            message.to,
            message.reply_to,
            language_of(message.text, setup.settings.language),
            unix_ms(setup.clock.now()),
        )
        with suppress(StoreError):
            await setup.store.do(NoteOwner(chat))


class Delivers(Protocol):
    """An account that can be told of a reply in its outbox."""

    async def deliver(self, reply_id: str) -> None: ...


class Notices:
    """Tells how it stands with topics. ``reached`` finds a chat's account while it can be written through."""

    def __init__(
        self, store: Store, clock: Clock, reached: Callable[[OwnerChat], Delivers | None], log: Logger
    ) -> None:
        self._store, self._clock, self._reached, self._log = store, clock, reached, log
        self._logged: dict[str, str] = {}

    async def tell(self, topic: str, state: str, text: Text, **values: object) -> bool:
        """Tell ``text`` where the owner wrote last, unless ``state`` was told last. True: it is stored now.

        ``state`` "" is that all is well. While no account has contact nobody is told: call again as long as
        it is so.

        Raises:
            StoreError: nothing was stored.
        """
        if self._logged.get(topic, "") != state:
            self._logged[topic] = state
            self._log.warning("notice", topic=topic, state=state or "well")
        if await self._store.get(ToldOf(topic)) == state:
            return False
        for chat in await self._store.get(OwnerChats()):
            account = self._reached(chat)
            if account is not None:
                return await self._post(
                    chat, account, topic, state, say(text, Language(chat.language), **values)
                )
        return False

    async def _post(self, chat: OwnerChat, account: Delivers, topic: str, state: str, text: str) -> bool:
        """Unprompted, so without the handle of a message that may be gone."""
        reply = outbox.notice(text, Address(chat.conversation, chat.to, "", Language(chat.language)))
        told = await self._store.do(Notify(chat.account, topic, state, reply, unix_ms(self._clock.now())))
        if told:
            await account.deliver(reply.reply_id)
        return told


async def watch_disk(disk: Disk, notices: Notices, clock: Clock, log: Logger) -> None:
    """Tell when the disk is nearly full, and when it is not any more; for ever."""
    while True:
        full = await asyncio.to_thread(disk.is_full)
        text = Text.DISK_FULL if full else Text.DISK_FREE
        try:
            await notices.tell("disk", "full" if full else "", text, percent=f"{disk.min_free_percent:g}")
        except StoreError as error:
            log.warning("notice.failed", error=error)
        await clock.sleep(DISK_SECONDS)
