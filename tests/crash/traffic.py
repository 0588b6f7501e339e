"""People who write whatever becomes of the daemon, and platforms that repeat until it acknowledges."""

import asyncio
import random
import secrets
import struct
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

from bridge.channel.testing.fakes.feishu import OWNER, FakeFeishu, FakeFile, Fault, Push, Refusal, throttled
from bridge.channel.testing.fakes.webhook import FakeWebhookClient, inline
from tests.crash.changes import Changes, about
from tests.crash.followers import Followers
from tests.crash.journal import Journal, Message, look_at_all
from tests.crash.operator import operate
from tests.crash.place import WEBHOOK_OWNER, Place

AT_ONCE = 5  # chats of one account that wait for an answer at the same time
PATIENCE_SECONDS = 20.0
LOOK_SECONDS = 0.03
GROUP = "oc_group_of_the_crash_run"


@dataclass
class Traffic:
    """``write`` goes on until ``quiet`` is set, and returns once the platforms have delivered all of it."""

    place: Place
    journal: Journal
    rng: random.Random
    pause_seconds: float = 0.4
    quiet: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._changes = Changes(self.rng)
        shared = (self.journal, self.rng, self.quiet, self.pause_seconds, self.place.home.db)
        self._followers = [
            Followers(f"wechat_mp:{name}", fake, *shared)
            for name, fake in (("service", self.place.service), ("answers", self.place.answers))
        ]

    async def write(self) -> None:
        place = self.place
        async with asyncio.TaskGroup() as people:
            for account, fake in (("feishu:main", place.feishu), ("forgetful:main", place.forgetful)):
                self._start_feishu(people, account, fake)
            for account, client in (("webhook:called", place.called), ("webhook:asking", place.asking)):
                self._start_webhook(people, account, client)
            for some in self._followers:
                some.start(people)
            people.create_task(operate(self.place.home, self.journal, self.rng, self.quiet))
            people.create_task(self._spoil())
        for some in self._followers:
            await some.collect()
        for fake in (place.feishu, place.forgetful):
            for push in list(fake.pusher.pushes):
                await push.over.wait()

    async def watch(self) -> None:
        """Read what the bot says, and ask where it waits to be asked, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask())
            while True:
                self.look()
                await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        place = self.place
        look_at_all(self.journal, place.feishu, place.forgetful, place.called, place.asking)
        for some in self._followers:
            some.look()

    # --- people ---------------------------------------------------------------------------------

    def _start_feishu(self, people: asyncio.TaskGroup, account: str, fake: FakeFeishu) -> None:
        room = asyncio.Semaphore(AT_ONCE)
        for person in (OWNER, *[f"ou_stranger_number_{n}" for n in range(7)]):
            people.create_task(self._person(room, self._feishu_writer(account, fake, person, group=False)))
        for person in ("ou_stranger_number_0", "ou_stranger_number_1"):
            people.create_task(self._person(room, self._feishu_writer(account, fake, person, group=True)))

    def _start_webhook(self, people: asyncio.TaskGroup, account: str, client: FakeWebhookClient) -> None:
        room = asyncio.Semaphore(AT_ONCE)
        for person in (WEBHOOK_OWNER, *[f"sender-stranger-number-{n}" for n in range(4)]):
            people.create_task(self._person(room, self._webhook_writer(account, client, person)))

    async def _person(
        self, room: asyncio.Semaphore, write: Callable[[], Awaitable[tuple[Message, Awaitable[object]]]]
    ) -> None:
        """Write one to three messages, wait for all answers, pause, and so on."""
        while not self.quiet.is_set():
            async with room:
                sent = [await write() for _ in range(self.rng.randint(1, 3))]
                for _, delivering in sent:
                    await delivering
                await self._answered([message for message, _ in sent])
            await asyncio.sleep(self.rng.random() * self.pause_seconds)

    async def _answered(self, messages: list[Message]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self.quiet.is_set() and not all(map(self.journal.is_answered, messages)):
                    await asyncio.sleep(LOOK_SECONDS)

    def _newcomer(self) -> str:
        """Somebody who has no session yet."""
        return f"ou_newcomer_number_{self.rng.randrange(10**9)}"

    def _wish(self, message: Message) -> str:
        """What the message asks for, as the agent reads it."""
        chance = self.rng.random()
        message.wants_long = chance < 0.1
        message.wants_file = 0.1 <= chance < 0.4 and message.sender in (OWNER, WEBHOOK_OWNER)
        wish = " long" if message.wants_long else " file" if message.wants_file else ""
        return f"Please answer {message.token}{wish}"

    # --- Feishu ---------------------------------------------------------------------------------

    def _feishu_writer(
        self, account: str, fake: FakeFeishu, person: str, *, group: bool
    ) -> Callable[[], Awaitable[tuple[Message, Awaitable[object]]]]:
        async def write() -> tuple[Message, Awaitable[object]]:
            token = _new_token()
            who = person if group or person == OWNER or self.rng.random() < 0.9 else self._newcomer()
            message = Message(account, token, "", "", who)
            files = [FakeFile("picture.png", "image/png", PNG)] if self.rng.random() < 0.1 else []
            message.brings = len(files)
            chat = {"group": True, "chat": GROUP} if group else {}
            message.message_id = message.handle = fake.world.new_id("om")
            self.journal.add(message)
            text = self._wish(message)
            push = await fake.say(text, files=files, sender=who, message_id=message.message_id, **chat)
            return message, self._pushed(fake, message, push, text)

        return write

    async def _pushed(self, fake: FakeFeishu, message: Message, push: Push, text: str) -> None:
        """Until the platform has its 200, and sometimes beyond: it also repeats what was acknowledged."""
        changed = await self._changes.feishu(fake, message, text)
        await push.over.wait()
        message.acknowledged = push.acknowledged
        if not changed and message.acknowledged and self.rng.random() < 0.15:
            again = await fake.repeat(message.message_id, as_new=self.rng.random() < 0.3)
            message.again.append(again.message_id)

    # --- webhooks -------------------------------------------------------------------------------

    def _webhook_writer(
        self, account: str, client: FakeWebhookClient, person: str
    ) -> Callable[[], Awaitable[tuple[Message, Awaitable[object]]]]:
        async def write() -> tuple[Message, Awaitable[object]]:
            token = _new_token()
            message = Message(account, token, f"msg_{secrets.token_hex(12)}", f"m_{token}", person)
            extra: dict[str, object] = {}
            if self.rng.random() < 0.1:
                extra["attachments"] = [inline("picture.png", "image/png", PNG)]
                message.brings = 1
            self.journal.add(message)
            text = self._wish(message)
            return message, self._hooked(client, message, text, extra)

        return write

    async def _hooked(
        self, client: FakeWebhookClient, message: Message, text: str, extra: dict[str, object]
    ) -> None:
        gone = await self._changes.webhook_first(client, message)
        place = {key: value for key, value in about(message).items() if key != "webhook_id"}
        delivery = await client.say(text, webhook_id=message.message_id, is_direct=True, **place, **extra)
        message.acknowledged = delivery.acknowledged
        changed = gone or await self._changes.webhook(client, message, text)
        if not changed and message.acknowledged and self.rng.random() < 0.15:
            await client.attempt(delivery)

    async def _ask(self) -> None:
        """The system without an address of its own asks again and again."""
        while True:
            try:
                await self.place.asking.ask(1.0)
            except (aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(0.1)

    # --- around them ----------------------------------------------------------------------------

    async def _spoil(self) -> None:
        """What platforms do to a sending: drop it before or after they took it, slow down, refuse."""
        while not self.quiet.is_set():
            for fake in (self.place.feishu, self.place.forgetful):
                fault = self.rng.choice(
                    (Fault.DROP, Fault.DROP_AFTER, Fault.BROKEN, throttled(0.2), Refusal(230028))
                )
                fake.next(fault)
            self._followers[0].spoil()
            await asyncio.sleep(0.2 + self.rng.random() * 0.6)


def _new_token() -> str:
    return f"token-{secrets.token_hex(6)}"


def _picture() -> bytes:
    """A PNG of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


PNG = _picture()
