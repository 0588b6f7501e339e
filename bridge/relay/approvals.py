"""What waits for the owner's yes or no: an account's open questions, and the messages that answer them.

All of it is in memory, and outlives a run of the account: a question is open as long as a turn waits for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Literal, Protocol

from bridge.channel import Choice, Inbound
from bridge.channel.text import truncate
from bridge.clock import Clock
from bridge.ids import ConversationKey
from bridge.protocol import ours
from bridge.relay import payload
from bridge.relay.ahead import Said
from bridge.relay.commands import CommandName, command_of
from bridge.relay.intake import Policy
from bridge.relay.judge import Answer
from bridge.relay.texts import Language, Text, language_of, say
from bridge.relay.yes_no import is_casual, yes_or_no
from bridge.store.contract import OutboxPart

_CHARACTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that is taken for another
_ID_CHARACTERS = 5
_STAMP_SECONDS = 1  # platforms tell the time that roughly
_LABEL_BYTES = 60  # of a button
_KEPT_SECONDS = 3600  # past its time, of a question whose turn nobody took up again


_NUMBER = re.compile(r"[0-9]{1,4}")  # an option's: a button's value comes from outside
_NO = Answer(False)


class Skewed(Protocol):
    @property
    def ahead_seconds(self) -> float:
        """How far the platform's clock is ahead of ours."""
        ...


@dataclass(slots=True, eq=False)
class Question:
    """By the monotonic clock: ``until``, and ``shown_at``, when it was given out (None before).

    ``reply_id`` is of the message that asks it, "" while that is not in the outbox, and ``last`` its last
    part. ``over``: it is answered;
    ``taken``: the answer, or that there is none, is on its way to the turn, and stays what it is.
    """

    id: str
    conversation: ConversationKey
    until: float
    reply_id: str = ""
    last: OutboxPart | None = None
    shown_at: float | None = None
    options: tuple[ours.ApprovalOption, ...] = ()
    choices: tuple[Choice, ...] = ()
    answer: Answer = _NO
    taken: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, *, denied: bool = False) -> None:
        """From now on the answer stays what it is; ``denied``: there was none, which is a no."""
        if denied:
            self.decide(_NO)
        self.taken = True

    def decide(self, answer: Answer) -> None:
        """Of answers that come at once the last one counts: whoever gave them changed their mind."""
        if not self.taken:
            self.answer = answer
            self.over.set()

    def option(self, number: int) -> Answer | None:
        """The answer of that number, counted from 1."""
        if not 1 <= number <= len(self.options):
            return None
        option = self.options[number - 1]
        return Answer(option.allows, option.id)


