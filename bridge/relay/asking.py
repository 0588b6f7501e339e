"""Puts a call to the owner: what is asked in the chat, and how long its turn waits for the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from bridge.channel import Inbound
from bridge.channel.text import truncate
from bridge.clock import unix_ms
from bridge.errors import StoreError
from bridge.ids import ConversationKey, MessageId
from bridge.protocol import ours
from bridge.relay import outbox
from bridge.relay.approvals import Approvals, Question, choices_of, how_to_answer, is_choice
from bridge.relay.judge import Answer, Call
from bridge.relay.outbox import Address, Content
from bridge.relay.texts import Language, Text, duration, language_of, say
from bridge.relay.unseen import visible
from bridge.relay.waiting import happens
from bridge.relay.work import Work
from bridge.store.contract import OutboxPart, Post, Reply

ARGUMENT_BYTES = 1500
_HEAD_BYTES, _NAME_BYTES, _FOLDER_BYTES, _LABEL_BYTES = 1200, 64, 300, 120


class Asking:
    """The questions of one message's turn. ``limit`` is the turn's clock: it stands still meanwhile."""

    def __init__(
        self, work: Work, approvals: Approvals, key: ConversationKey, message: Inbound, limit: asyncio.Timeout
    ) -> None:
        self._work, self._approvals, self._limit = work, approvals, limit
        # In a thread the question has to be found there; else it answers nothing, so that no handle is used.
        reply_to = message.reply_to if message.thread else ""
        self._address = Address(key, message.to, reply_to, language_of(message.text, work.language))

    async def ask(self, call: Call) -> Answer:
        """See ``Asks``. What cannot be asked is denied."""
        seconds = self._work.approval_seconds
        question = self._approvals.open(call.approval_id, self._address.conversation, seconds, call.options)
        with standing_still(self._limit):
            try:
                if not question.reply_id:
                    await self._put(call, question)
                left = question.until - self._work.clock.monotonic()
                if not await happens(question.over, left, self._work.clock):
                    question.take(denied=True)
                    await self._tell(question)
            except StoreError as error:
                question.take(denied=True)
                self._work.log.warning("approval.not_stored", reason=str(error))
        question.take()
        return question.answer

    def withdraw(self, approval_id: str) -> None:
        self._approvals.close(approval_id)

    async def _put(self, call: Call, question: Question) -> None:
        """Ask in the chat."""
        language = self._address.language
        within = duration(self._work.approval_seconds, language)
        text = question_text(call, question.id, within, language)
        spec, caps = self._work.spec, self._work.caps
        reply = replace(outbox.compose(Content(text), self._address, spec, caps), transient=True)
        question.choices = choices_of(call.approval_id, _readable(question), language)
        stored = await self._store(reply, Text.APPROVAL)
        question.reply_id, question.last = reply.reply_id, stored[-1]  # before any of it can be shown
        self._work.log.info("approval.asked")
        self._work.deliver(stored)

    async def _tell(self, question: Question) -> None:
        text = say(Text.APPROVAL_LATE, self._address.language, id=question.id)
        late = outbox.notice(text, self._address, transient=True)
        self._work.deliver(await self._store(late, Text.APPROVAL_LATE))

    async def _store(self, reply: Reply, reason: Text) -> list[OutboxPart]:
        work, now_ms = self._work, unix_ms(self._work.clock.now())
        ids = await work.store.do(Post(work.account, reply, now_ms, reason))
        return outbox.stored_parts(work.account, MessageId(""), reply, ids, now_ms, reason)


def asking(work: Work, key: ConversationKey, message: Inbound, limit: asyncio.Timeout) -> Asking | None:
    """What puts the calls of the message's turn to the owner; None where none is put."""
    return Asking(work, work.approvals, key, message, limit) if work.approvals is not None else None


@contextmanager
def standing_still(limit: asyncio.Timeout) -> Iterator[None]:
    """While the owner is waited for, a turn's time does not pass: the question has a limit of its own."""
    loop, until = asyncio.get_running_loop(), limit.when()
    left = None if until is None else until - loop.time()
    limit.reschedule(None)
    try:
        yield
    finally:
        if left is not None:
            limit.reschedule(loop.time() + left)


def question_text(call: Call, question_id: str, within: str, language: Language) -> str:
    """The question as markdown. Nothing in it is hidden: what does not show is written as its code."""
    return say(
        Text.APPROVAL,
        language,
        id=question_id,
        tool=truncate(_line(call.name), _NAME_BYTES),
        folder=truncate(_line(call.folder), _FOLDER_BYTES),
        arguments=_fenced(_shortened(_arguments(call), language)),
        answers=_answers(call, question_id, language),
        time=within,
    )


def _readable(question: Question) -> list[ours.ApprovalOption]:
    return [one.model_copy(update={"label": _line(one.label)}) for one in question.options]


def _answers(call: Call, question_id: str, language: Language) -> str:
    """How it is answered: by yes or no, and by the number of one of its options where that says more."""
    how = how_to_answer(call.options, question_id, language)
    if not is_choice(call.options):
        return how
    listed = [
        f"{number}. {truncate(_line(one.label), _LABEL_BYTES)}" for number, one in enumerate(call.options, 1)
    ]
    return "\n".join([*listed, how])


def _arguments(call: Call) -> str:
    """As JSON; where a server did not tell them, its own summary of the call."""
    if call.arguments is None:
        return _line(call.summary)
    return visible(json.dumps(call.arguments, ensure_ascii=False, indent=1))


def _shortened(text: str, language: Language) -> str:
    """Its beginning and its end, with a note of how much is missing between them."""
    data = text.encode()
    if len(data) <= ARGUMENT_BYTES:
        return text
    tail = data[_HEAD_BYTES - ARGUMENT_BYTES :].decode(errors="ignore")
    missing = len(data) - ARGUMENT_BYTES
    return f"{truncate(text, _HEAD_BYTES, '')}\n{say(Text.APPROVAL_CUT, language, bytes=missing)}\n{tail}"


def _fenced(text: str) -> str:
    """As code, which no line of ``text`` ends."""
    longest = max(map(len, "".join(c if c == "`" else " " for c in text).split()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _line(text: Any) -> str:
    return visible(str(text)).replace("\n", " ")
