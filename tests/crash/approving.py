"""Owners who are asked whether a call may run, and who answer well, badly, late, twice, or not at all."""

import asyncio
import random
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from bridge.channel.testing.fakes.feishu import FakeFeishu
from bridge.channel.testing.fakes.webhook import FakeWebhookClient
from bridge.relay.commands import IN_CHINESE, CommandName
from tests.crash.changes import about
from tests.crash.journal import Journal, Message, Question
from tests.crash.place import APPROVAL_SECONDS
from tests.crash.saying import NO, PRESS, YES, word

LOOK_SECONDS = 0.03
SOON_SECONDS = 0.3
WRONG_ID = "22222"


class Hand(Protocol):
    """How people write on one account."""

    def new(self, sender: str) -> Message:
        """A message that nobody has sent."""
        ...

    async def write(self, message: Message, text: str) -> None:
        """Send it until it is acknowledged."""
        ...

    async def press(self, question: Question, approves: bool, sender: str) -> bool:
        """Press the question's button; False where there is none."""
        ...


@dataclass
class FeishuHand:
    account: str
    fake: FakeFeishu
    journal: Journal

    def new(self, sender: str) -> Message:
        id_ = self.fake.world.new_id("om")
        return Message(self.account, "", id_, id_, sender)

    async def write(self, message: Message, text: str) -> None:
        self.journal.add(message)
        message.sent_at = time.monotonic()
        push = await self.fake.say(text, sender=message.sender, message_id=message.message_id)
        await push.over.wait()
        message.is_acknowledged(push.acknowledged)

    async def press(self, question: Question, approves: bool, sender: str) -> bool:
        cards = [one for one in self.fake.sent if one.buttons and f"({question.id})" in one.text]
        if not cards:
            return False
        sent_at = time.monotonic()
        push = await self.fake.press(cards[-1], cards[-1].buttons[0 if approves else 1].label, sender)
        event_id = push.event["header"]["event_id"]
        message = Message(self.account, "", event_id, f"press {event_id}", sender)
        message.command, message.question, message.approves = PRESS, question.id, approves
        message.sent_at, message.card = sent_at, cards[-1].message_id
        self.journal.add(message)
        await push.over.wait()
        message.is_acknowledged(push.acknowledged)
        return True


@dataclass
class HookHand:
    account: str
    client: FakeWebhookClient
    journal: Journal

    def new(self, sender: str) -> Message:
        id_ = secrets.token_hex(12)
        return Message(self.account, "", f"msg_{id_}", f"m_{id_}", sender)

    async def write(self, message: Message, text: str) -> None:
        self.journal.add(message)
        message.sent_at = time.monotonic()
        place = {key: value for key, value in about(message).items() if key != "webhook_id"}
        delivery = await self.client.say(text, webhook_id=message.message_id, is_direct=True, **place)
        message.is_acknowledged(delivery.acknowledged)

    async def press(self, question: Question, approves: bool, sender: str) -> bool:
        return False


@dataclass
class Owner:
    """The owner of one account, and a stranger there who would like to be. ``run`` until cancelled."""

    hand: Hand
    account: str
    owner: str
    stranger: str
    journal: Journal
    rng: random.Random
    quiet: asyncio.Event
    answering: int = 0
    _known: list[str] = field(default_factory=list)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as answers:
            while True:
                for (account, id_), question in list(self.journal.questions.items()):
                    if account == self.account and id_ not in self._known:
                        self._known.append(id_)
                        self.answering += 1
                        answers.create_task(self._counted(question))
                await asyncio.sleep(LOOK_SECONDS)

    async def _counted(self, question: Question) -> None:
        await self._answer(question)
        self.answering -= 1

    async def _answer(self, question: Question) -> None:
        chance = self.rng.random()
        if self.quiet.is_set():
            await self._by_id(question.id, False, self.owner)
        elif chance < 0.08:  # never, as long as it is of use
            await self.quiet.wait()
            await self._by_id(question.id, True, self.owner)
        elif chance < 0.14:
            await self._rest(APPROVAL_SECONDS + 1.0)
            await self._by_id(question.id, True, self.owner)
        elif chance < 0.24:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._soon(question))
                both.create_task(self._soon(question))
        elif chance < 0.34:
            await self._by_id(question.id, True, self.stranger)
            await self._soon(question)
        elif chance < 0.44:
            await self._by_id(self.rng.choice([WRONG_ID, *self._known[:-1]]), True, self.owner)
            await self._soon(question)
        else:
            await self._soon(question)

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.quiet.wait()

    async def _soon(self, question: Question) -> None:
        """In any of the ways, and in either sense."""
        await self._rest(self.rng.random() * SOON_SECONDS)
        approves = self.rng.random() < 0.65
        if self.rng.random() < 0.4 and await self.hand.press(question, approves, self.owner):
            return
        match self.rng.randrange(3):
            case 0:
                await self._by_id("", approves, self.owner)
            case 1:
                await self._by_word(approves)
            case _:
                await self._by_id(question.id, approves, self.owner)

    async def _by_id(self, id_: str, approves: bool, sender: str) -> None:
        """ "" as the id: whichever is open."""
        name = CommandName.APPROVE if approves else CommandName.DENY
        message = self.hand.new(sender)
        message.command, message.question, message.approves = name.value, id_, approves
        command = self.rng.choice((f"/{name}", f"/{IN_CHINESE[name]}"))
        await self.hand.write(message, f"{command} {self.rng.choice((id_, id_.upper()))}".strip())

    async def _by_word(self, approves: bool) -> None:
        message = self.hand.new(self.owner)
        message.command, message.approves = YES if approves else NO, approves
        await self.hand.write(message, word(approves, self.rng))
