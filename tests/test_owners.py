"""What the command line asks about owners, on accounts that note what they are told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bridge.channel import ChannelSettings
from bridge.channel.testing.clock import START, FakeClock, settle, until
from bridge.errors import ConfigError, StoreError
from bridge.health import Health, Snapshot, State
from bridge.ids import AccountId
from bridge.owners import Owners
from bridge.protocol import ours
from bridge.questions import Questions
from bridge.relay.pairing import Pairings
from bridge.relay.reach import Reach
from bridge.relay.texts import Language, Text, say
from bridge.sessions.contract import ControlError
from bridge.store.contract import Hold, NoteOwner, OpenParts, OwnerChats, PartState, Settle, Store
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan, Supervisor
from tests.relay.harness import message
from tests.store.around import Around

MAIN, OWNED, OFF = AccountId("test:main"), AccountId("test:owned"), AccountId("test:off")
CODE = "48217730"


@dataclass
class Bot:
    """An account that has contact, and notes which replies it was told of."""

    name: str
    told: list[str] = field(default_factory=list)

    async def run(self, health: Health) -> None:
        health.contact()
        await asyncio.Event().wait()

    async def deliver(self, reply_id: str) -> None:
        self.told.append(reply_id)

    def takes(self, text: str) -> bool:
        return True

    def drop_reply(self, reply_id: str) -> None:
        """It is told of nothing that it could drop."""


@dataclass
class Place:
    store: Store
    clock: FakeClock
    supervisor: Supervisor
    pairings: Pairings
    owners: Owners
    bots: dict[AccountId, Bot]
    written: list[tuple[AccountId, str]] = field(default_factory=list)
    trouble: Exception | None = None

    async def pair(self, account: str = MAIN, code: str = CODE, **words: Any) -> ours.Pairing:
        return await self.owners.pair(ours.Pair(account=account, code=code, **words))

    async def state(self, id_: str, **words: Any) -> ours.Pairing:
        told = (await self.owners.handle(ours.PairState(id=id_, **words)))["pairing"]
        assert isinstance(told, ours.Pairing)
        return told

    def hear(self, text: str, owner: str = "") -> str:
        """What the account says to a message, once that is durable."""
        said = self.pairings.answerer(MAIN, ChannelSettings(owner=owner))(message("m1", text, "u7"))
        assert said is not None
        said.act()
        return said.text


class Failing(Around):
    """A store that fails for one kind of step."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.fails: type[object] = int

    async def do(self, step: Any) -> Any:
        if isinstance(step, self.fails):
            raise StoreError("full")
        return await self._store.do(step)


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[Place]:
    clock = FakeClock()
    supervisor, pairings = Supervisor(clock), Pairings(clock)
    bots = {name: Bot(name) for name in (MAIN, OWNED)}

    def plan(name: AccountId, owner: str, state: State = State.STARTING) -> Plan:
        first = Snapshot(name, "test", name.partition(":")[2], state, START, user_id=owner)
        return Plan(first, 1, (lambda: bots[name]) if name in bots else None)

    async with open_store(tmp_path / "db") as file, supervisor.running(), asyncio.TaskGroup() as tasks:
        await supervisor.reconcile([plan(MAIN, ""), plan(OWNED, "u1"), plan(OFF, "", State.DISABLED)])
        store = Failing(file)

        async def write(account: AccountId, owner: str) -> None:
            if place.trouble is not None:
                raise place.trouble
            place.written.append((account, owner))

        reach = Reach(supervisor, store, list)
        questions = Questions(store, clock, reach, lambda account: 0.0)
        owners = Owners(supervisor, store, clock, pairings, questions)
        place = Place(store, clock, supervisor, pairings, owners, bots)
        running = tasks.create_task(owners.run(write))
        yield place
        running.cancel()


async def refused(place: Place, kind: str = "component_error", **words: Any) -> str:
    with pytest.raises(ControlError) as caught:
        await place.pair(**words)
    assert caught.value.code == kind
    return str(caught.value)


