"""Followers of two WeChat accounts, one with customer service and one that may only answer."""

import asyncio
import random
import secrets
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.channel.testing.fakes.wechat_mp import (
    ACCOUNT,
    FakeWechatMp,
    Fault,
    Outcome,
    Push,
    Refusal,
    Secrets,
    Shown,
    new_key,
)
from bridge.clock import SystemClock
from bridge.relay.texts import Language, Text, say
from tests.crash.journal import Journal, Message, Seen
from tests.crash.saying import COMMANDS, written

PEOPLE = 4
COMMANDS_SHARE = 0.1
AGAIN_SECONDS = 0.3  # in place of the platform's own five
ATTEMPTS = 400
PLENTY = (1_000_000, 1e9)  # messages that may follow what was written: refusals are asked for
PATIENCE_SECONDS, LOOK_SECONDS = 20.0, 0.03
LATER, MORE = say(Text.LATER, Language.EN), "\n" + say(Text.MORE, Language.EN)
_WAITING = "SELECT DISTINCT recipient FROM parts WHERE account = ? AND state = 'pending'"
_UNFINISHED = (
    "SELECT count(*) FROM messages WHERE account = ? AND message_id = ? AND state NOT IN ('done', 'seen')"
)
_OPEN = "SELECT count(*) FROM messages WHERE account = ? AND state NOT IN ('done', 'seen')"
SPOILS = (Fault.DROP, Fault.DROP_AFTER, Fault.BROKEN, Refusal(-1), Refusal(40003))


@asynccontextmanager
async def wechat(base: str, name: str, *, service: bool) -> AsyncIterator[FakeWechatMp]:
    """A platform with one account, ``name``, that the daemon at ``base`` serves."""
    account = Secrets(f"wxcrash{name}", secrets.token_hex(16), new_key())
    async with AsyncExitStack() as stack:
        fake = FakeWechatMp(
            account,
            f"app-secret-of-{name}",
            to=f"{base}/wechat_mp/{name}",
            clock=SystemClock(),
            attempts=ATTEMPTS,
            again_seconds=AGAIN_SECONDS,
        )
        fake.interface.service = service
        fake.world.after_writing = PLENTY
        yield await stack.enter_async_context(fake)


def table(fake: FakeWechatMp, name: str) -> str:
    return f"""
[channels.wechat_mp.{name}]
app_id = "{fake.account.app_id}"
original_id = "{ACCOUNT}"
base = "{fake.base}"
customer_service = {"true" if fake.interface.service else "false"}
owner = "oOwnerWhoNeverWrites"
senders = "anyone"
"""


def credentials(fake: FakeWechatMp) -> dict[str, str]:
    account = fake.account
    return {
        "app_secret": fake.app_secret,
        "token": account.token,
        "encoding_aes_key": account.encoding_aes_key,
    }


@dataclass
class Followers:
    """Those of one account. Nothing on this platform says what a message answers: so each writes once."""

    account: str
    fake: FakeWechatMp
    journal: Journal
    rng: random.Random
    quiet: asyncio.Event
    pause_seconds: float
    db: Path
    _asks: dict[str, bool] = field(default_factory=dict)  # whether a person was told to ask

    def look(self) -> None:
        self.journal.look(self.account, self.fake.sent, self._shows)

    def _shows(self, shown: Shown) -> Iterator[Seen]:
        self._asks[shown.to] = shown.text == LATER or shown.text.endswith(MORE)
        if shown.text != LATER:
            yield Seen(shown.to, shown.text.removesuffix(MORE), "")

    def start(self, people: asyncio.TaskGroup) -> None:
        for _ in range(PEOPLE):
            people.create_task(self._people())

    async def _people(self) -> None:
        """One after the other, each by a message; where answers are fetched, by more until all came."""
        while not self.quiet.is_set():
            await self._write(f"oFollower{secrets.token_hex(8)}")
            await asyncio.sleep(self.rng.random() * self.pause_seconds)

    async def _write(self, openid: str) -> None:
        token = f"token-{secrets.token_hex(6)}"
        message = Message(self.account, token, self.fake.world.new_id(), openid, openid)
        message.wants_long = self.rng.random() < 0.03
        wish = f"Please answer {token}{' long' if message.wants_long else ''}"
        if self.rng.random() < COMMANDS_SHARE:
            message.token, message.wants_long, message.command = "", False, self.rng.choice(COMMANDS)
            wish = written(message.command, self.rng, english=True)
        self.journal.add(message)
        push = self.fake.say(wish, sender=openid, message_id=message.message_id)
        await push.over.wait()
        message.is_acknowledged(push.acknowledged)
        await self._repeated(push, message)
        await self._ask(openid, message)
        await self._answered(message)

    async def _repeated(self, push: Push, message: Message) -> None:
        """What was acknowledged without a word may come again."""
        if push.attempts[-1].outcome is Outcome.SILENT and self.rng.random() < 0.15:
            again = self.fake.repeat(push)
            message.again.append(again.message_id)
            await again.over.wait()

    async def _ask(self, openid: str, message: Message) -> None:
        """As long as one is told that more waits; once nothing comes, that was all.

        A part whose outcome stayed unknown twice is given up, so that nothing waits although it was told.
        """
        self.look()
        while self._asks.get(openid) and self._rows(_UNFINISHED, message.message_id)[0]:
            push = self.fake.say("1", sender=openid)
            await push.over.wait()
            self.look()
            if push.attempts[-1].outcome is Outcome.SILENT:
                return

    async def _answered(self, message: Message) -> None:
        """An account with customer service sends later."""
        if not self.fake.interface.service:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self.quiet.is_set() and not self.journal.is_answered(message):
                    await asyncio.sleep(LOOK_SECONDS)

    async def collect(self) -> None:
        """Fetch what still waits: it goes out only when its reader asks."""
        while not self.fake.interface.service and self._rows(_OPEN)[0]:
            for openid in self._rows(_WAITING):
                push = self.fake.say("1", sender=openid)
                await push.over.wait()
            await asyncio.sleep(LOOK_SECONDS)

    def _rows(self, query: str, *more: str) -> list[Any]:
        with closing(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)) as db:
            return [row[0] for row in db.execute(query, (self.account, *more))]

    def spoil(self) -> None:
        """What the platform does to a message by itself."""
        self.fake.next(self.rng.choice(SPOILS))
