"""What owners are told unasked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.channel import FileKind, RemoteFile
from bridge.channel.testing.clock import FakeClock, settle, until
from bridge.errors import StoreError
from bridge.ids import AccountId, ConversationKey
from bridge.media.disk import Disk
from bridge.relay.notices import (
    DISK_SECONDS,
    DROP_SECONDS,
    NOTE_SECONDS,
    PLACE_SECONDS,
    Notices,
    OwnerNote,
    watch_disk,
)
from bridge.relay.reach import Target
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import NoteOwner, OpenParts, OwnerChat, OwnerChats, Store
from bridge.store.sqlite import open_store
from bridge.store.workers import InlineWorker
from tests.media.test_disk import Filling
from tests.relay.harness import OWNER, STRANGER, desk, homes, message, setup_for

A, B, C = AccountId("test:a"), AccountId("test:b"), AccountId("test:c")
FULL = {language: say(Text.DISK_FULL, language, percent=20) for language in Language}
FREE = say(Text.DISK_FREE, Language.EN)


def chat(account: AccountId, wrote_ms: int = 1000, language: str = "en") -> OwnerChat:
    return OwnerChat(account, "u1", ConversationKey(f"chat of {account}"), "to", "handle", language, wrote_ms)


@dataclass
class FakeAccount:
    told: list[str] = field(default_factory=list)

    async def deliver(self, reply_id: str) -> None:
        self.told.append(reply_id)


@dataclass
class Owners:
    """Owners' chats as the test has them: ``accounts`` have contact, those in ``coming`` may have it soon."""

    chats: list[OwnerChat]
    accounts: dict[AccountId, FakeAccount]
    preferred: list[AccountId] = field(default_factory=list)
    coming: set[AccountId] = field(default_factory=set)

    def target(self, one: OwnerChat) -> Target:
        return Target(one, self.accounts.get(one.account), one.account in self.coming)

    async def preferred_chats(self) -> list[Target]:
        by_account = {one.account: one for one in self.chats}
        return [self.target(by_account[account]) for account in self.preferred]

    async def last_chats(self) -> list[Target]:
        latest = sorted(self.chats, key=lambda one: -one.wrote_ms)
        return [self.target(one) for one in latest if one.account in self.accounts]