async def test_whoever_sends_the_code_is_written_down_and_notices_go_to_that_chat(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        pairing = await place.pair()
        assert (pairing.account, pairing.state, pairing.tries_left) == (MAIN, "waiting", 5)
        assert (pairing.seconds_left, pairing.owner) == (600, "")
        assert CODE not in pairing.model_dump_json()
        assert "you are being made the owner" in place.hear("4821-7730")
        await until(lambda: place.written == [(MAIN, "u7")])
        await settle()
        ended = await place.state(pairing.id)
        assert (ended.state, ended.owner) == ("paired", "u7")
        (chat,) = await place.store.get(OwnerChats())
        assert (chat.account, chat.owner, chat.to) == (MAIN, "u7", "to-u7")


async def test_an_account_that_has_an_owner_refuses_unless_another_is_wanted(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        assert "has an owner already: give --replace" in await refused(place, account=OWNED)
        assert (await place.pair(OWNED, replace=True)).state == "waiting"


async def test_only_an_account_that_runs_can_be_paired(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        assert "no account test:none" in await refused(place, "unknown_account", account="test:none")
        assert "test:off is disabled" in await refused(place, account=OFF)
        for code in ("1234567", "123456789", "1234567x", "１２３４５６７８"):
            assert "8 digits" in await refused(place, code=code)


async def test_a_pairing_can_be_withdrawn_and_one_that_is_not_known_is_told_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        pairing = await place.pair()
        assert (await place.state(pairing.id, withdraw=True)).state == "withdrawn"
        assert place.hear(CODE) == say(Text.PAIR_OVER, Language.EN)
        with pytest.raises(ControlError, match="worth nothing any more"):
            await place.state("unknown")


async def test_who_was_told_to_become_the_owner_learns_that_it_was_not_saved(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.trouble = ConfigError("config.toml: read-only file system")
        pairing = await place.pair()
        place.hear(CODE)
        await until(lambda: bool(place.bots[MAIN].told))
        await settle()
        ended = await place.state(pairing.id)
        assert (ended.state, ended.reason) == ("failed", "config.toml: read-only file system")
        (part,) = await place.store.get(OpenParts(MAIN))
        assert (part.body, part.to) == (say(Text.PAIR_FAILED, Language.EN), "to-u7")
        assert place.bots[MAIN].told == [part.reply_id]
        assert await place.store.get(OwnerChats()) == ()


async def test_a_store_that_takes_nothing_changes_neither_outcome(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        assert isinstance(place.store, Failing)
        place.store.fails = NoteOwner
        pairing = await place.pair()
        place.hear(CODE)
        await until(lambda: bool(place.written))
        await settle()
        assert (await place.state(pairing.id)).state == "paired"
        place.store.fails, place.trouble = object, ConfigError("no")
        pairing = await place.pair()
        place.hear(CODE)
        await settle()
        assert (await place.state(pairing.id)).state == "failed"


# --- questions -----------------------------------------------------------------------------------


async def confirm(place: Place, text: str = "Deploy?", **words: Any) -> ours.Question:
    return await place.owners.confirm(ours.Confirm(text=text, **words))


async def test_a_question_is_asked_followed_and_withdrawn(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        question = await confirm(place, account=OWNED)
        assert (question.account, question.state, question.seconds_left) == (OWNED, "sending", 1800)
        await until(lambda: bool(place.bots[OWNED].told))
        (part,) = await place.store.get(OpenParts(OWNED))
        await place.store.do(Settle(part.part_id, PartState.SENT, 1))
        async with asyncio.TaskGroup() as tasks:
            follow = ours.QuestionState(id=question.id)
            following = tasks.create_task(place.owners.handle(follow))
            await until(lambda: bool(place.clock.waits()))
            await place.clock.advance(1)
            told = (await following)["question"]
        assert told.state == "open"
        ended = await place.owners.confirm(ours.QuestionState(id=question.id, withdraw=True))
        assert ended.state == "withdrawn"


async def test_a_question_that_cannot_be_asked_says_why(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        for words, told in (
            ({"text": " "}, "a text of up to 4096 bytes"),
            ({"text": "是" * 1366}, "a text of up to 4096 bytes"),
            ({"wait_seconds": 14_401}, "up to 14400 seconds"),
            ({"account": MAIN}, "no account with a known owner"),
        ):
            with pytest.raises(ControlError, match=told):
                await confirm(place, **words)
        with pytest.raises(ControlError, match="not asked any more"):
            await place.owners.confirm(ours.QuestionState(id="unknown"))


async def test_what_a_daemon_before_had_asked_is_asked_no_more(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        await confirm(place, account=OWNED)
        await until(lambda: bool(place.bots[OWNED].told))
        assert isinstance(place.store, Failing)
        place.store.fails = Hold
        await place.owners.recover()
        place.store.fails = int
        await place.owners.recover()
        assert await place.store.get(OpenParts(OWNED)) == ()


async def test_the_owner_s_messages_are_answered_for_pairings_and_questions(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        ahead = place.owners.ahead(MAIN, ChannelSettings())
        assert [answer(message("m1", "hello", "u7")) for answer in ahead.for_anybody] == [None]
        assert [answer(message("m1", "hello", "u7")) for answer in ahead.for_answered] == [None]
