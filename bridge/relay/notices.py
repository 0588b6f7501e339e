"""What owners are told unasked: once per change, and in the log in any case.

Through the accounts that the settings name, else where an owner wrote last. Nothing here waits in a queue:
whoever watches something calls again as long as it is so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bridge.channel import Inbound
from bridge.clock import Clock, unix_ms
from bridge.errors import StoreError
from bridge.ids import AccountId
from bridge.logs import Logger
from bridge.media.disk import Disk
from bridge.relay import payload
from bridge.relay.reach import Reach, Target
from bridge.relay.setup import Setup
from bridge.relay.texts import Language, Text, language_of, say
from bridge.relay.unprompted import Delivers, note_to
from bridge.store.contract import NoteOwner, Notify, OwnerChat, Store, ToldOf

NOTE_SECONDS = 600.0  # the same chat is not written down more often
DISK_SECONDS = 30.0
PLACE_SECONDS = 120.0  # an account that may have contact soon is waited for so long
DROP_SECONDS = 900.0  # what could not be told by then is not told any more
UNTOLD = " untold"  # behind a state that was dropped, of whose topic nobody has heard


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


@dataclass(slots=True)
class _Due:
    """A state that is to be told, ``since`` by the monotonic clock."""

    state: str
    since: float


class Notices:
    """Tells owners how it stands with topics, each change once."""

    def __init__(self, store: Store, clock: Clock, reach: Reach, log: Logger) -> None:
        self._store, self._clock, self._reach, self._log = store, clock, reach, log
        self._last: dict[str, str] = {}  # told of each topic, as it is stored
        self._due: dict[str, _Due] = {}

    async def tell(
        self, topic: str, state: str, text: Text, about: Collection[AccountId] = (), **values: object
    ) -> bool:
        """Have it told that ``topic`` is in ``state``, unless that was told last. True: it is stored now.

        ``state`` "" is that all is well. It is told through none of the accounts that it is ``about``. Call
        again as long as it is so: while nobody can be reached it waits, for a quarter of an hour.

        Raises:
            StoreError: nothing was stored.
        """
        if not await self.is_news(topic, state):
            was_due, ends_untold = self._due.pop(topic, None) is not None, not state and self._last[topic]
            if ends_untold:
                await self._remember(topic, "")
            if was_due or ends_untold:
                self._log.warning("notice", topic=topic, state=state or "well")
            return False
        due = self._due.get(topic)
        if due is None or due.state != state:
            due = self._due[topic] = _Due(state, self._clock.monotonic())
            self._log.warning("notice", topic=topic, state=state or "well")
        waited = self._clock.monotonic() - due.since
        if waited >= DROP_SECONDS:
            self._log.warning("notice.dropped", topic=topic, state=state or "well")
            await self._remember(topic, state if self._was_heard(topic) or not state else state + UNTOLD)
            return False
        target = await self._target(about, waited)
        if target is None:
            return False
        words = say(text, Language(target.chat.language), **values)
        return await self._post(target.chat, target.account, topic, state, words)

    async def is_news(self, topic: str, state: str) -> bool:
        """Whether it is to be told: not what was told or dropped last, nor the end of what nobody heard."""
        if topic not in self._last:
            self._last[topic] = await self._store.get(ToldOf(topic))
        return self._last[topic].removesuffix(UNTOLD) != state if state else self._was_heard(topic)

    def _was_heard(self, topic: str) -> bool:
        """Whether somebody was told that the topic is in the state in which it is, or in one before."""
        last = self._last[topic]
        return bool(last) and not last.endswith(UNTOLD)

    async def follow(self, topic: str, others: Collection[str]) -> None:
        """The others were told of together with ``topic``, or dropped with it; raises as ``tell``."""
        for other in others:
            await self._remember(other, self._last[topic])

    async def _target(self, about: Collection[AccountId], waited: float) -> Target | None:
        """Where it is told now. An account that may have contact soon keeps its place for a while."""
        for target in await self._reach.preferred_chats():
            if target.chat.account in about:
                continue
            if target.account is not None:
                return target
            if target.may_come and waited < PLACE_SECONDS:
                return None
        others = (one for one in await self._reach.last_chats() if one.chat.account not in about)
        return next(others, None)

    async def _post(
        self, chat: OwnerChat, account: Delivers | None, topic: str, state: str, text: str
    ) -> bool:
        reply = note_to(chat, text)
        told = await self._store.do(Notify(chat.account, topic, state, reply, unix_ms(self._clock.now())))
        self._is_told(topic, state)
        if told and account is not None:
            await account.deliver(reply.reply_id)
        return told

    async def _remember(self, topic: str, state: str) -> None:
        await self._store.do(Notify(AccountId(""), topic, state, None, unix_ms(self._clock.now())))
        self._is_told(topic, state)

    def _is_told(self, topic: str, state: str) -> None:
        self._last[topic] = state
        self._due.pop(topic, None)


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