class Lines:
    """A log: its events."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []

    def warning(self, event: str, **values: Any) -> None:
        self.lines.append((event, values.get("state")))


@dataclass
class Desk:
    store: Store
    clock: FakeClock
    accounts: dict[AccountId, FakeAccount]
    log: Any
    notices: Notices
    owners: Owners

    async def texts(self, account: AccountId = A) -> list[str]:
        return [part.body for part in await self.store.get(OpenParts(account))]


@asynccontextmanager
async def notices(
    tmp_path: Path, *chats: OwnerChat, wrap: Callable[[Any], Any] = lambda store: store
) -> AsyncIterator[Desk]:
    async with open_store(tmp_path / "state" / "test.db", workers=InlineWorker) as file:
        accounts, clock, log = {one.account: FakeAccount() for one in chats}, FakeClock(), Lines()
        owners = Owners(list(chats), accounts)
        found = Notices(wrap(file), clock, owners, log)  # type: ignore[arg-type]  # what it uses of both
        yield Desk(file, clock, accounts, log, found, owners)


# --- where the owner wrote last -------------------------------------------------------------


async def chats(store: Any) -> list[tuple[str, str, str]]:
    return [(one.owner, one.to, one.language) for one in await store.get(OwnerChats())]


async def test_the_owner_s_last_direct_chat_is_remembered_when_a_message_is_claimed() -> None:
    async with desk() as here:
        await here.say("hello", STRANGER)
        await here.say("in a group", group=True)
        await here.answered(2)
        assert await chats(here.store) == []
        await here.say("你好")
        await here.answered(3)
        assert await chats(here.store) == [(OWNER, f"to-{OWNER}", "zh")]


async def test_a_chat_in_which_the_owner_sent_a_command_alone_is_remembered_too() -> None:
    async with desk() as here:
        await here.say("/status", STRANGER)
        await here.say("/status")
        await here.answered(2)
        assert [owner for owner, _, _ in await chats(here.store)] == [OWNER]


class Counting:
    def __init__(self, fails: bool = False) -> None:
        self.steps: list[NoteOwner] = []
        self.fails = fails

    async def do(self, step: NoteOwner) -> None:
        self.steps.append(step)
        if self.fails:
            raise StoreError("full")


async def test_the_same_chat_is_written_down_every_ten_minutes_at_most_and_another_at_once() -> None:
    async with homes() as home:
        store, clock = Counting(), FakeClock()
        note = OwnerNote(setup_for(home, store, clock, object()))
        for seconds, to in ((0, "a"), (NOTE_SECONDS - 1, "a"), (1, "a"), (0, "b"), (0, "a")):
            await clock.advance(seconds)
            if (writing := note.of(message("m", to=to))) is not None:
                await writing
        assert [step.chat.to for step in store.steps] == ["a", "a", "b", "a"]
        assert note.of(message("m", sender=STRANGER, to="c")) is None


async def test_a_store_that_takes_nothing_harms_no_message() -> None:
    async with homes() as home:
        store = Counting(fails=True)
        writing = OwnerNote(setup_for(home, store, FakeClock(), object())).of(message("m"))
        assert writing is not None
        await writing
        assert len(store.steps) == 1


# --- telling -------------------------------------------------------------------------------


async def test_each_change_is_told_once_where_the_owner_wrote_last(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A, 1000), chat(B, 2000, "zh")) as here:
        tell = here.notices.tell
        assert not await tell("disk", "", Text.DISK_FREE)
        assert await tell("disk", "full", Text.DISK_FULL, percent=20)
        assert not await tell("disk", "full", Text.DISK_FULL, percent=20)
        assert await here.texts(A) == []
        (part,) = await here.store.get(OpenParts(B))
        assert (part.body, part.to, part.reply_to) == (FULL[Language.ZH], "to", "")
        assert part.conversation == f"chat of {B}"
        assert here.accounts[B].told == [part.reply_id]
        assert here.log.lines == [("notice", "full")]


async def test_the_next_known_chat_is_told_where_the_last_one_cannot_be_reached(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A, 1000), chat(B, 2000)) as here:
        del here.accounts[B]
        assert await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
        assert await here.texts(A) == [FULL[Language.EN]]


async def test_what_could_not_be_told_is_told_later_if_it_is_still_so(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A)) as here:
        account = here.accounts.pop(A)
        for state in ("full", "", "full"):
            assert not await here.notices.tell("disk", state, Text.DISK_FULL, percent=20)
        here.accounts[A] = account
        assert await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
        assert await here.texts() == [FULL[Language.EN]]
        assert [state for _, state in here.log.lines] == ["full", "well", "full"]


async def test_the_accounts_that_are_named_come_first_in_their_order(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A, 1000), chat(B, 2000), chat(C, 3000)) as here:
        here.owners.preferred = [A, B]
        assert await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
        assert await here.texts(A) == [FULL[Language.EN]]
        del here.accounts[A]
        assert await here.notices.tell("disk", "", Text.DISK_FREE)
        assert await here.texts(B) == [FREE]


async def test_an_account_that_may_come_keeps_its_place_for_two_minutes(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A), chat(B)) as here:
        here.owners.preferred, here.owners.coming = [A, B], {A}
        account = here.accounts.pop(A)
        tell = here.notices.tell
        assert not await tell("disk", "full", Text.DISK_FULL, percent=20)
        await here.clock.advance(PLACE_SECONDS - 1)
        assert not await tell("disk", "full", Text.DISK_FULL, percent=20)
        await here.clock.advance(1)
        assert await tell("disk", "full", Text.DISK_FULL, percent=20)
        assert await here.texts(B) == [FULL[Language.EN]]
        assert not await tell("disk", "", Text.DISK_FREE)
        here.accounts[A] = account
        assert await tell("disk", "", Text.DISK_FREE)
        assert await here.texts(A) == [FREE]


async def test_where_no_named_account_has_contact_it_goes_where_the_owner_wrote_last(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A), chat(B, 2000), chat(C, 3000)) as here:
        here.owners.preferred = [A]
        del here.accounts[A]
        assert await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
        assert await here.texts(C) == [FULL[Language.EN]]


async def test_nothing_is_told_through_the_account_that_it_is_about(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A, 1000), chat(B, 2000)) as here:
        here.owners.preferred = [B]
        assert await here.notices.tell("contact test:b", "deaf", Text.DEAF, [B], account=B)
        assert await here.texts(B) == []
        (part,) = await here.store.get(OpenParts(A))
        assert (part.body, part.notice) == (say(Text.DEAF, Language.EN, account=B), "contact")


async def test_case_65_what_nobody_could_be_told_for_a_quarter_of_an_hour_is_dropped_with_a_warning(
    tmp_path: Path,
) -> None:
    async with notices(tmp_path, chat(A)) as here:
        account = here.accounts.pop(A)
        assert not await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
        await here.clock.advance(DROP_SECONDS)
        assert not await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
        here.accounts[A] = account
        assert not await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
        assert await here.texts() == []
        assert here.log.lines == [("notice", "full"), ("notice.dropped", "full")]


async def test_the_end_of_what_was_dropped_untold_is_not_told_also_after_a_restart(tmp_path: Path) -> None:
    for restarts in (False, True):
        async with notices(tmp_path / str(restarts), chat(A)) as here:
            account = here.accounts.pop(A)
            for _ in range(2):
                assert not await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
                await here.clock.advance(DROP_SECONDS)
            here.accounts[A] = account
            if restarts:
                here.notices._last.clear()
            assert not await here.notices.is_news("disk", "full")
            assert not await here.notices.is_news("disk", "")
            assert not await here.notices.tell("disk", "", Text.DISK_FREE)
            assert not await here.notices.tell("disk", "", Text.DISK_FREE)
            assert here.log.lines[-1] == ("notice", "well")
            assert await here.texts() == []
            assert await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
            assert await here.notices.tell("disk", "", Text.DISK_FREE)


async def test_the_end_is_told_where_an_earlier_state_was_told_and_only_the_later_one_dropped(
    tmp_path: Path,
) -> None:
    async with notices(tmp_path, chat(A)) as here:
        assert await here.notices.tell("contact b", "deaf", Text.DEAF, account=B)
        account = here.accounts.pop(A)
        for _ in range(2):
            assert not await here.notices.tell("contact b", "parked", Text.PARKED, account=B)
            await here.clock.advance(DROP_SECONDS)
        here.accounts[A] = account
        assert await here.notices.tell("contact b", "", Text.CONTACT_AGAIN, account=B)


async def test_what_follows_another_topic_stands_as_that_does(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A)) as here:
        account = here.accounts.pop(A)
        for _ in range(2):
            await here.notices.tell("contact b", "deaf", Text.DEAF, account=B)
            await here.clock.advance(DROP_SECONDS)
        await here.notices.follow("contact b", ["contact c"])
        here.accounts[A] = account
        assert not await here.notices.tell("contact c", "deaf", Text.DEAF, account=C)
        assert not await here.notices.tell("contact c", "", Text.CONTACT_AGAIN, account=C)


class Twice:
    """A store in which somebody else tells the same between our look and our step."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def do(self, step: Any) -> Any:
        await self._store.do(step)
        return await self._store.do(step)

    async def get(self, query: Any) -> Any:
        return await self._store.get(query)


