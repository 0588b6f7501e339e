"""Where owners can be told something, by how their accounts are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bridge.channel.testing.clock import START, FakeClock, settle
from bridge.health import Health, Snapshot, State
from bridge.ids import AccountId, ConversationKey
from bridge.relay.reach import Reach
from bridge.store.contract import NoteOwner, OwnerChat, Store
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from bridge.supervisor import Plan, Supervisor

A, B, C = AccountId("test:a"), AccountId("test:b"), AccountId("test:c")


def chat(account: AccountId, owner: str = "u1", wrote_ms: int = 1000) -> OwnerChat:
    return OwnerChat(account, owner, ConversationKey("c"), "to", "handle", "zh", wrote_ms)


@dataclass
class Bot:
    """An account that has contact, or does not find its platform."""

    name: str
    has_contact: bool = True

    async def run(self, health: Health) -> None:
        if self.has_contact:
            health.contact()
        await asyncio.Event().wait()

    async def deliver(self, reply_id: str) -> None:
        """It is told of nothing here."""


@dataclass
class Mute:
    """An account that nothing can be delivered by."""

    name: str

    async def run(self, health: Health) -> None:
        health.contact()
        await asyncio.Event().wait()


@dataclass
class Place:
    store: Store
    reach: Reach
    bots: dict[str, Bot | Mute]
    preferred: list[str] = field(default_factory=list)

    async def named(self) -> list[tuple[str, str, object, bool]]:
        return [
            (one.chat.account, one.chat.to, one.account, one.may_come)
            for one in await self.reach.preferred_chats()
        ]


@asynccontextmanager
async def opened(tmp_path: Path, *bots: Bot | Mute, owner: str = "u1", off: str = "") -> AsyncIterator[Place]:
    supervisor, preferred = Supervisor(FakeClock()), list[str]()

    def plan(bot: Bot | Mute) -> Plan:
        state = State.FAILED if bot.name == off else State.STARTING
        first = Snapshot(AccountId(bot.name), "test", bot.name[-1], state, START, user_id=owner)
        return Plan(first, 1, None if bot.name == off else lambda: bot)

    async with open_store(tmp_path / "db", workers=InlineWorker) as store, supervisor.running():
        await supervisor.reconcile([plan(bot) for bot in bots])
        await settle()
        reach = Reach(supervisor, store, lambda: preferred)
        yield Place(store, reach, {bot.name: bot for bot in bots}, preferred)


async def test_named_accounts_are_told_of_in_order_with_how_they_are(tmp_path: Path) -> None:
    lost, parked, good = Bot(A, has_contact=False), Bot(B), Bot(C)
    async with opened(tmp_path, lost, parked, good, off=B) as place:
        for account in (A, B, C):
            await place.store.do(NoteOwner(chat(account)))
        assert await place.named() == []
        place.preferred += [C, B, "test:unknown", A]
        assert await place.named() == [
            (C, "to", good, False),
            (B, "to", None, False),
            (A, "to", None, True),
        ]


async def test_an_owner_who_never_wrote_is_reached_by_their_id_and_one_who_is_unknown_not(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, Bot(A), Bot(B)) as place:
        place.preferred.append(A)
        (one,) = await place.reach.preferred_chats()
        assert (one.chat.to, one.chat.owner, one.chat.language) == ("u1", "u1", "en")
        await place.store.do(NoteOwner(chat(B)))
        await place.store.do(NoteOwner(chat(A, owner="u-before")))
        (one,) = await place.reach.preferred_chats()
        assert (one.chat.to, one.chat.language) == ("u1", "zh")
    async with opened(tmp_path, Bot(A), owner="") as place:
        place.preferred.append(A)
        assert await place.reach.preferred_chats() == []
        assert await place.reach.last_chats() == []


async def test_where_owners_wrote_last_comes_first_as_far_as_it_has_contact(tmp_path: Path) -> None:
    async with opened(tmp_path, Bot(A), Bot(B, has_contact=False), Mute(C)) as place:
        for number, account in enumerate((A, B, C, AccountId("test:gone"))):
            await place.store.do(NoteOwner(chat(account, wrote_ms=1000 + number)))
        assert [one.chat.account for one in await place.reach.last_chats()] == [A]
        await place.store.do(NoteOwner(chat(A, owner="u-before")))
        assert await place.reach.last_chats() == []
