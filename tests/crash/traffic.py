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
from tests.crash import choosing
from tests.crash.approving import FeishuHand, HookHand, Owner
from tests.crash.changes import Changes, about
from tests.crash.followers import Followers
from tests.crash.journal import Journal, Message, feishu_shows, webhook_shows
from tests.crash.operator import operate
from tests.crash.place import WEBHOOK_OWNER, Place
from tests.crash.saying import COMMANDS, STOP, written

AT_ONCE = 5  # chats of one account that wait for an answer at the same time
PATIENCE_SECONDS = 20.0
LOOK_SECONDS = 0.03
SHELL_ACCOUNTS, SHELL_SHARE = ("webhook:called", choosing.ACCOUNT), 0.3
GROUP = "oc_group_of_the_crash_run"
COMMANDS_SHARE, SLOW_SHARE, CALLS_SHARE = 0.14, 0.5, 0.5  # the last two: where owners are asked


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
        self._owners = self._asked()
        shared = (self.journal, self.rng, self.quiet, self.pause_seconds, self.place.home.db)
        self._followers = [
            Followers(f"wechat_mp:{name}", fake, *shared)
            for name, fake in (("service", self.place.service), ("answers", self.place.answers))
        ]

    def _asked(self) -> list[Owner]:
        place, rest = self.place, (self.journal, self.rng, self.quiet)
        owners = [
            Owner(
                HookHand(f"webhook:{name}", client, self.journal), f"webhook:{name}", WEBHOOK_OWNER,
                "sender-stranger-number-0", *rest,
            )
            for name, client in place.busy.items()
        ]  # fmt: skip
        hand = FeishuHand("feishu:asks", place.asks, self.journal)
        return [*owners, Owner(hand, "feishu:asks", OWNER, "ou_stranger_number_0", *rest)]

    @property
    def answering(self) -> int:
        """How many questions owners are about to answer."""
        return sum(owner.answering for owner in self._owners)

    async def write(self) -> None:
        place = self.place
        async with asyncio.TaskGroup() as people:
            for account, fake in place.apps.items():
                self._start_feishu(people, account, fake)
            for account, client in place.hooks.items():
                self._start_webhook(people, account, client)
            for some in self._followers:
                some.start(people)
            people.create_task(operate(self.place.home, self.journal, self.rng, self.quiet))
            people.create_task(self._spoil())
        for some in self._followers:
            await some.collect()
        for fake in place.apps.values():
            for push in list(fake.pusher.pushes):
                await push.over.wait()

    async def watch(self) -> None:
        """Read what the bot says, ask where it waits to be asked, and answer it, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask())
            for owner in self._owners:
                tasks.create_task(owner.run())
            while True:
                self.look()
                await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        journal = self.journal
        for account, fake in self.place.apps.items():
            journal.look(account, fake.sent, feishu_shows)
        for account, client in self.place.hooks.items():
            if client is self.place.asking:
                journal.look(account, list(client.asked.values()), webhook_shows)
            else:
                journal.look(account, client.receiver.kept, lambda kept: webhook_shows(kept.data))
        for some in self._followers:
            some.look()

    # --- people ---------------------------------------------------------------------------------

    def _start_feishu(self, people: asyncio.TaskGroup, account: str, fake: FakeFeishu) -> None:
        room, asks = asyncio.Semaphore(AT_ONCE), account in self.place.asking_accounts
        for person in (OWNER, *[f"ou_stranger_number_{n}" for n in range(3 if asks else 7)]):
            people.create_task(self._person(room, self._feishu_writer(account, fake, person, group=False)))
        for person in () if asks else ("ou_stranger_number_0", "ou_stranger_number_1"):
            people.create_task(self._person(room, self._feishu_writer(account, fake, person, group=True)))

    def _start_webhook(self, people: asyncio.TaskGroup, account: str, client: FakeWebhookClient) -> None:
        room, asks = asyncio.Semaphore(AT_ONCE), account in self.place.asking_accounts
        strangers = 1 if account == choosing.ACCOUNT else 2 if asks else 4  # who leave its owner room
        for person in (WEBHOOK_OWNER, *[f"sender-stranger-number-{n}" for n in range(strangers)]):
            people.create_task(self._person(room, self._webhook_writer(account, client, person)))

    async def _person(
        self, room: asyncio.Semaphore, write: Callable[[], Awaitable[tuple[Message, Awaitable[object]]]]
    ) -> None:
        """Write one to four messages, wait for all answers, pause, and so on."""
        while not self.quiet.is_set():
            async with room:
                sent = [await write() for _ in range(self.rng.randint(1, 4))]
                for at, (message, delivering) in enumerate(sent):
                    await delivering
                    if message.command == STOP and message.acknowledged:
                        for earlier, _ in sent[:at]:
                            earlier.over = True
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

    def _text(self, message: Message) -> str:
        """What the message says: a command, or what the agent is asked for."""
        chooses = message.account == choosing.ACCOUNT and message.sender == WEBHOOK_OWNER
        if chooses and self.rng.random() < choosing.SHARE:
            return choosing.choose(message, self.place.work, self.rng)
        if self.rng.random() < COMMANDS_SHARE:
            message.token, message.command = "", self.rng.choice(COMMANDS)
            return written(message.command, self.rng)
        message.token = _new_token()
        please = "请回答" if self.rng.random() < 0.1 else "Please answer"
        return " ".join([please, message.token, *self._words(message)])

    def _words(self, message: Message) -> list[str]:
        owner = message.sender in (OWNER, WEBHOOK_OWNER)
        chance = self.rng.random()
        message.wants_long = chance < 0.1
        message.wants_file = 0.1 <= chance < 0.4 and owner and message.account != choosing.ACCOUNT
        words = ["long"] if message.wants_long else ["file"] if message.wants_file else []
        if message.account in SHELL_ACCOUNTS and owner and self.rng.random() < SHELL_SHARE:
            words.append("shell")
        if message.account in self.place.asking_accounts:
            words += ["slow"] if self.rng.random() < SLOW_SHARE else []
            words += ["call"] if self.rng.random() < (CALLS_SHARE if owner else 0.05) else []
        return words

    # --- Feishu ---------------------------------------------------------------------------------

    def _feishu_writer(
        self, account: str, fake: FakeFeishu, person: str, *, group: bool
    ) -> Callable[[], Awaitable[tuple[Message, Awaitable[object]]]]:
        async def write() -> tuple[Message, Awaitable[object]]:
            who = person if group or person == OWNER or self.rng.random() < 0.9 else self._newcomer()
            message = Message(account, "", "", "", who)
            text = self._text(message)
            plain = bool(message.command) or self.rng.random() < 0.9
            files = [] if plain else [FakeFile("picture.png", "image/png", PNG)]
            message.brings = len(files)
            chat = {"group": True, "chat": GROUP} if group else {}
            message.message_id = message.handle = fake.world.new_id("om")
            self.journal.add(message)
            push = await fake.say(text, files=files, sender=who, message_id=message.message_id, **chat)
            return message, self._pushed(fake, message, push, text)

        return write

    async def _pushed(self, fake: FakeFeishu, message: Message, push: Push, text: str) -> None:
        """Until the platform has its 200, and sometimes beyond: it also repeats what was acknowledged."""
        changed = not message.command and await self._changes.feishu(fake, message, text)
        await push.over.wait()
        message.is_acknowledged(push.acknowledged)
        if not changed and message.acknowledged and self.rng.random() < 0.15:
            again = await fake.repeat(message.message_id, as_new=self.rng.random() < 0.3)
            message.again.append(again.message_id)

    # --- webhooks -------------------------------------------------------------------------------

    def _webhook_writer(
        self, account: str, client: FakeWebhookClient, person: str
    ) -> Callable[[], Awaitable[tuple[Message, Awaitable[object]]]]:
        async def write() -> tuple[Message, Awaitable[object]]:
            handle = secrets.token_hex(12)
            message = Message(account, "", f"msg_{handle}", f"m_{handle}", person)
            text = self._text(message)
            extra: dict[str, object] = {}
            if not message.command and self.rng.random() < 0.1:
                extra["attachments"] = [inline("picture.png", "image/png", PNG)]
                message.brings = 1
            self.journal.add(message)
            return message, self._hooked(client, message, text, extra)

        return write

    async def _hooked(
        self, client: FakeWebhookClient, message: Message, text: str, extra: dict[str, object]
    ) -> None:
        gone = not message.command and await self._changes.webhook_first(client, message)
        place = {key: value for key, value in about(message).items() if key != "webhook_id"}
        delivery = await client.say(text, webhook_id=message.message_id, is_direct=True, **place, **extra)
        message.is_acknowledged(delivery.acknowledged)
        kept = gone or bool(message.command)
        changed = kept or await self._changes.webhook(client, message, text)
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
            for account, fake in self.place.apps.items():
                if account in self.place.asking_accounts and self.rng.random() < 0.8:
                    continue  # it has fewer sendings
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