async def test_what_somebody_else_has_just_told_is_not_delivered_again(tmp_path: Path) -> None:
    async with notices(tmp_path, chat(A), wrap=Twice) as here:
        assert not await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
        assert here.accounts[A].told == []


# --- the disk -------------------------------------------------------------------------------


class Failing:
    def __init__(self, store: Store) -> None:
        self._store, self.fails = store, False

    async def do(self, step: Any) -> Any:
        if self.fails:
            raise StoreError("full")
        return await self._store.do(step)

    async def get(self, query: Any) -> Any:
        return await self._store.get(query)


async def test_a_disk_that_fills_up_and_has_room_again_is_told_once_each_way(tmp_path: Path) -> None:
    failing: list[Failing] = []

    def wrap(store: Store) -> Failing:
        failing.append(Failing(store))
        return failing[0]

    async with notices(tmp_path, chat(A), wrap=wrap) as here, asyncio.TaskGroup() as tasks:
        filling = Filling(50)
        disk = Disk(tmp_path, 20, filling)
        watching = tasks.create_task(watch_disk(disk, here.notices, here.clock, here.log))

        async def after(free: float) -> list[str]:
            filling.free = free
            await until(lambda: bool(here.clock.waits()))
            await here.clock.advance(DISK_SECONDS)
            await until(lambda: bool(here.clock.waits()))
            await settle()
            return await here.texts()

        assert await after(30) == []
        failing[0].fails = True
        assert await after(15) == []
        failing[0].fails = False
        for free in (15, 21, 12):
            assert await after(free) == [FULL[Language.EN]]
        for free in (22, 50):
            assert await after(free) == [FULL[Language.EN], FREE]
        assert here.log.lines == [("notice", "full"), ("notice.failed", None), ("notice", "well")]
        watching.cancel()


async def test_a_restart_tells_nothing_again(tmp_path: Path) -> None:
    for _ in range(2):
        async with notices(tmp_path, chat(A)) as here:
            await here.notices.tell("disk", "full", Text.DISK_FULL, percent=20)
            assert await here.texts() == [FULL[Language.EN]]


async def test_the_owner_is_answered_while_the_disk_is_full_and_learns_why_a_file_was_not_opened() -> None:
    async with homes() as home:
        disk = Disk(home.root, 20, Filling(10))
        async with desk(home=home, disk=disk, settings={"remote_tools": "owner"}) as here:
            here.channel.files["k"] = b"abc"
            await here.say("", files=(RemoteFile("k", FileKind.FILE, "a.txt"),))
            await here.say("see", files=(RemoteFile("k", FileKind.FILE, "a.txt"),))
            refused, answered = await here.answered(2)
            assert refused == say(Text.UNREADABLE_DISK, Language.EN)
            assert "[file a.txt: not opened, because the disk is nearly full.]" in answered
            assert here.channel.fetched == []