class Approvals:
    """The open questions by their approval ids. ``answer`` is an answerer, see ``ahead``."""

    def __init__(
        self, policy: Policy, language: Literal["auto", "en", "zh"], clock: Clock, platform: Skewed
    ) -> None:
        self._policy, self._language, self._clock, self._platform = policy, language, clock, platform
        self._open: dict[str, Question] = {}

    def open(
        self,
        approval_id: str,
        conversation: ConversationKey,
        seconds: float,
        options: tuple[ours.ApprovalOption, ...] = (),
    ) -> Question:
        """A new question, which counts for ``seconds``; the same one where it is open already."""
        question = self._open.get(approval_id)
        if question is None:
            now = self._clock.monotonic()
            until = now + seconds
            self._open = {key: one for key, one in self._open.items() if now < one.until + _KEPT_SECONDS}
            question = Question(short_id(approval_id), conversation, until, options=options)
            self._open[approval_id] = question
        return question

    def close(self, approval_id: str) -> None:
        """Nobody waits for its answer any more."""
        self._open.pop(approval_id, None)

    def close_all(self, conversation: ConversationKey) -> None:
        """No turn of the conversation waits for anything any more."""
        self._open = {key: one for key, one in self._open.items() if one.conversation != conversation}

    def keep(self, conversations: Collection[ConversationKey]) -> None:
        """Only in these conversations is there a turn that may still wait."""
        self._open = {key: one for key, one in self._open.items() if one.conversation in conversations}

    def waits(self, conversation: ConversationKey) -> bool:
        """Whether a question of the conversation is open."""
        return bool(self._of(conversation))

    def ids(self, conversation: ConversationKey) -> str:
        """The conversation's open questions, as they are answered by their ids; "" for none."""
        return _ids(self._of(conversation))

    def has_asked(self, conversation: ConversationKey) -> bool:
        """Whether a turn of the conversation has asked, and has not been given its answer."""
        return any(one.conversation == conversation for one in self._open.values())

    def taken(self, part: OutboxPart, at: float) -> None:
        """A part was given out ``at`` (monotonic), and taken; a question's last one shows it, once."""
        if part.part == part.parts - 1:
            for question in self._open.values():
                if question.reply_id == part.reply_id and question.shown_at is None:
                    question.shown_at = at

    def collected(self, after: int, to: str) -> None:
        """Whoever asks for parts has received those up to ``after``; ``to``: this recipient's, "": all."""
        for question in self._open.values():
            last = question.last
            if last is not None and last.part_id <= after and to in ("", last.to):
                self.taken(last, self._clock.monotonic())

    def choices(self, part: OutboxPart) -> tuple[Choice, ...]:
        """The buttons of a question's last part, as long as it waits."""
        if not self._open or part.part < part.parts - 1:
            return ()
        return next((one.choices for one in self._waiting() if one.reply_id == part.reply_id), ())

    def answer(self, message: Inbound) -> Said | None:
        """What is said to a button, a command, or a plain word while a question is open; else None."""
        if message.pressed:
            return self._pressed(message)
        command = command_of(message)
        if command is not None and command.name in _ANSWERS:
            return self._answered(message, _ANSWERS[command.name], command.argument)
        if not self._open or message.files or message.reference or not self._policy.is_owner(message):
            return None
        shown = [one for one in self._of(payload.conversation_of(message)) if self._saw(message, one)]
        return self._said_in_a_word(message, shown) if shown else None

    def _said_in_a_word(self, message: Inbound, shown: Sequence[Question]) -> Said | None:
        """A clear word decides; one that may be small talk does not, and is told what does."""
        approved, language = yes_or_no(message.text), self._language_of(message)
        if approved is None and not is_casual(message.text) and not _is_number_of(shown, message.text):
            return None
        if len(shown) > 1:
            return self._said(message, Text.APPROVAL_WHICH, ids=_ids(shown))
        if approved is None:
            how = how_to_answer(shown[0].options, shown[0].id, language)
            return self._said(message, Text.APPROVAL_UNCLEAR, id=shown[0].id, answers=how)
        return _decided(shown[0], Answer(approved), language)

    def _pressed(self, message: Inbound) -> Said | None:
        kind, _, rest = message.pressed.partition(":")
        approval_id, _, language = rest.rpartition(":")
        verb, _, number = kind.partition("-")
        if verb not in _PRESSED or language not in list(Language):
            return None
        if not self._policy.is_owner(message):
            return Said(say(Text.APPROVAL_OWNER, Language(language)))
        question = self._open.get(approval_id)
        if question is None or question not in self._waiting():
            return Said(say(Text.APPROVAL_STALE, Language(language)))
        return self._chosen(question, _PRESSED[verb], number, Language(language))

    def _answered(self, message: Inbound, approved: bool, argument: str) -> Said:
        if not self._policy.is_owner(message):
            return self._said(message, Text.APPROVAL_OWNER)
        named, number = _words(argument)
        waiting = list(self._waiting()) if named else self._of(payload.conversation_of(message))
        if named:
            waiting = [one for one in waiting if one.id == named]
        match waiting:
            case [one] if named or self._saw(message, one):
                return self._chosen(one, approved, number, self._language_of(message))
            case []:
                return self._said(message, Text.APPROVAL_STALE if named else Text.APPROVAL_NONE)
        return self._said(message, Text.APPROVAL_WHICH, ids=_ids(waiting))

    def _chosen(self, question: Question, approved: bool, number: str, language: Language) -> Said:
        """A plain yes or no, or the option of that number, which ``/deny`` cannot make a yes."""
        if not number:
            return _decided(question, Answer(approved), language)
        answer = question.option(int(number) if _NUMBER.fullmatch(number) else 0)
        if answer is None or (answer.approved and not approved):
            return Said(say(Text.APPROVAL_NUMBER, language, id=question.id, count=len(question.options)))
        return _decided(question, answer, language)

    def _said(self, message: Inbound, text: Text, **values: object) -> Said:
        return Said(say(text, self._language_of(message), **values))

    def _language_of(self, message: Inbound) -> Language:
        return language_of(message.text, self._language)

    def _of(self, conversation: ConversationKey) -> list[Question]:
        return [one for one in self._waiting() if one.conversation == conversation]

    def _waiting(self) -> Sequence[Question]:
        """Those that an answer decides."""
        now = self._clock.monotonic()
        return [one for one in self._open.values() if not one.over.is_set() and now < one.until]

    def _saw(self, message: Inbound, question: Question) -> bool:
        """Whether its sender can have seen the question: nobody answers what came after the answer."""
        if question.shown_at is None:
            return False
        if message.sent_at is None:
            return True
        age = (self._clock.now() - message.sent_at).total_seconds() + self._platform.ahead_seconds
        return self._clock.monotonic() - age + _STAMP_SECONDS > question.shown_at


