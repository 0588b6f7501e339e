"""Questions that a command on this machine puts to an owner, yes or no. In memory: a restart drops them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Protocol, runtime_checkable

from bridge.channel import ChannelSettings, Inbound
from bridge.channel.text import clean, defuse_mentions
from bridge.clock import Clock, unix_ms
from bridge.errors import BridgeError, StoreError
from bridge.ids import AccountId, PartId
from bridge.logs import get_logger
from bridge.relay.ahead import Answerer, Said
from bridge.relay.followed import Followed
from bridge.relay.reach import Reach, Target
from bridge.relay.texts import Language, Text, duration, language_of, say
from bridge.relay.unprompted import Delivers, Posted, say_in
from bridge.relay.yes_no import yes_or_no
from bridge.store.contract import EndOf, Hold, OpenPartsFor, OwnerChat, PartState, Store

QUESTION_BYTES = 4096
WAIT_SECONDS, MOST_SECONDS = 1800, 14_400
LOOK_SECONDS = 0.5
STAMP_SECONDS = 1.0  # platforms cut the seconds off their stamps
BEGINNING_CHARACTERS = 80  # of a question, where it is named again

WHY = "question"  # the word for why it is said
NOT_YET = Posted("", PartId(0))

log = get_logger(__name__)


class QuestionState(StrEnum):
    """How a question stands; all but the first two are its end."""

    SENDING = "sending"
    OPEN = "open"  # the platform has taken it
    YES = "yes"
    NO = "no"
    UNANSWERED = "unanswered"  # in time: it counts as a no
    FAILED = "failed"  # it was refused, or could not be delivered in time
    WITHDRAWN = "withdrawn"


@runtime_checkable
class Asks(Protocol):
    """An account through which questions are asked."""

    def takes(self, text: str) -> bool:
        """Whether it is one message there."""
        ...

    def drop_reply(self, reply_id: str) -> None:
        """The store has ended this reply: it is not sent any more."""
        ...


@dataclass(slots=True)
class Question:
    """``words`` are what the owner reads.

    ``shown_at`` is when the platform had taken it, by its own clock, in seconds since 1970.
    """

    text: str
    words: str
    chat: OwnerChat
    give_up_at: float
    followed: Followed
    posted: Posted = NOT_YET
    state: QuestionState = QuestionState.SENDING
    shown_at: float = 0.0
    platform_id: str = ""
    answered_by: str = ""  # the message that is being stored as its answer

    @property
    def is_over(self) -> bool:
        return self.state not in (QuestionState.SENDING, QuestionState.OPEN)

    def enter(self, state: QuestionState) -> None:
        self.state = state
        self.followed.tell()


class Questions:
    """One open question per account. ``skew`` tells how far an account's platform is ahead, in seconds."""

    def __init__(self, store: Store, clock: Clock, reach: Reach, skew: Callable[[AccountId], float]) -> None:
        self._store, self._clock, self._reach, self._skew = store, clock, reach, skew
        self._open: dict[AccountId, Question] = {}
        self._known: dict[str, Question] = {}
        self._asked = asyncio.Event()

    async def drop_left(self) -> None:
        """Before any account runs: what a daemon before this one had not sent is not sent any more."""
        now_ms = unix_ms(self._clock.now())
        for part in await self._store.get(OpenPartsFor(WHY)):
            await self._store.do(Hold(part, PartState.EXPIRED, "", now_ms, "not asked any more"))

    async def ask(self, text: str, whose: str, wait_seconds: int) -> Question:
        """Have ``text`` put to the owner of the account ``whose``, "" for where notices go.

        Raises:
            BridgeError: it cannot be asked; nothing is sent.
        """
        target = await self._target(whose)
        chat, language = target.chat, Language(target.chat.language)
        text = defuse_mentions(clean(text)).strip()
        if not any(letter.isprintable() and not letter.isspace() for letter in text):
            raise BridgeError("the question holds nothing that can be read: ask in words")
        words = say(Text.QUESTION, language, question=text, time=duration(wait_seconds, language))
        account: object = target.account
        if isinstance(account, Asks) and not account.takes(words):
            raise BridgeError(f"it is too long for one message of {chat.account}: ask in fewer words")
        if chat.account in self._open:
            raise BridgeError(f"another question waits for its answer at {chat.account}: ask after that")
        give_up_at = self._clock.monotonic() + wait_seconds
        question = Question(text, words, chat, give_up_at, Followed(self._clock))
        self._open[chat.account] = question
        self._known[question.followed.id] = question
        self._asked.set()
        return question

    async def _target(self, account: str) -> Target:
        if account:
            found = await self._reach.chats_of([account])
            if not found:
                raise BridgeError(
                    f"{account} is no account with a known owner: look at the status, or pair one"
                )
        else:
            found = [*await self._reach.preferred_chats(), *await self._reach.last_chats()]
        connected = next((one for one in found if one.account is not None), None)
        if connected is None:
            whose = account or "no account with a known owner"
            raise BridgeError(f"{whose} has {'no ' if account else ''}contact with its platform right now")
        return connected

    # --- following ---------------------------------------------------------------------------

    def find(self, id_: str) -> Question | None:
        return self._known.get(id_)

    async def news(self, question: Question) -> None:
        """Wait until it stands otherwise, for some seconds at most."""
        if not question.is_over:
            await question.followed.news(max(question.give_up_at - self._clock.monotonic(), 1.0))

    async def withdraw(self, question: Question) -> None:
        """Nobody waits for its answer any more.

        Raises:
            StoreError: its text may still be sent.
        """
        if not question.is_over:
            await self._end(question, QuestionState.WITHDRAWN, Text.QUESTION_WITHDRAWN)

    async def run(self) -> None:
        """See to questions as long as there are some; for ever."""
        while True:
            await self._asked.wait()
            while self._known:
                for question in list(self._known.values()):
                    await self._look(question)
                await self._clock.sleep(LOOK_SECONDS)
            self._asked.clear()

    async def _look(self, question: Question) -> None:
        try:
            if question.posted is NOT_YET and not question.is_over:
                await self._post(question)
            if question.state is QuestionState.SENDING:
                await self._look_at_sending(question)
            if question.is_over:
                self._forget(question)
            elif question.followed.is_abandoned:
                await self.withdraw(question)
            elif self._clock.monotonic() >= question.give_up_at:
                is_shown = question.state is QuestionState.OPEN
                state = QuestionState.UNANSWERED if is_shown else QuestionState.FAILED
                await self._end(question, state, Text.QUESTION_UNANSWERED)
        except StoreError as error:
            log.warning("question.failed", error=error)

    async def _post(self, question: Question) -> None:
        """However long that takes: whoever does not wait so long has the question withdrawn."""
        chat = question.chat
        try:
            question.posted = await say_in(chat, question.words, WHY, None, self._store, self._clock)
        except StoreError as error:
            log.warning("question.failed", error=error)
            question.enter(QuestionState.FAILED)
            return
        account = self._reach.account(chat.account)
        if question.is_over:
            await self._take_back(question)
        elif isinstance(account, Delivers):
            await account.deliver(question.posted.reply_id)

    async def _look_at_sending(self, question: Question) -> None:
        end = await self._store.get(EndOf(question.posted.part_id))
        if end is None or question.is_over:
            return
        if end.state is not PartState.SENT:
            question.enter(QuestionState.FAILED)
            return
        question.shown_at = end.ended_ms / 1000 + self._skew(question.chat.account)
        question.platform_id = end.platform_id
        question.enter(QuestionState.OPEN)

    async def _end(self, question: Question, state: QuestionState, told: Text) -> None:
        """End it, and tell the chat, if that has seen it."""
        if question.state is QuestionState.SENDING:
            await self._take_back(question)
        was_shown = question.state is QuestionState.OPEN
        question.enter(state)
        if was_shown:
            await self._say(question, self._named(told, question))

    async def _take_back(self, question: Question) -> None:
        """Let it not be sent, unless it just was."""
        if question.posted is NOT_YET:
            return
        now_ms = unix_ms(self._clock.now())
        await self._store.do(
            Hold(question.posted.part_id, PartState.EXPIRED, "", now_ms, "not asked any more")
        )
        account = self._reach.account(question.chat.account)
        if isinstance(account, Asks):
            account.drop_reply(question.posted.reply_id)
        end = await self._store.get(EndOf(question.posted.part_id))
        if end is not None and end.state is PartState.SENT and not question.is_over:
            question.enter(QuestionState.OPEN)

    def _forget(self, question: Question) -> None:
        """Its chat is free for another one; its end can be asked for a while."""
        if self._open.get(question.chat.account) is question:
            del self._open[question.chat.account]
        if question.followed.is_abandoned:
            del self._known[question.followed.id]

    # --- answers -----------------------------------------------------------------------------

    def answerer(self, account: AccountId, settings: ChannelSettings) -> Answerer:
        """What answers the account's messages that are answers."""
        return partial(self._answer, account, settings)

    def _answer(self, account: AccountId, settings: ChannelSettings, message: Inbound) -> Said | None:
        question = self._open.get(account)
        if question is None or question.state is not QuestionState.OPEN:
            return None
        if not question.chat.owner == settings.owner == message.sender or message.group or message.files:
            return None
        is_yes = yes_or_no(message.text)
        if is_yes is None or not _is_about(question, message):
            return None
        question.answered_by = message.message_id
        text = Text.QUESTION_YES if is_yes else Text.QUESTION_NO
        state = QuestionState.YES if is_yes else QuestionState.NO
        language = language_of(message.text, settings.language)
        said = say(text, language, question=_beginning(question.text))
        return Said(said, partial(self._answered, question, message.message_id, state))

    def _answered(self, question: Question, by: str, state: QuestionState) -> None:
        """The answer is durable. Of several that came at once the last one counts."""
        if question.state is QuestionState.OPEN and question.answered_by == by:
            question.enter(state)

    # --- saying ------------------------------------------------------------------------------

    def _named(self, text: Text, question: Question) -> str:
        return say(text, Language(question.chat.language), question=_beginning(question.text))

    async def _say(self, question: Question, words: str) -> None:
        account = self._reach.account(question.chat.account)
        await say_in(question.chat, words, WHY, account, self._store, self._clock)


def _is_about(question: Question, message: Inbound) -> bool:
    """Whether it was written after the question was there, and quotes nothing else."""
    if message.reference and not (question.platform_id and question.platform_id in message.reference):
        return False
    return message.sent_at is None or message.sent_at.timestamp() + STAMP_SECONDS > question.shown_at


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= BEGINNING_CHARACTERS else f"{line[:BEGINNING_CHARACTERS]}…"
