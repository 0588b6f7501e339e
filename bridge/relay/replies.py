"""How the messages of a conversation end: with a reply in the outbox, a fixed text of ours, or in silence."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from bridge.clock import unix_ms
from bridge.ids import ConversationKey, MessageId
from bridge.relay import outbox, turn
from bridge.relay.outbox import Address, Content
from bridge.relay.session import TurnResult
from bridge.relay.texts import Language, Text, language_of, say
from bridge.relay.work import Message, Work
from bridge.store.contract import Answer, HeldTexts, Post, Reply, Spend, Used


class Replies:
    """Several messages that one turn answered end together, oldest first: the last has the reply."""

    def __init__(self, key: ConversationKey, work: Work) -> None:
        self._key, self._work = key, work
        self._owed: Used | None = None

    def owe(self, used: Used) -> None:
        """A turn used so much: it is counted with the end of its claims, or else by ``settle``."""
        self._owed = used

    async def settle(self) -> None:
        """Count what is still owed: the claims were over before the turn."""
        if (used := self._owed) is not None:
            await self._work.store.do(Spend(self._work.account, used, self._now_ms()))
            self._paid(used)

    def _paid(self, used: Used) -> None:
        self._owed = None
        self._work.spent(self._key, used)

    async def answer(self, messages: Sequence[Message], result: TurnResult) -> None:
        """End the claims with what a completed turn brought."""
        work = self._work
        content = await asyncio.to_thread(turn.content_of, result.text, result.files, work.outbox_folder)
        over = content.files[work.limits.reply_files :]
        held = await work.store.get(HeldTexts(work.account, self._key))
        address, spec, caps = self._address(messages), work.spec, work.caps
        reply = outbox.compose(content, address, spec, caps, held)
        for earlier in () if reply.carried else outbox.earlier(held, address, spec, caps):
            await self._send_ahead(earlier)
        await self.store(messages, reply, "")
        work.release([file.path for file in over])

    async def say(self, messages: Sequence[Message], text: Text, **values: object) -> None:
        """End the claims with a fixed text of ours."""
        address = self._address(messages)
        said = say(text, address.language, **values)
        await self.store(messages, outbox.notice(said, address), text)

    async def tell(self, messages: Sequence[Message], said: str, reason: str) -> None:
        """End the claims with a text of ours that tells what others named, and so may be long."""
        reply = outbox.compose(Content(said), self._address(messages), self._work.spec, self._work.caps)
        await self.store(messages, reply, reason)

    def language(self, messages: Sequence[Message]) -> Language:
        """That of the last one which shows any."""
        written = "\n".join(one.inbound.text for one in reversed(messages))
        return language_of(written, self._work.language)

    async def say_missed(self, missed: Sequence[Message]) -> bool:
        """One notice lists them all, and ends the first. False: it was over, so nothing was said."""
        address = self._address(missed[:1])
        listed = turn.missed_list([one.inbound for one in missed], address.language)
        text = f"{say(Text.MISSED, address.language)}\n{listed}"
        reply = outbox.compose(Content(text), address, self._work.spec, self._work.caps)
        return await self.store(missed[:1], reply, Text.MISSED)

    async def store(self, messages: Sequence[Message], reply: Reply | None, reason: str) -> bool:
        """End the claims. False: none was open any more, or each is another, as after recalls and edits.

        A message that is over leaves the reply to the one before it.
        """
        *before, last = messages
        while not await self._store(last, before, reply, reason):
            if not before:
                if reply is not None:
                    self._work.release(outbox.copies_in(reply))
                return False
            *before, last = before
        return True

    async def _store(
        self, message: Message, along: Sequence[Message], reply: Reply | None, reason: str
    ) -> bool:
        account, message_id, now_ms = self._work.account, message.message_id, self._now_ms()
        if reply is not None:
            reply = replace(reply, to=message.inbound.to, reply_to=message.inbound.reply_to)
        others = tuple((one.message_id, one.revision) for one in along)
        used = self._owed if reply is not None else None  # without one, nobody tells whether it was open
        step = Answer(account, message_id, reply, now_ms, reason, message.revision, others, used)
        ids = await self._work.store.do(step)
        if ids and used is not None:
            self._paid(used)
        if reply is not None and ids:
            self._work.deliver(outbox.stored_parts(account, message_id, reply, ids, now_ms, reason))
        return bool(ids)

    async def _send_ahead(self, earlier: Reply) -> None:
        """What is held leaves by itself: should the claim not end now, it has still left."""
        now_ms, account = self._now_ms(), self._work.account
        ids = await self._work.store.do(Post(account, earlier, now_ms))
        self._work.deliver(outbox.stored_parts(account, MessageId(""), earlier, ids, now_ms, ""))

    def _address(self, messages: Sequence[Message]) -> Address:
        inbound = messages[-1].inbound
        return Address(self._key, inbound.to, inbound.reply_to, self.language(messages))

    def _now_ms(self) -> int:
        return unix_ms(self._work.clock.now())