def _ids(questions: Iterable[Question]) -> str:
    return ", ".join(one.id for one in questions)


_PRESSED = {"approve": True, "deny": False}
_ANSWERS = {CommandName.APPROVE: True, CommandName.DENY: False}


def is_choice(options: Sequence[ours.ApprovalOption]) -> bool:
    """Whether they say more than yes and no."""
    return len(options) > 2


def _is_number_of(questions: Sequence[Question], text: str) -> bool:
    """Whether it is the number of an answer that one of them lists, without its command."""
    number = text.strip()
    return _NUMBER.fullmatch(number) is not None and any(
        is_choice(one.options) and one.option(int(number)) for one in questions
    )


def how_to_answer(options: Sequence[ours.ApprovalOption], question_id: str, language: Language) -> str:
    """By yes or no, or by the number of one of its options where that says more."""
    text = Text.APPROVAL_OPTIONS if is_choice(options) else Text.APPROVAL_ANSWER
    return say(text, language, id=question_id)


def choices_of(
    approval_id: str, options: Sequence[ours.ApprovalOption], language: Language
) -> tuple[Choice, ...]:
    """The buttons of a question: by its whole id, so that none fits another."""
    if is_choice(options):
        return tuple(
            Choice(f"approve-{number}:{approval_id}:{language}", truncate(one.label, _LABEL_BYTES))
            for number, one in enumerate(options, 1)
        )
    allow, refuse = say(Text.APPROVAL_ALLOW, language), say(Text.APPROVAL_REFUSE, language)
    return Choice(f"approve:{approval_id}:{language}", allow), Choice(
        f"deny:{approval_id}:{language}", refuse
    )


def _decided(question: Question, answer: Answer, language: Language) -> Said:
    text = Text.APPROVAL_GIVEN if answer.approved else Text.APPROVAL_DENIED
    return Said(say(text, language, id=question.id), partial(question.decide, answer))


def _words(argument: str) -> tuple[str, str]:
    """The id and the option's number, "" for what there is not. No id is that short."""
    *first, last = argument.lower().split() or [""]
    if last.isdecimal() and len(last) < _ID_CHARACTERS:
        return first[0] if first else "", last
    return last, ""


def short_id(approval_id: str) -> str:
    """A few characters that a person can type, always the same for one approval."""
    number = int.from_bytes(sha256(approval_id.encode()).digest()[:8])
    digits = []
    for _ in range(_ID_CHARACTERS):
        number, digit = divmod(number, len(_CHARACTERS))
        digits.append(_CHARACTERS[digit])
    return "".join(digits)
